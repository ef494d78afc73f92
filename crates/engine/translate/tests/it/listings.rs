//! Translated code as text: what the guest wrote, and what runs in its place. `UPDATE_EXPECT=1` accepts what is made now.

use crate::{CACHED, CODE_ADDRESS, COLD_ADDRESS, translate_at};
use expect_test::{Expect, expect};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::fmt::Write;
use verdict_translate::Instrumentation;

const LOW: u64 = 0x1000_0000;
const HIGH: u64 = 0x3000_0000_0000;

fn check(pc: u64, code: &[u8], instrumentation: Instrumentation, expected: Expect) {
    let block = translate_at(pc, code, CACHED, instrumentation).expect("there is code");
    let mut text = String::from("guest\n");
    for (start, len) in &block.ranges {
        let at = (start - pc) as usize;
        list(&mut text, &code[at..at + *len as usize], *start);
    }
    text.push_str("host\n");
    list(&mut text, &block.code, CODE_ADDRESS);
    list(&mut text, &block.cold, COLD_ADDRESS);
    for access in &block.accesses {
        writeln!(text, "{access:x?}").expect("a string takes everything");
    }
    expected.assert_eq(&text);
}

fn list(text: &mut String, code: &[u8], address: u64) {
    let mut formatter = IntelFormatter::new();
    for instruction in &mut Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        writeln!(text, "  {:x}  {line}", instruction.ip()).expect("a string takes everything");
    }
}

#[test]
fn a_block_whose_flags_are_dead_tests_the_budget_with_them() {
    // mov eax, [rip+0x100]; add eax, 1; jmp self
    let code = [0x8b, 0x05, 0, 1, 0, 0, 0x83, 0xc0, 1, 0xeb, 0xf5];
    check(
        LOW,
        &code,
        Instrumentation::None,
        expect![[r#"
            guest
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
              10000000  mov eax,[10000106h]
              10000006  add eax,1
              10000009  jmp short 0000000010000000h
            host
              40010000  mov eax,[10000106h]
              40010006  add eax,1
              40010009  mov eax,[10000106h]
              4001000f  add eax,1
              40010012  mov eax,[10000106h]
              40010018  add eax,1
              4001001b  mov eax,[10000106h]
              40010021  add eax,1
              40010024  mov eax,[10000106h]
              4001002a  add eax,1
              4001002d  mov eax,[10000106h]
              40010033  add eax,1
              40010036  mov eax,[10000106h]
              4001003c  add eax,1
              4001003f  mov eax,[10000106h]
              40010045  add eax,1
              40010048  vpaddq xmm15,xmm15,[40000780h]
              40010050  vtestpd xmm15,xmm15
              40010055  je 0000000048000000h
              4001005b  jmp 0000000048000000h
              48000000  mov dword ptr [7FF000D8h],0
              4800000a  jmp 0000000040000000h
        "#]],
    );
}

#[test]
fn a_block_whose_flags_are_live_counts_without_touching_them() {
    // jne +2; the rest is another block
    check(
        LOW,
        &[0x75, 2],
        Instrumentation::None,
        expect![[r#"
            guest
              10000000  jne short 0000000010000004h
            host
              40010000  jne 000000004001002Dh
              40010006  vpaddq xmm15,xmm15,[400008F0h]
              4001000e  mov [7FF00010h],rcx
              40010015  vmovmskpd ecx,xmm15
              4001001a  jrcxz 0000000040010021h
              4001001c  jmp 0000000048000000h
              40010021  mov rcx,[7FF00010h]
              40010028  jmp 0000000048000007h
              4001002d  vpaddq xmm15,xmm15,[400008F0h]
              40010035  mov [7FF00010h],rcx
              4001003c  vmovmskpd ecx,xmm15
              40010041  jrcxz 0000000040010048h
              40010043  jmp 0000000048000016h
              40010048  mov rcx,[7FF00010h]
              4001004f  jmp 000000004800001Dh
              48000000  mov rcx,[7FF00010h]
              48000007  mov dword ptr [7FF000D8h],0
              48000011  jmp 0000000040000000h
              48000016  mov rcx,[7FF00010h]
              4800001d  mov dword ptr [7FF000D8h],1
              48000027  jmp 0000000040000000h
        "#]],
    );
}

#[test]
fn a_far_operand_borrows_a_register() {
    // add ah, [rip+0x100]; ret
    let code = [0x02, 0x25, 0, 1, 0, 0, 0xc3];
    check(
        HIGH,
        &code,
        Instrumentation::None,
        expect![[r#"
            guest
              300000000000  add ah,[300000000106h]
              300000000006  ret
            host
              40010000  mov [7FF00028h],rbx
              40010007  mov rbx,300000000106h
              40010011  add ah,[rbx]
              40010013  mov rbx,[7FF00028h]
              4001001a  mov [7FF00010h],rcx
              40010021  pop rcx
              40010022  vpaddq xmm15,xmm15,[400008E0h]
              4001002a  mov [7FF00018h],rcx
              40010031  movzx ecx,cx
              40010034  jmp qword ptr [rcx*8+60000000h]
        "#]],
    );
}

#[test]
fn a_far_call_through_memory() {
    // call [rip+0x100]
    check(
        HIGH,
        &[0xff, 0x15, 0, 1, 0, 0],
        Instrumentation::None,
        expect![[r#"
            guest
              300000000000  call qword ptr [300000000106h]
            host
              40010000  mov [7FF00010h],rcx
              40010007  mov rcx,300000000106h
              40010011  mov rcx,[rcx]
              40010014  mov dword ptr [rsp-8],6
              4001001c  mov dword ptr [rsp-4],3000h
              40010024  lea rsp,[rsp-8]
              40010029  vpaddq xmm15,xmm15,[400008F0h]
              40010031  mov [7FF00018h],rcx
              40010038  movzx ecx,cx
              4001003b  jmp qword ptr [rcx*8+60000000h]
        "#]],
    );
}

#[test]
fn logged_accesses_share_the_words_of_their_bases() {
    // mov rax, [rdi+8]; mov [rdi+16], rax; add [rdi+rax*4+4], ecx; rep movsb; syscall
    let code = [
        0x48, 0x8b, 0x47, 8, 0x48, 0x89, 0x47, 16, 0x01, 0x4c, 0x87, 4, 0xf3, 0xa4, 0x0f, 0x05,
    ];
    check(
        LOW,
        &code,
        Instrumentation::Accesses,
        expect![[r#"
            guest
              10000000  mov rax,[rdi+8]
              10000004  mov [rdi+10h],rax
              10000008  add [rdi+rax*4+4],ecx
              1000000c  rep movsb [rdi],[rsi]
              1000000e  syscall
            host
              40010000  mov [7FF00030h],r15
              40010007  vpextrq r15,xmm15,1
              4001000d  mov qword ptr [r15],7
              40010015  mov [r15+8],rdi
              40010019  mov rax,[rdi+8]
              4001001d  mov [rdi+10h],rax
              40010021  mov [7FF00038h],r14
              40010028  lea r14,[rdi+rax*4+4]
              4001002d  mov [r15+10h],r14
              40010031  add [rdi+rax*4+4],ecx
              40010035  mov [r15+18h],rcx
              40010039  mov [r15+20h],rsi
              4001003d  rep movsb [rdi],[rsi]
              4001003f  mov r15,[7FF00030h]
              40010046  mov r14,[7FF00038h]
              4001004d  vpaddq xmm15,xmm15,[400038A0h]
              40010055  mov qword ptr [7FF000C0h],10000010h
              40010060  mov qword ptr [7FF000D0h],3
              4001006b  jmp 0000000040000D00h
            LoggedAccess { instruction: 0, base: Logged(0), displacement: 8, size: 8, kind: Read, locked: false, segment: Flat, bit: None, repeat: None }
            LoggedAccess { instruction: 1, base: Logged(0), displacement: 10, size: 8, kind: Write, locked: false, segment: Flat, bit: None, repeat: None }
            LoggedAccess { instruction: 2, base: Logged(1), displacement: 0, size: 4, kind: ReadWrite, locked: false, segment: Flat, bit: None, repeat: None }
            LoggedAccess { instruction: 3, base: Logged(0), displacement: 0, size: 1, kind: Write, locked: false, segment: Flat, bit: None, repeat: Some(2) }
            LoggedAccess { instruction: 3, base: Logged(3), displacement: 0, size: 1, kind: Read, locked: false, segment: Flat, bit: None, repeat: Some(2) }
        "#]],
    );
}

#[test]
fn a_loop_is_copied_less_often_where_nothing_is_logged() {
    // Six times mov eax, [rbx]; then add eax, 1; jmp self
    let mut code = [0x8b, 0x03].repeat(6);
    code.extend([0x83, 0xc0, 1, 0xeb, 0xef]);
    let rounds = |instrumentation| {
        let block = translate_at(LOW, &code, CACHED, instrumentation).expect("ordinary code");
        block.instructions / 8
    };
    assert_eq!(rounds(Instrumentation::None), 3);
    assert_eq!(rounds(Instrumentation::Accesses), 4);
}
