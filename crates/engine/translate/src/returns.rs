//! The calls that a path has come by and not returned from: where each will return to, and whether that is certain. It is as
//! long as nothing on the path can have written over the return address: then nothing is checked when the path returns.

use crate::bases::change_by;
use crate::operands::gpr_of;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use verdict_cpu::Gpr;

/// Bytes of a return address.
const ADDRESS_LEN: i64 = 8;

/// The calls under way, the last one made last.
#[derive(Default, Debug)]
pub(crate) struct Returns(Vec<Frame>);

#[derive(Clone, Copy, Debug)]
struct Frame {
    return_address: u64,
    /// How far above its return address the stack pointer is; `None` if that is not known, or it may have been written over.
    above: Option<i64>,
}

/// Where a return leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Return {
    pub(crate) target: u64,
    /// No need to look.
    pub(crate) certain: bool,
}

impl Returns {
    /// The path is about to return. `None` if it has not come by the call.
    pub(crate) fn returns(&mut self) -> Option<Return> {
        let frame = self.0.pop()?;
        Some(Return {
            target: frame.return_address,
            certain: frame.above == Some(0),
        })
    }

    /// The path goes on past an instruction; past a call, that is where the function begins.
    pub(crate) fn ran(&mut self, instruction: &Instruction) {
        for frame in &mut self.0 {
            frame.above = frame.above.and_then(|above| after(instruction, above));
        }
        if matches!(
            instruction.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        ) {
            self.0.push(Frame {
                return_address: instruction.next_ip(),
                above: Some(0),
            });
        }
    }
}

/// How far above a return address the stack pointer is after an instruction, if it was so far above it before.
fn after(instruction: &Instruction, above: i64) -> Option<i64> {
    let named = |operand| gpr_of(instruction.op_register(operand)) == Some(Gpr::Rsp);
    let by = match change_by(instruction) {
        Some(change) if change.to == Gpr::Rsp => (change.from == Gpr::Rsp).then_some(change.by)?,
        _ if instruction.is_stack_instruction() => return None,
        _ if (0..instruction.op_count()).any(named) && !only_compares(instruction) => {
            // It may be what is stored only; that does not matter often enough to be told apart.
            return None;
        }
        _ => 0,
    };
    let pushes = instruction.is_stack_instruction() && by < 0;
    let overwritten = if pushes {
        above > 0
    } else {
        writes_at(instruction, above)
    };
    if overwritten {
        return None;
    }
    above.checked_add(by)
}

fn only_compares(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop
    )
}

/// Whether an instruction other than a push may write over the return address that the stack pointer is so far above.
fn writes_at(instruction: &Instruction, above: i64) -> bool {
    let implicit = |operand: u32| {
        !matches!(
            instruction.op_kind(operand),
            OpKind::Register
                | OpKind::Memory
                | OpKind::NearBranch64
                | OpKind::Immediate8
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate64
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        )
    };
    // What they write lies elsewhere than at their operand.
    let elsewhere = matches!(
        instruction.mnemonic(),
        Mnemonic::Clzero
            | Mnemonic::Movdir64b
            | Mnemonic::Enqcmd
            | Mnemonic::Enqcmds
            | Mnemonic::Bts
            | Mnemonic::Btr
            | Mnemonic::Btc
    );
    if elsewhere || (0..instruction.op_count()).any(implicit) {
        return true;
    }
    // Where an instruction writes memory, that is its first operand.
    let reads_only = instruction.op0_kind() != OpKind::Memory
        || only_compares(instruction)
        || instruction.flow_control() != FlowControl::Next
        || instruction.mnemonic() == Mnemonic::Push;
    if reads_only {
        return false;
    }
    let on_stack = instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    let len = instruction.memory_size().size() as i64;
    // POP computes the address once the stack pointer has moved.
    if !on_stack || len == 0 || instruction.mnemonic() == Mnemonic::Pop {
        return true;
    }
    let start = above.wrapping_add(instruction.memory_displacement64() as i64);
    start < ADDRESS_LEN && start.saturating_add(len) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Whether a return is certain after code that was called.
    fn certain(code: &[u8]) -> bool {
        let mut returns = Returns::default();
        let call = [0xe8, 0, 0, 0, 0];
        returns.ran(&Decoder::with_ip(64, &call, 0x1ffb, DecoderOptions::NONE).decode());
        for instruction in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).iter() {
            returns.ran(&instruction);
        }
        let to = returns.returns().expect("the call is there");
        assert_eq!(to.target, 0x2000);
        assert!(returns.returns().is_none());
        to.certain
    }

    #[test]
    fn a_return_is_certain_where_nothing_can_have_changed_its_address() {
        for code in [
            &[][..],
            // mov eax, [rdi]; bswap eax
            &[0x8b, 0x07, 0x0f, 0xc8],
            // push rbx; mov ebx, 1; pop rbx
            &[0x53, 0xbb, 1, 0, 0, 0, 0x5b],
            // sub rsp, 24; mov [rsp+8], rax; add rsp, 24
            &[
                0x48, 0x83, 0xec, 24, 0x48, 0x89, 0x44, 0x24, 8, 0x48, 0x83, 0xc4, 24,
            ],
            // mov [rsp-8], rax
            &[0x48, 0x89, 0x44, 0x24, 0xf8],
            // cmp [rdi], rax
            &[0x48, 0x39, 0x07],
        ] {
            assert!(certain(code), "{code:x?}");
        }
    }

    #[test]
    fn a_return_is_not_certain_where_its_address_may_have_changed() {
        for code in [
            // mov [rdi], eax
            &[0x89, 0x07][..],
            // mov [rsp], rax
            &[0x48, 0x89, 0x04, 0x24],
            // mov [rsp-4], rax
            &[0x48, 0x89, 0x44, 0x24, 0xfc],
            // mov [rsp+rax], al
            &[0x88, 0x04, 0x04],
            // pop rax; push rcx
            &[0x58, 0x51],
            // pop rax
            &[0x58],
            // leave
            &[0xc9],
            // and rsp, -32
            &[0x48, 0x83, 0xe4, 0xe0],
            // xchg rax, rsp
            &[0x48, 0x94],
            // stosb
            &[0xaa],
            // maskmovdqu xmm0, xmm1
            &[0x66, 0x0f, 0xf7, 0xc1],
            // movups [rdi], xmm0
            &[0x0f, 0x11, 0x07],
            // xsave [rsp-1024], however long that is
            &[0x0f, 0xae, 0xa4, 0x24, 0, 0xfc, 0xff, 0xff],
            // bts [rsp-64], rax
            &[0x48, 0x0f, 0xab, 0x44, 0x24, 0xc0],
            // push rax; pop [rsp-8]
            &[0x50, 0x8f, 0x44, 0x24, 0xf8],
            // sub rsp, 24; mov [rsp+20], rax; add rsp, 24
            &[
                0x48, 0x83, 0xec, 24, 0x48, 0x89, 0x44, 0x24, 20, 0x48, 0x83, 0xc4, 24,
            ],
        ] {
            assert!(!certain(code), "{code:x?}");
        }
    }
}
