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
    /// A replay stopped before the execution's end, as it had to.
    ReplayStopped {
        /// Why.
        why: ReplayStop,
        /// Instructions of all threads until then.
        instructions: u64,
    },
    /// A replay went another way than the recording: a bug of ours.
    Diverged(Box<Divergence>),
    /// Nobody can run any more, and nothing outside will change that.
    Deadlock(Deadlock),
    /// The run had as many instructions as it may have.
    LimitReached {
        /// Everybody, as they stood.
        threads: Vec<WaitingThread>,
    },
    /// The order that the run was to have cannot be had: everybody else waits for the thread that was held.
    NotEnforced {
        /// Everybody, as they stood.
        threads: Vec<WaitingThread>,
    },
    /// The run was only wanted up to here.
    Stopped,
}

/// Why a replay stopped early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayStop {
    /// The moment that was asked for.
    Until,
    /// The recording goes no further.
    RecordingEnds,
}

/// Where a replay and its recording first differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Divergence {
    /// Instructions of all threads until then.
    pub instructions: u64,
    /// The thread that ran.
    pub thread: u32,
    /// What the recording has, as a noun: "call 0 (read) at instruction 12".
    pub recorded: String,
    /// What the replay did, likewise.
    pub replayed: String,
    /// Where the guest was.
    pub place: Option<Box<CallStack>>,
}

/// Why the engine does not run the guest, or not any further.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// What was found and what to do about it, one sentence.
    pub message: String,
    /// The system call that is refused, by name.
    pub call: Option<String>,
    /// Where the guest asked for it.
    pub place: Option<Box<CallStack>>,
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
    /// Where it was.
    pub place: CallStack,
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

/// A thread that stands still, with what is needed to find out how it came there. Unwinding is for the controller: it
/// has time, and nothing that the guest may have damaged.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallStack {
    /// Its registers.
    pub registers: Registers,
    /// The innermost part of its stack, from the stack pointer up.
    pub stack: Vec<u8>,
    /// Files that are mapped to be executed.
    pub modules: Vec<MappedModule>,
}

/// A part of a file in the guest's memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MappedModule {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What is at the first address, as an offset in the file.
    pub file_offset: u64,
    /// The file.
    pub path: Vec<u8>,
}

/// Nobody can run any more, and nothing outside will change that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deadlock {
    /// Everybody who waits.
    pub threads: Vec<WaitingThread>,
}

/// A thread that waits, or one that was stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaitingThread {
    /// Numbered from 0 in the order of creation.
    pub thread: u32,
    /// Instructions it had retired.
    pub instructions: u64,
    /// What it waits for, as the end of a sentence; empty if it could run.
    pub waits_for: String,
    /// The word in memory it waits for.
    pub futex: Option<u64>,
    /// The thread that has the lock behind that word, where that can be seen.
    pub owner: Option<u32>,
    /// Where it is.
    pub place: CallStack,
}
