//! How memory is touched, and what two touches are to each other.

use std::fmt;

/// How an access touches its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum AccessKind {
    /// Plain read.
    Read,
    /// Plain write.
    Write,
    /// Atomic load.
    AtomicRead,
    /// Atomic store or read-modify-write.
    AtomicWrite,
    /// The block is given back: a write of all of it.
    Free,
}

impl AccessKind {
    /// Whether it changes the bytes.
    #[inline]
    pub fn is_write(self) -> bool {
        !matches!(self, AccessKind::Read | AccessKind::AtomicRead)
    }

    /// Whether it is atomic.
    #[inline]
    pub fn is_atomic(self) -> bool {
        matches!(self, AccessKind::AtomicRead | AccessKind::AtomicWrite)
    }

    /// Whether an unordered pair of these, on a common byte, is a race: one writes, not both are atomic.
    #[inline]
    pub fn races_with(self, other: AccessKind) -> bool {
        (self.is_write() || other.is_write()) && !(self.is_atomic() && other.is_atomic())
    }
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::AtomicRead => "atomic-read",
            AccessKind::AtomicWrite => "atomic-write",
            AccessKind::Free => "free",
        })
    }
}

/// The kind of a conflict, by what its first and its second access do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Conflict {
    /// Write, then read.
    Flow,
    /// Read, then write.
    Anti,
    /// Write, then write.
    Output,
    /// Read, then read: never a race.
    Input,
}

impl Conflict {
    /// What `first` and then `second` are to each other.
    pub fn between(first: AccessKind, second: AccessKind) -> Conflict {
        match (first.is_write(), second.is_write()) {
            (true, false) => Conflict::Flow,
            (false, true) => Conflict::Anti,
            (true, true) => Conflict::Output,
            (false, false) => Conflict::Input,
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Conflict::Flow => "flow",
            Conflict::Anti => "anti",
            Conflict::Output => "output",
            Conflict::Input => "input",
        })
    }
}
