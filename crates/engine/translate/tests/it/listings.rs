//! Translated code as text: what the guest wrote, and what runs in its place. `UPDATE_EXPECT=1` accepts what is made now.

use crate::{CODE_ADDRESS, translate_at};
use expect_test::{Expect, expect};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::fmt::Write;
use verdict_translate::{Instrumentation, Scope};

const LOW: u64 = 0x1000_0000;
const HIGH: u64 = 0x3000_0000_0000;

fn check(pc: u64, code: &[u8], instrumentation: Instrumentation, expected: Expect) {
    let scope = Scope::Cached { first_link: 0 };
    let block = translate_at(pc, code, scope, instrumentation).expect("there is code");
    let mut text = String::from("guest\n");
    for (start, len) in &block.ranges {
        let at = (start - pc) as usize;
        list(&mut text, &code[at..at + *len as usize], *start);
    }
    text.push_str("host\n");
    list(&mut text, &block.code, CODE_ADDRESS);
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
fn a_block_whose_flags_are_dead_counts_with_a_subtraction() {
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
              40010000  sub qword ptr [7FF00000h],18h
              40010009  js 000000004001007Bh
              4001000f  mov eax,[10000106h]
              40010015  add eax,1
              40010018  mov eax,[10000106h]
              4001001e  add eax,1
              40010021  mov eax,[10000106h]
              40010027  add eax,1
              4001002a  mov eax,[10000106h]
              40010030  add eax,1
              40010033  mov eax,[10000106h]
              40010039  add eax,1
              4001003c  mov eax,[10000106h]
              40010042  add eax,1
              40010045  mov eax,[10000106h]
              4001004b  add eax,1
              4001004e  mov eax,[10000106h]
              40010054  add eax,1
              40010057  jmp 000000004001005Ch
              4001005c  mov qword ptr [7FF000D8h],0
              40010068  mov qword ptr [7FF000D0h],1
              40010074  jmp qword ptr [7FF00118h]
              4001007b  add qword ptr [7FF00000h],18h
              40010084  mov qword ptr [7FF000C0h],10000000h
              40010090  mov qword ptr [7FF000D0h],5
              4001009c  jmp qword ptr [7FF00118h]
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
              40010000  mov [7FF00010h],rcx
              40010008  mov rcx,[7FF00000h]
              40010010  lea rcx,[rcx-1]
              40010017  mov [7FF00000h],rcx
              4001001f  movzx ecx,byte ptr [7FF00007h]
              40010027  jrcxz 000000004001002Eh
              40010029  jmp 0000000040010084h
              4001002e  mov rcx,[7FF00010h]
              40010036  jne 0000000040010041h
              4001003c  jmp 0000000040010065h
              40010041  jmp 0000000040010046h
              40010046  mov qword ptr [7FF000D8h],0
              40010052  mov qword ptr [7FF000D0h],1
              4001005e  jmp qword ptr [7FF00118h]
              40010065  mov qword ptr [7FF000D8h],1
              40010071  mov qword ptr [7FF000D0h],1
              4001007d  jmp qword ptr [7FF00118h]
              40010084  mov rcx,[7FF00000h]
              4001008c  lea rcx,[rcx+1]
              40010093  mov [7FF00000h],rcx
              4001009b  mov rcx,[7FF00010h]
              400100a3  mov qword ptr [7FF000C0h],10000000h
              400100af  mov qword ptr [7FF000D0h],5
              400100bb  jmp qword ptr [7FF00118h]
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
              40010000  sub qword ptr [7FF00000h],2
              40010009  js 0000000040010046h
              4001000f  mov [7FF00028h],rbx
              40010017  mov rbx,300000000106h
              40010021  add ah,[rbx]
              40010023  mov rbx,[7FF00028h]
              4001002b  mov [7FF00010h],rcx
              40010033  pop rcx
              40010034  mov [7FF00018h],rdx
              4001003c  movzx edx,cx
              4001003f  jmp qword ptr [rdx*8+60000000h]
              40010046  add qword ptr [7FF00000h],2
              4001004f  mov dword ptr [7FF000C0h],0
              4001005a  mov dword ptr [7FF000C4h],3000h
              40010065  mov qword ptr [7FF000D0h],5
              40010071  jmp qword ptr [7FF00118h]
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
              40010008  mov rcx,[7FF00000h]
              40010010  lea rcx,[rcx-1]
              40010017  mov [7FF00000h],rcx
              4001001f  movzx ecx,byte ptr [7FF00007h]
              40010027  jrcxz 000000004001002Eh
              40010029  jmp 0000000040010072h
              4001002e  mov rcx,[7FF00010h]
              40010036  mov [7FF00010h],rcx
              4001003e  mov rcx,300000000106h
              40010048  mov rcx,[rcx]
              4001004b  mov dword ptr [rsp-8],6
              40010053  mov dword ptr [rsp-4],3000h
              4001005b  lea rsp,[rsp-8]
              40010060  mov [7FF00018h],rdx
              40010068  movzx edx,cx
              4001006b  jmp qword ptr [rdx*8+60000000h]
              40010072  mov rcx,[7FF00000h]
              4001007a  lea rcx,[rcx+1]
              40010081  mov [7FF00000h],rcx
              40010089  mov rcx,[7FF00010h]
              40010091  mov dword ptr [7FF000C0h],0
              4001009c  mov dword ptr [7FF000C4h],3000h
              400100a7  mov qword ptr [7FF000D0h],5
              400100b3  jmp qword ptr [7FF00118h]
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
              40010000  sub qword ptr [7FF00000h],5
              40010009  js 00000000400100A2h
              4001000f  mov [7FF00030h],r15
              40010017  mov [7FF00038h],r14
              4001001f  mov r15,[7FF00008h]
              40010027  mov qword ptr [r15],7
              40010032  mov [r15+8],rdi
              40010039  mov rax,[rdi+8]
              4001003d  mov [rdi+10h],rax
              40010041  lea r14,[rdi+rax*4+4]
              40010049  mov [r15+10h],r14
              40010050  add [rdi+rax*4+4],ecx
              40010054  mov [r15+18h],rcx
              4001005b  mov [r15+20h],rsi
              40010062  rep movsb [rdi],[rsi]
              40010064  lea r15,[r15+28h]
              4001006b  mov [7FF00008h],r15
              40010073  mov r15,[7FF00030h]
              4001007b  mov r14,[7FF00038h]
              40010083  mov qword ptr [7FF000C0h],10000010h
              4001008f  mov qword ptr [7FF000D0h],3
              4001009b  jmp qword ptr [7FF00118h]
              400100a2  add qword ptr [7FF00000h],5
              400100ab  mov qword ptr [7FF000C0h],10000000h
              400100b7  mov qword ptr [7FF000D0h],5
              400100c3  jmp qword ptr [7FF00118h]
            LoggedAccess { instruction: 0, base: Logged(0), displacement: 8, size: 8, kind: Read, locked: false, bit: None, repeat: None }
            LoggedAccess { instruction: 1, base: Logged(0), displacement: 10, size: 8, kind: Write, locked: false, bit: None, repeat: None }
            LoggedAccess { instruction: 2, base: Logged(1), displacement: 0, size: 4, kind: ReadWrite, locked: false, bit: None, repeat: None }
            LoggedAccess { instruction: 3, base: Logged(0), displacement: 0, size: 1, kind: Write, locked: false, bit: None, repeat: Some(2) }
            LoggedAccess { instruction: 3, base: Logged(3), displacement: 0, size: 1, kind: Read, locked: false, bit: None, repeat: Some(2) }
        "#]],
    );
}
