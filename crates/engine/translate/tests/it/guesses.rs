//! Where returns and indirect branches are guessed to go: where they would go now.

use crate::{CACHED, CODE_ADDRESS};
use verdict_cpu::Gpr;
use verdict_translate::{
    Block, Carried, Guess, Instrumentation, KnownFlags, Paths, Request, Scope, translate,
};

const PC: u64 = 0x1000_0000;
const STACK: u64 = 0x5000_0000_1000;
/// Where there is nothing but INC EAX.
const ELSEWHERE: u64 = 0x1001_0000;

/// Translates code at [`PC`] with the stack pointer at [`STACK`] and rbx one word beyond; memory is `words`.
fn block(code: &[u8], words: &[(u64, u64)], guess: Guess, scope: Scope) -> Block {
    block_with(code, words, &|_| None, guess, scope)
}

/// The same with words that do not change.
fn block_with(
    code: &[u8],
    words: &[(u64, u64)],
    constant_word: &dyn Fn(u64) -> Option<u64>,
    guess: Guess,
    scope: Scope,
) -> Block {
    let mut registers = [0; 16];
    registers[Gpr::Rsp as usize] = STACK;
    registers[Gpr::Rbx as usize] = STACK + 8;
    let fetch = |address: u64, buffer: &mut [u8]| {
        let elsewhere = [0xff, 0xc0].repeat(200);
        let (start, bytes) = if address >= ELSEWHERE {
            (ELSEWHERE, elsewhere.as_slice())
        } else {
            (PC, code)
        };
        let rest = bytes.get((address - start) as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        len
    };
    let read_word = |address: u64| {
        let word = words.iter().find(|(at, _)| *at == address);
        word.map(|(_, word)| *word)
    };
    translate(&Request {
        pc: PC,
        code_address: CODE_ADDRESS,
        block_id: 7,
        carried: Carried::NOTHING,
        paths: Paths::Short,
        scope,
        instrumentation: Instrumentation::None,
        fetch: &fetch,
        read_word: &read_word,
        constant_word,
        registers: Some(&registers),
        guess: &|_| guess,
        known_flags: &KnownFlags::default(),
        usual_way: &|_| None,
        watched: &|_| false,
        noted: &|_| None,
        whose: &|_| verdict_translate::Whose::Program,
        tells_plain: true,
        first_site: 1024,
    })
    .expect("there is code")
}

/// The target that the block expects of its first branch, if it guesses at all.
fn guessed(code: &[u8], words: &[(u64, u64)]) -> Option<u64> {
    let block = block(code, words, Guess::Now, CACHED);
    let miss = block.misses.first()?;
    assert!(
        block
            .ranges
            .iter()
            .any(|(start, _)| *start == miss.expected)
    );
    Some(miss.expected)
}

#[test]
fn the_path_goes_on_where_the_return_address_points() {
    let there = Some(ELSEWHERE);
    // ret
    assert_eq!(guessed(&[0xc3], &[(STACK, ELSEWHERE)]), there);
    // add rsp, 24; pop rbx; ret
    let epilogue = [0x48, 0x83, 0xc4, 24, 0x5b, 0xc3];
    assert_eq!(guessed(&epilogue, &[(STACK + 32, ELSEWHERE)]), there);
    // push rax; pop rcx; ret
    assert_eq!(guessed(&[0x50, 0x59, 0xc3], &[(STACK, ELSEWHERE)]), there);
    // leave; ret
    assert_eq!(guessed(&[0xc9, 0xc3], &[(8, ELSEWHERE)]), None);
    // and rsp, -32; ret
    let aligned = [0x48, 0x83, 0xe4, 0xe0, 0xc3];
    assert_eq!(guessed(&aligned, &[(STACK, ELSEWHERE)]), None);
    // The return address cannot be read, or lies too far away to be compared with.
    assert_eq!(guessed(&[0xc3], &[]), None);
    assert_eq!(guessed(&[0xc3], &[(STACK, 1 << 40)]), None);
}

#[test]
fn the_path_goes_on_where_an_indirect_branch_points() {
    let there = Some(ELSEWHERE);
    let through = [(STACK + 8, ELSEWHERE)];
    // call [rbx]
    assert_eq!(guessed(&[0xff, 0x13], &through), there);
    // jmp [rbx+8]
    let next = [(STACK + 16, ELSEWHERE)];
    assert_eq!(guessed(&[0xff, 0x63, 8], &next), there);
    // mov rax, [rbx]; jmp rax
    assert_eq!(guessed(&[0x48, 0x8b, 0x03, 0xff, 0xe0], &through), there);
    // mov rax, [rbx]; mov rcx, [rax+rsi*8+4]; call rcx
    let chain = [0x48, 0x8b, 0x03, 0x48, 0x8b, 0x4c, 0xf0, 4, 0xff, 0xd1];
    let words = [(STACK + 8, 0x2000), (0x2004, ELSEWHERE)];
    assert_eq!(guessed(&chain, &words), there);
    // xor eax, eax; jmp rax
    assert_eq!(guessed(&[0x31, 0xc0, 0xff, 0xe0], &through), None);
    // jmp fs:[rbx]
    assert_eq!(guessed(&[0x64, 0xff, 0x23], &through), None);
}

#[test]
fn what_was_learnt_counts_more_than_what_is_there_now() {
    let words = [(STACK, ELSEWHERE)];
    let never = block(&[0xc3], &words, Guess::Never, CACHED);
    assert!(never.misses.is_empty());
    assert_eq!(never.instructions, 1);
    let usually = block(&[0xc3], &words, Guess::Usually(ELSEWHERE + 2), CACHED);
    assert_eq!(usually.misses[0].expected, ELSEWHERE + 2);
}

#[test]
fn a_one_off_block_tells_nobody_that_a_guess_has_failed() {
    let scope = Scope::OneOff { instructions: 5 };
    let once = block(&[0xc3], &[(STACK, ELSEWHERE)], Guess::Now, scope);
    assert_eq!((once.instructions, once.misses.len()), (5, 0));
}

#[test]
fn a_word_that_does_not_change_is_not_looked_at() {
    // call [rip+0x100]
    let code = [0xff, 0x15, 0, 1, 0, 0];
    let word = PC + 0x106;
    let constant = |address: u64| (address == word).then_some(ELSEWHERE);
    let certain = block_with(&code, &[], &constant, Guess::Now, CACHED);
    assert!(certain.misses.is_empty());
    assert!(certain.ranges.contains(&(ELSEWHERE, 62)));
    // push 0x10000006; inc eax
    let begins = [0x68, 6, 0, 0, 0x10, 0xff, 0xc0];
    assert_eq!(certain.code[..begins.len()], begins);
    // It is on a page of code here; a word elsewhere is one more that the block depends on.
    let far = [0xff, 0x15, 0, 0, 2, 0];
    let word = PC + 0x2_0006;
    let constant = |address: u64| (address == word).then_some(ELSEWHERE);
    let certain = block_with(&far, &[], &constant, Guess::Now, CACHED);
    assert_eq!(certain.ahead, [(word, 8)]);
}
