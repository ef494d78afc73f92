//! How a run ended.

use serde::{Deserialize, Serialize};

use crate::Stats;

/// All that an executor says at its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What it did until then.
    pub stats: Stats,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// The guest ended by itself.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// A signal ended the guest.
    Signalled {
        /// Which one.
        signal: i32,
        /// Where the guest was, if it was the one to blame (a fault, or `abort`).
        fault: Option<Box<GuestFault>>,
    },
    /// The guest cannot be run, or asked for something that the engine does not do.
    Refused(Refusal),
    /// The engine itself failed; the guest is not to blame.
    EngineFault(EngineFault),
}

/// Why the engine does not run the guest, or not any further.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// What was found and what to do about it, one sentence.
    pub message: String,
    /// The system call that is refused, by name.
    pub call: Option<String>,
    /// Where the guest asked for it: the instruction, then a byte of each caller's call, as far as they are known.
    pub at: Vec<ModuleOffset>,
}

/// What went wrong in the engine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EngineFault {
    /// One sentence.
    pub message: String,
    /// Where the guest was, if that is known.
    pub guest: Option<Box<GuestFault>>,
}

/// The guest at the moment of a fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuestFault {
    /// The signal.
    pub signal: i32,
    /// The kernel's `si_code`: what kind of fault.
    pub code: i32,
    /// The address that could not be accessed or executed (`si_addr`), for faults that have one.
    pub address: Option<u64>,
    /// The thread, numbered from 0 in the order of creation.
    pub thread: u32,
    /// How many instructions that thread had executed.
    pub instructions: u64,
    /// Its registers.
    pub registers: Registers,
    /// The instruction at fault, then a byte of each caller's call, as far as they are known.
    pub at: Vec<ModuleOffset>,
}

/// General registers, in the order of their encoding, see [`REGISTER_NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Registers {
    /// rax to r15.
    pub general: [u64; 16],
    /// The address of the instruction.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
}

/// Names for [`Registers::general`].
pub const REGISTER_NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// A place in the guest's code that means the same in every run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ModuleOffset {
    /// The address in this run.
    pub pc: u64,
    /// The file that is mapped there; none for code that the guest made itself.
    pub module: Option<Vec<u8>>,
    /// Where in that file.
    pub file_offset: u64,
}
