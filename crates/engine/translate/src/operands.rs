//! Questions about one instruction: which registers it leaves alone, and how to reach what it reaches.

use crate::emit::Emitter;
use iced_x86::{
    Code, Instruction, InstructionInfo, InstructionInfoFactory, MemoryOperand, OpKind, Register,
    UsedRegister,
};
use verdict_cpu::Gpr;

/// A set of general registers, one bit each in encoding order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct GprSet(pub(crate) u16);

impl GprSet {
    pub(crate) fn add(&mut self, register: Register) {
        if let Some(gpr) = gpr_of(register) {
            self.0 |= 1 << gpr as u8;
        }
    }

    pub(crate) fn contains(self, gpr: Gpr) -> bool {
        self.0 & 1 << gpr as u8 != 0
    }

    /// Those in it.
    pub(crate) fn iter(self) -> impl Iterator<Item = Gpr> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = ALL.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(*next)
        })
    }

    pub(crate) fn union(self, other: GprSet) -> GprSet {
        GprSet(self.0 | other.0)
    }
}

/// All general registers in encoding order.
pub(crate) const ALL: [Gpr; 16] = [
    Gpr::Rax,
    Gpr::Rcx,
    Gpr::Rdx,
    Gpr::Rbx,
    Gpr::Rsp,
    Gpr::Rbp,
    Gpr::Rsi,
    Gpr::Rdi,
    Gpr::R8,
    Gpr::R9,
    Gpr::R10,
    Gpr::R11,
    Gpr::R12,
    Gpr::R13,
    Gpr::R14,
    Gpr::R15,
];

/// Registers that translation may borrow, best first: never rsp, and none that needs a SIB as a base.
const BORROWABLE: [Gpr; 14] = [
    Gpr::R15,
    Gpr::R14,
    Gpr::R13,
    Gpr::R11,
    Gpr::R10,
    Gpr::Rbx,
    Gpr::R9,
    Gpr::R8,
    Gpr::Rbp,
    Gpr::Rdi,
    Gpr::Rsi,
    Gpr::Rdx,
    Gpr::Rcx,
    Gpr::Rax,
];

/// A register outside `used` that needs no REX prefix: with one, ah, ch, dh and bh cannot be named.
pub(crate) fn free_legacy_register(used: GprSet) -> Option<Gpr> {
    BORROWABLE
        .into_iter()
        .filter(|gpr| (*gpr as u8) < 8)
        .find(|gpr| !used.contains(*gpr))
}

/// True if an operand is ah, ch, dh or bh.
pub(crate) fn names_high_byte(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register
            && matches!(
                instruction.op_register(operand),
                Register::AH | Register::CH | Register::DH | Register::BH
            )
    })
}

/// A register outside `used`.
pub(crate) fn free_register(used: GprSet) -> Option<Gpr> {
    BORROWABLE.into_iter().find(|gpr| !used.contains(*gpr))
}

pub(crate) fn gpr_of(register: Register) -> Option<Gpr> {
    let number = if register.is_gpr() {
        register.full_register().number()
    } else {
        return None;
    };
    ALL.get(number).copied()
}

pub(crate) fn register_of(gpr: Gpr) -> Register {
    use Register::*;
    [
        RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15,
    ][gpr as usize]
}

/// The low half of a register.
pub(crate) fn register_of_32(gpr: Gpr) -> Register {
    Register::EAX + gpr as u32
}

/// Every general register that the instruction reads or writes, implicitly or not.
pub(crate) fn registers_used(
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> GprSet {
    registers_of(info.info(instruction))
}

/// The same of what was looked up.
pub(crate) fn registers_of(info: &InstructionInfo) -> GprSet {
    let mut set = GprSet::default();
    info.used_registers()
        .iter()
        .map(UsedRegister::register)
        .for_each(|r| set.add(r));
    for memory in info.used_memory() {
        set.add(memory.base());
        set.add(memory.index());
    }
    set
}

/// The instruction's memory operand as it is.
pub(crate) fn memory_operand(instruction: &Instruction) -> MemoryOperand {
    let ip_relative = instruction.is_ip_rel_memory_operand();
    MemoryOperand {
        segment_prefix: instruction.segment_prefix(),
        base: instruction.memory_base(),
        index: instruction.memory_index(),
        scale: instruction.memory_index_scale(),
        displacement: instruction.memory_displacement64() as i64,
        displ_size: if ip_relative {
            8
        } else {
            instruction.memory_displ_size()
        },
        is_broadcast: false,
    }
}

/// `mov rcx, operand` for the operand of an indirect call or jump; `None` if it is out of reach.
pub(crate) fn load_branch_target(emit: &mut Emitter, branch: &Instruction) -> Option<()> {
    let load = match branch.op0_kind() {
        OpKind::Register => {
            if branch.op0_register() == Register::RCX {
                return Some(());
            }
            Instruction::with2(Code::Mov_r64_rm64, Register::RCX, branch.op0_register())
        }
        _ => Instruction::with2(Code::Mov_r64_rm64, Register::RCX, memory_operand(branch)),
    };
    emit.instruction(&load.expect("mov r64, rm64 takes any operand that a near branch takes"))
}

/// `mov rcx, [rcx]` in the segment of the branch's operand.
pub(crate) fn load_branch_target_at_rcx(emit: &mut Emitter, branch: &Instruction) {
    let mut operand = MemoryOperand::with_base(Register::RCX);
    operand.segment_prefix = branch.segment_prefix();
    let load = Instruction::with2(Code::Mov_r64_rm64, Register::RCX, operand);
    emit.instruction(&load.expect("mov r64, rm64 takes a base register"))
        .expect("a base register reaches everything");
}
