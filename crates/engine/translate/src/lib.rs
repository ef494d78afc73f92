//! Same-ISA translation: guest basic blocks become host code that does the same, counts itself, and comes back.
//!
//! A pure function of guest bytes and addresses, and of what the guest holds where a block guesses which way it goes: nothing
//! here touches memory that runs. Ordinary instructions
//! are copied byte for byte (rip-relative displacements patched), branches are rewritten so that the guest only
//! ever sees guest addresses, and what must not run as it is ends the block with an exit to the engine.
//!
//! Invariants of translated code:
//! - guest flags, registers and stack (the red zone included) are exactly the guest's at every instruction
//!   boundary, but for registers named in the block's fault map as borrowed at that point, and for arithmetic flags
//!   that no instruction will read any more: a stop or a fault before they are overwritten may show others;
//! - the budget goes down by exactly one per guest instruction, whatever the instrumentation;
//! - no host address ever reaches guest memory or guest registers, but for the address of the last x87 instruction,
//!   which the CPU keeps and FNSTENV, FXSAVE and XSAVE write out.
//!
//! `verdict-cputest` compares all this with the CPU.
#![forbid(unsafe_code)]

mod accesses;
mod address;
mod bases;
mod block;
mod branches;
mod budget;
mod builder;
mod carry;
mod control;
mod counter;
mod emit;
mod flags;
mod guess;
mod known_flags;
mod operands;
mod pad;
mod returns;
mod runs;
mod sieve;
mod sieve_code;
mod sites;
mod trace;
mod used;

pub use accesses::{AccessKind, AddressWord, BitOffset, LoggedAccess, Segment};
pub use block::{
    BLOCK_INSTRUCTIONS_MAX, Block, Borrowed, FaultEntry, Instrumentation, Link, Miss, Request,
    Scope, TranslateError, translate,
};
pub use budget::{Chaining, budget_reserve};
pub use carry::{Carried, Shortcut};
pub use control::{ARGUMENT_REGISTERS, ControlMark, ControlStep};
pub use guess::Guess;
pub use known_flags::KnownFlags;
pub use pad::{Pad, indirect_pad, prelude};
pub use runs::{RUN_VALUES_MAX, Run, RunAccess};
pub use sieve::{StampLook, stamp_look};
pub use sites::{Noted, Site, SiteKind, Whose};
pub use trace::{Paths, Way};

/// Most words that one guest instruction can add to the access log, a block header included.
pub fn log_words_per_instruction_max(instrumentation: Instrumentation) -> u64 {
    match instrumentation {
        Instrumentation::None => 0,
        // A repeated MOVS that is a block of its own: two addresses and the count.
        Instrumentation::Accesses => 4,
        // The first instruction of a noted function: its arguments, the stack pointer, the return address.
        Instrumentation::Everything => 12,
        // The same, which may repeat a MOVS.
        Instrumentation::Sifted => 16,
    }
}
