//! What detection knows of a run.

use std::path::PathBuf;

use verdict_findings::{AccessKind, LockMode, Program};
use verdict_symbolize::{FrameVariable, LoadedModule};

/// A place in code: a site, or a byte of a caller's call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodePlace {
    /// The binary.
    pub module: PathBuf,
    /// Where in its file.
    pub offset: u64,
}

/// A run and its races.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RawRun {
    /// The program as it was started, and how it ended.
    pub program: Program,
    /// The file that was executed.
    pub executable: PathBuf,
    /// Where the modules are in memory.
    pub modules: Vec<LoadedModule>,
    /// The threads, by id.
    pub threads: Vec<RawThread>,
    /// In the order in which they were found.
    pub races: Vec<RawRace>,
}

/// A thread.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RawThread {
    /// Counted in the order of creation.
    pub id: u32,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Who created it.
    pub parent: Option<u32>,
    /// Where it was created, the innermost place first.
    pub created_at: Vec<CodePlace>,
}

/// A race. The accesses are those of its first instance, in the order in which they were executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawRace {
    /// Both.
    pub accesses: [RawAccess; 2],
    /// The first byte that both accessed.
    pub address: u64,
    /// What is there.
    pub memory: RawMemory,
    /// How often.
    pub instances: u64,
    /// By which detectors.
    pub found_by: Vec<String>,
    /// Where the detector can say more than the locks that were held.
    pub why_not_ordered: Option<String>,
}

/// An access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawAccess {
    /// By which thread.
    pub thread: u32,
    /// What it did.
    pub access: AccessKind,
    /// How many bytes.
    pub size: u64,
    /// Whether it was an atomic operation.
    pub atomic: bool,
    /// The instruction of the program that is to blame.
    pub site: CodePlace,
    /// The instructions that the thread had executed before.
    pub retired: Option<u64>,
    /// How the thread came there, the innermost place first: the instruction that made the access, which may be in a
    /// library, then a byte of each call. Empty where it is not known.
    pub stack: Vec<CodePlace>,
    /// What the thread held.
    pub locks: Vec<RawLock>,
}

/// A lock that was held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawLock {
    /// Where it is.
    pub address: u64,
    /// What is there.
    pub memory: RawMemory,
    /// How it was held.
    pub mode: LockMode,
    /// Where it was taken, the innermost place first.
    pub taken_at: Vec<CodePlace>,
}

/// What kind of memory an address is in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum RawMemory {
    /// In the data of a module, or nothing is known.
    #[default]
    Static,
    /// In a block that an allocator gave out.
    Heap(HeapBlock),
    /// On the stack of a thread.
    Stack {
        /// Whose.
        thread: u32,
        /// The thread pointer (`fs` base) of that thread, below which its thread-local variables are.
        thread_pointer: Option<u64>,
        /// The frame and the variable, where the stack has been looked at.
        frame: Option<FrameVariable>,
    },
    /// In a thread's own block of thread-local storage, away from its stack.
    ThreadLocal {
        /// Whose.
        thread: u32,
        /// The thread pointer (`fs` base) of that thread.
        thread_pointer: u64,
    },
}

/// A block that an allocator gave out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HeapBlock {
    /// First byte.
    pub start: u64,
    /// How many bytes.
    pub size: u64,
    /// Who asked for it.
    pub thread: Option<u32>,
    /// Where, the innermost place first.
    pub allocated_at: Vec<CodePlace>,
}
