//! The records of a stream.

use crate::BlockInfo;
use std::path::PathBuf;
use verdict_translate::{Run, Site};

/// One thing that an executor tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// A block may appear in the log from now on. Ids are given anew after a flush, and to every block that runs once.
    Block {
        /// As in the headers of the log.
        id: u32,
        /// What its words mean.
        block: BlockInfo,
    },
    /// A thread has run.
    Log {
        /// Who.
        thread: u32,
        /// Its fs base.
        fs_base: u64,
        /// Its gs base.
        gs_base: u64,
        /// The words of the access log, least significant byte first.
        words: &'a [[u8; 8]],
    },
    /// Sites may be told of from now on, by these numbers.
    Sites {
        /// Of the first one.
        first: u32,
        /// They.
        sites: Vec<Site>,
    },
    /// The site of this number is this run.
    Run {
        /// The site.
        site: u32,
        /// What it does.
        run: Run,
    },
    /// A thread has run, and only what was new in what it did is told.
    Passed {
        /// Who.
        thread: u32,
        /// Its fs base.
        fs_base: u64,
        /// Records one after the other, see [`verdict_translate::SiteKind`]; least significant byte first.
        words: &'a [[u8; 8]],
    },
    /// Memory was mapped.
    Mapped(Mapped),
    /// A noted function begins at an address.
    Function {
        /// Where.
        address: u64,
        /// Its symbol.
        name: String,
    },
    /// A thread was created.
    ThreadCreated {
        /// By whom.
        parent: u32,
        /// Who.
        child: u32,
        /// The child's fs base.
        fs_base: u64,
        /// The memory that holds its stack.
        stack: (u64, u64),
        /// Its clear_child_tid word.
        tid_word: u64,
    },
    /// A thread has ended.
    ThreadEnded {
        /// Who.
        thread: u32,
    },
    /// A system call is over.
    SystemCall(SystemCall),
    /// A thread that is about to free a block frees another one, or none, in its place.
    Withheld {
        /// Who.
        thread: u32,
        /// The block that it was to free.
        block: u64,
        /// What it frees instead; 0 is nothing.
        instead: u64,
    },
    /// From now on plain accesses are told, or are not: of a very long run, only parts are looked at.
    Part {
        /// Whether they are.
        told: bool,
    },
    /// A thread goes on somewhere else than where it was: in a signal handler, or after one.
    Jumped {
        /// Who.
        thread: u32,
        /// Where.
        pc: u64,
    },
}

/// In the place of a site's number: what a thread did is not told, since a fault has interrupted it.
pub const LOST: u64 = u32::MAX as u64;

/// Memory that was mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapped {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// It can be executed.
    pub executable: bool,
    /// The file, and the offset of the first byte.
    pub file: Option<(PathBuf, u64)>,
}

/// A system call that is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemCall {
    /// Who.
    pub thread: u32,
    /// The address after the instruction.
    pub pc: u64,
    /// Which.
    pub number: u64,
    /// Its arguments; of a call that made two descriptors, the last two are these.
    pub args: [u64; 6],
    /// What it returned.
    pub result: i64,
    /// The guest's memory that it read and wrote.
    pub memory: Vec<MemoryUse>,
}

/// Memory that a system call read or wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryUse {
    /// First byte.
    pub address: u64,
    /// Number of bytes.
    pub len: u64,
    /// Written rather than read.
    pub written: bool,
}

pub(crate) mod kind {
    pub(crate) const BLOCK: u32 = 1;
    pub(crate) const LOG: u32 = 2;
    pub(crate) const MAPPED: u32 = 3;
    pub(crate) const FUNCTION: u32 = 4;
    pub(crate) const THREAD_CREATED: u32 = 5;
    pub(crate) const THREAD_ENDED: u32 = 6;
    pub(crate) const SYSTEM_CALL: u32 = 7;
    pub(crate) const JUMPED: u32 = 8;
    pub(crate) const WITHHELD: u32 = 9;
    pub(crate) const SITES: u32 = 10;
    pub(crate) const PASSED: u32 = 11;
    pub(crate) const RUN: u32 = 12;
    pub(crate) const PART: u32 = 13;
}
