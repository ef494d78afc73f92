//! Which threads an atomic operation orders: what its instruction does, or what its source asks for.

use crate::code::Code;
use verdict_events::MemoryOrder;

/// Whose word counts for the memory order of an atomic load or store.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Orders {
    /// The processor's: every load acquires, every store releases. Compilers may have done what it would not do; but what a relaxed
    /// operation and a fence do together is right, though a fence that the processor has no need of leaves no instruction.
    #[default]
    Machine,
    /// The source's, where debug information has it. Fences without instructions are not seen.
    Source,
}

impl Orders {
    /// The order of what an instruction does.
    pub(crate) fn of(self, code: Code, machine: MemoryOrder) -> MemoryOrder {
        match self {
            Orders::Source if code.atomic => code.order.unwrap_or(machine),
            _ => machine,
        }
    }
}
