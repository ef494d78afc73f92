//! What the instructions of a logged path use: looked up once for each, since that takes longer than to decode it.

use crate::accesses::{is_locked, is_logged};
use crate::block::Request;
use crate::control::registers_noted;
use crate::operands::{GprSet, registers_of};
use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, UsedMemory};
use smallvec::SmallVec;

/// What an instruction uses.
pub(crate) struct Used {
    /// Registers that the log must not borrow while the instruction is logged and runs.
    pub(crate) registers: GprSet,
    /// General registers that it may change.
    pub(crate) written: GprSet,
    /// Memory whose accesses are logged.
    pub(crate) memory: SmallVec<[UsedMemory; 2]>,
}

impl Used {
    pub(crate) fn new(
        request: &Request<'_>,
        info: &mut InstructionInfoFactory,
        instruction: &Instruction,
    ) -> Used {
        let level = request.instrumentation;
        let info = info.info(instruction);
        let mut registers = registers_of(info);
        if level.follows_calls() {
            let noted = (request.noted)(instruction.ip()).is_some();
            registers = registers.union(registers_noted(instruction, noted));
        }
        let tells = request.tells_plain || is_locked(instruction);
        let logged = |memory: &&UsedMemory| tells && is_logged(memory, instruction, level);
        Used {
            registers,
            written: written(info),
            memory: info.used_memory().iter().filter(logged).copied().collect(),
        }
    }
}

/// General registers that an instruction may change.
pub(crate) fn written(info: &iced_x86::InstructionInfo) -> GprSet {
    let mut set = GprSet::default();
    for used in info.used_registers() {
        let reads_only = matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::None
        );
        if !reads_only {
            set.add(used.register());
        }
    }
    set
}
