//! Where a branch goes whose target the guest computes: a block is made when the guest is about to run it, so what its
//! registers and its memory hold then says where the path would lead this time. Most such branches go there the next
//! time, too.
//!
//! A guess: what the path writes to memory before the branch is not looked at. The block checks it when it runs.

use crate::bases::{Change, change_by};
use crate::block::{Instrumentation, Request};
use crate::operands::gpr_of;
use crate::trace::Step;
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use verdict_cpu::Gpr;

/// What is known of a branch's target before a block is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guess {
    /// Nothing: the guest's state tells.
    Now,
    /// Most often this.
    Usually(u64),
    /// It is another one each time: the block ends there.
    Never,
}

/// How many registers' values one target may depend on.
const DEPENDS_MAX: u32 = 4;

/// The target of a return or indirect branch at the end of a path.
pub(crate) fn target_of(
    request: &Request<'_>,
    steps: &[Step],
    branch: &Instruction,
) -> Option<u64> {
    match (request.guess)(branch.ip()) {
        Guess::Never => return None,
        Guess::Usually(target) => return Some(target),
        Guess::Now => {}
    }
    let constant = branch.op0_kind() == OpKind::Memory && branch.memory_base() == Register::RIP;
    if request.instrumentation == Instrumentation::Everything && !constant {
        // Whoever follows the stack of calls learns where a return has led to where the next block begins.
        return None;
    }
    let path = Path { request, steps };
    if branch.flow_control() == FlowControl::Return {
        return (request.read_word)(path.value(Gpr::Rsp, steps.len(), 0)?);
    }
    match branch.op0_kind() {
        OpKind::Register => path.value(gpr_of(branch.op0_register())?, steps.len(), 0),
        _ => (request.read_word)(path.address(branch, steps.len(), 0)?),
    }
}

struct Path<'a> {
    request: &'a Request<'a>,
    steps: &'a [Step],
}

impl Path<'_> {
    /// The value of a register before the step of this number.
    fn value(&self, mut register: Gpr, before: usize, depends: u32) -> Option<u64> {
        let entry = self.request.registers?;
        let mut more = 0i64;
        for number in (0..before).rev() {
            let instruction = self.steps[number].instruction();
            match change_by(instruction) {
                Some(Change { to, from, by }) if to == register => {
                    register = from;
                    more = more.wrapping_add(by);
                }
                _ if may_write(instruction, register) => {
                    let loaded = self.loaded(instruction, register, number, depends)?;
                    return Some(loaded.wrapping_add_signed(more));
                }
                _ => {}
            }
        }
        Some(entry[register as usize].wrapping_add_signed(more))
    }

    /// The value that the step gives to a register, if it loads a word from memory.
    fn loaded(
        &self,
        instruction: &Instruction,
        register: Gpr,
        number: usize,
        depends: u32,
    ) -> Option<u64> {
        let loads = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().is_gpr64()
            && gpr_of(instruction.op0_register()) == Some(register)
            && instruction.op1_kind() == OpKind::Memory;
        if !loads || depends == DEPENDS_MAX {
            return None;
        }
        (self.request.read_word)(self.address(instruction, number, depends + 1)?)
    }

    /// The address of the memory operand of the step of this number, or of what follows the last.
    fn address(&self, instruction: &Instruction, number: usize, depends: u32) -> Option<u64> {
        if instruction.segment_prefix() != Register::None {
            return None;
        }
        if instruction.memory_base() == Register::RIP {
            return Some(instruction.ip_rel_memory_address());
        }
        let part = |register: Register| match register {
            Register::None => Some(0),
            register if register.is_gpr64() => self.value(gpr_of(register)?, number, depends),
            _ => None,
        };
        let scale = u64::from(instruction.memory_index_scale());
        let index = part(instruction.memory_index())?.wrapping_mul(scale);
        let base = part(instruction.memory_base())?;
        Some(
            base.wrapping_add(index)
                .wrapping_add(instruction.memory_displacement64()),
        )
    }
}

/// Whether an instruction may write a register otherwise than [`change_by`] says.
fn may_write(instruction: &Instruction, register: Gpr) -> bool {
    if register == Gpr::Rsp {
        // Whatever writes it is made for it or names it: every path to a return is searched, so this has to be quick.
        let named = |operand| gpr_of(instruction.op_register(operand)) == Some(register);
        return instruction.is_stack_instruction() || (0..instruction.op_count()).any(named);
    }
    let mut info = InstructionInfoFactory::new();
    let used = info.info(instruction).used_registers();
    used.iter().any(|used| {
        let reads_only = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        !reads_only && gpr_of(used.register()) == Some(register)
    })
}
