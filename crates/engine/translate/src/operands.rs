//! Questions about one instruction: which registers it leaves alone, and how to reach what it reaches.

use crate::emit::Emitter;
use iced_x86::{
    Code, Instruction, InstructionInfoFactory, MemoryOperand, OpKind, Register, UsedRegister,
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

    pub(crate) fn union(self, other: GprSet) -> GprSet {
        GprSet(self.0 | other.0)
    }
}

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
    const ALL: [Gpr; 16] = [
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
    ALL.get(number).copied()
}

pub(crate) fn register_of(gpr: Gpr) -> Register {
    use Register::*;
    [
        RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15,
    ][gpr as usize]
}

/// Every general register that the instruction reads or writes, implicitly or not.
pub(crate) fn registers_used(
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> GprSet {
    let mut set = GprSet::default();
    let info = info.info(instruction);
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

/// `mov rcx, operand` for the operand of an indirect call or jump.
pub(crate) fn load_branch_target(emit: &mut Emitter, branch: &Instruction) {
    let load = match branch.op0_kind() {
        OpKind::Register => {
            if branch.op0_register() == Register::RCX {
                return;
            }
            Instruction::with2(Code::Mov_r64_rm64, Register::RCX, branch.op0_register())
        }
        _ => Instruction::with2(Code::Mov_r64_rm64, Register::RCX, memory_operand(branch)),
    };
    let load = load.expect("mov r64, rm64 takes any operand that a near branch takes");
    if emit.instruction(&load).is_none() {
        // Only a rip-relative operand can be out of reach, and then rcx itself can carry its address.
        emit.load_value(Gpr::Rcx, branch.ip_rel_memory_address());
        emit.raw(&[0x48, 0x8b, 0x09]); // mov rcx, [rcx]
    }
}
