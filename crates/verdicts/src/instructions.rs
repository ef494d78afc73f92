//! What the code at a place does with the memory it accesses.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// How far the code after a read is followed.
const FOLLOWED: usize = 6;

/// The bits of what the first instruction reads that are used: all the code does with it is to mask it. `None` where that is not so, or not
/// understood.
pub(crate) fn used_bits(code: &[u8]) -> Option<u64> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let read = decoder.decode();
    if let Some(bits) = tested(&read) {
        return Some(bits);
    }
    let loads = matches!(read.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx)
        && read.op0_kind() == OpKind::Register
        && read.op1_kind() == OpKind::Memory;
    if !loads {
        return None;
    }
    let into = read.op0_register().full_register();
    for next in decoder.into_iter().take(FOLLOWED) {
        if next.is_invalid() || !uses(&next, into) {
            // What comes after a branch is not followed.
            if next.is_invalid() || next.flow_control() != iced_x86::FlowControl::Next {
                return None;
            }
            continue;
        }
        let masks = matches!(next.mnemonic(), Mnemonic::And | Mnemonic::Test)
            && next.op0_kind() == OpKind::Register
            && is_immediate(next.op1_kind());
        // The second byte of a register is not the first bits of it.
        let high = [Register::AH, Register::BH, Register::CH, Register::DH];
        return match masks && !high.contains(&next.op0_register()) {
            true => Some(next.immediate(1) & mask(next.op0_register().size())),
            false => None,
        };
    }
    None
}

/// The bits that an instruction tests in memory.
fn tested(instruction: &Instruction) -> Option<u64> {
    let size = match instruction.code() {
        Code::Test_rm8_imm8 | Code::Test_rm8_imm8_F6r1 => 1,
        Code::Test_rm16_imm16 => 2,
        Code::Test_rm32_imm32 => 4,
        Code::Test_rm64_imm32 => 8,
        _ => return None,
    };
    (instruction.op0_kind() == OpKind::Memory).then(|| instruction.immediate(1) & mask(size))
}

/// True if the first instruction changes memory by what is there.
pub(crate) fn updates(code: &[u8]) -> bool {
    let first = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(&first).used_memory();
    used.iter().any(|used| used.access() == OpAccess::ReadWrite)
}

fn mask(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size.clamp(1, 8))
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::{
        Immediate8, Immediate8to16, Immediate8to32, Immediate8to64, Immediate16, Immediate32,
        Immediate32to64, Immediate64,
    };
    matches!(
        kind,
        Immediate8
            | Immediate16
            | Immediate32
            | Immediate64
            | Immediate8to16
            | Immediate8to32
            | Immediate8to64
            | Immediate32to64
    )
}

fn uses(instruction: &Instruction, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers();
    used.iter()
        .any(|used| used.register().full_register() == register)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_says_which_bits_are_used() {
        // test byte ptr [rip+0], 0x80
        assert_eq!(used_bits(&[0xf6, 0x05, 0, 0, 0, 0, 0x80]), Some(0x80));
        // mov edx, [rip+0]; mov rax, rdi; and edx, 0x80
        let masked = [
            0x8b, 0x15, 0, 0, 0, 0, 0x48, 0x89, 0xf8, 0x81, 0xe2, 0x80, 0, 0, 0,
        ];
        assert_eq!(used_bits(&masked), Some(0x80));
        // mov eax, [rip+0]; test al, 0x10
        assert_eq!(used_bits(&[0x8b, 0x05, 0, 0, 0, 0, 0xa8, 0x10]), Some(0x10));
        // mov eax, [rip+0]; and eax, -2 keeps all but one
        let most = [0x8b, 0x05, 0, 0, 0, 0, 0x83, 0xe0, 0xfe];
        assert_eq!(used_bits(&most), Some(0xffff_fffe));
    }

    #[test]
    fn what_is_used_in_another_way_is_used_whole() {
        // mov eax, [rip+0]; test eax, eax
        assert_eq!(used_bits(&[0x8b, 0x05, 0, 0, 0, 0, 0x85, 0xc0]), None);
        // mov eax, [rip+0]; mov [rip+0], eax; and eax, 1
        let stored = [
            0x8b, 0x05, 0, 0, 0, 0, 0x89, 0x05, 0, 0, 0, 0, 0x83, 0xe0, 0x01,
        ];
        assert_eq!(used_bits(&stored), None);
        // mov eax, [rip+0]; je +0; and eax, 1
        let branch = [0x8b, 0x05, 0, 0, 0, 0, 0x74, 0, 0x83, 0xe0, 0x01];
        assert_eq!(used_bits(&branch), None);
        assert_eq!(used_bits(&[]), None);
    }

    #[test]
    fn an_update_reads_and_writes() {
        // add dword ptr [rip+0], 1; inc dword ptr [rip+0]
        assert!(updates(&[0x83, 0x05, 0, 0, 0, 0, 0x01]));
        assert!(updates(&[0xff, 0x05, 0, 0, 0, 0]));
        // mov [rip+0], eax
        assert!(!updates(&[0x89, 0x05, 0, 0, 0, 0]));
        assert!(!updates(&[]));
    }
}
