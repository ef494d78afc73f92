//! Calls, returns and the entries of noted functions: what whoever reads the log needs to follow each thread's stack.
//!
//! Most of it is known when a block is made and costs nothing at run time. Logged are the result register at each
//! return and, where a noted function begins, its arguments and where it will return to.

use crate::accesses::AccessLog;
use crate::block::Borrowed;
use crate::emit::Emitter;
use crate::operands::GprSet;
use iced_x86::{FlowControl, Instruction};
use verdict_cpu::Gpr;

/// Registers that carry the first arguments of a function, in order.
pub const ARGUMENT_REGISTERS: [Gpr; 5] = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8];

/// Something about the thread's stack of calls that happens at an instruction of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlMark {
    /// Which instruction of the block, from 0.
    pub instruction: u16,
    /// What.
    pub step: ControlStep,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlStep {
    /// A call that will return here.
    Call {
        /// The address after the call.
        return_address: u64,
    },
    /// A return.
    Return {
        /// The log's word with the function's result.
        result: u16,
    },
    /// The first instruction of a noted function; nothing of it has run.
    Entry {
        /// The log's words with the arguments, in the order of [`ARGUMENT_REGISTERS`].
        arguments: [u16; ARGUMENT_REGISTERS.len()],
        /// The word with the address of the return address.
        stack_pointer: u16,
        /// The word with the return address.
        return_address: u16,
    },
}

/// Registers that are logged at an instruction besides those of its accesses.
pub(crate) fn registers_noted(instruction: &Instruction, noted: bool) -> GprSet {
    let mut set = GprSet::default();
    if noted {
        for gpr in ARGUMENT_REGISTERS {
            set.0 |= 1 << gpr as u8;
        }
    }
    if instruction.flow_control() == FlowControl::Return {
        set.0 |= 1 << Gpr::Rax as u8;
    }
    set
}

impl AccessLog {
    /// Logs what is to be known of the instruction's place in the stack of calls.
    pub(crate) fn note_control(
        &mut self,
        emit: &mut Emitter,
        borrowed: &mut Borrowed,
        number: u16,
        instruction: &Instruction,
        noted: bool,
    ) {
        if noted {
            let step = ControlStep::Entry {
                arguments: ARGUMENT_REGISTERS.map(|register| self.register_word(emit, register)),
                stack_pointer: self.stack_pointer_word(emit),
                return_address: self.stack_top_word(emit, borrowed),
            };
            self.mark(number, step);
        }
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                let return_address = instruction.next_ip();
                self.mark(number, ControlStep::Call { return_address });
            }
            FlowControl::Return => {
                let result = self.register_word(emit, Gpr::Rax);
                self.mark(number, ControlStep::Return { result });
            }
            _ => {}
        }
    }

    fn mark(&mut self, instruction: u16, step: ControlStep) {
        self.control.push(ControlMark { instruction, step });
    }
}
