//! What code that is sifted tells, and where. Told is a record of words: the number of a [`Site`], then what [`SiteKind`] says.

use crate::accesses::{AccessKind, Segment};

/// Something that is told, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// Address of the instruction.
    pub pc: u64,
    /// What.
    pub what: SiteKind,
}

/// What is told at a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteKind {
    /// An access: its address, and of a repeated one how often it is made.
    Access {
        /// Bytes; 0 where only the CPU's state decides (XSAVE).
        size: u32,
        /// Direction.
        kind: AccessKind,
        /// LOCK prefix, or XCHG with memory.
        locked: bool,
        /// What the address counts from.
        segment: Segment,
        /// A repeated string instruction.
        repeated: bool,
        /// A bit test that reaches beyond its operand: the address is not known.
        far_bit: bool,
        /// It is made by a loop whose other accesses are told when it is over.
        in_run: bool,
    },
    /// A noted function begins: the return address, then its first arguments, in the order of [`crate::control::ARGUMENT_REGISTERS`].
    Entry {
        /// How many.
        arguments: u8,
    },
    /// A noted function returns: its result.
    Return,
    /// A loop has run, see [`crate::Run`].
    Run,
}

impl SiteKind {
    /// Words of a record, the site's number included; of a run's, those that are always there.
    pub fn words(&self) -> usize {
        match self {
            SiteKind::Access { repeated: true, .. } => 3,
            SiteKind::Access { .. } | SiteKind::Return => 2,
            SiteKind::Entry { arguments } => 2 + usize::from(*arguments),
            SiteKind::Run => 1,
        }
    }
}

/// What a noted function means for whoever calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noted {
    /// What it does is nobody's business.
    pub hides: bool,
    /// When it has returned, others may have been given something to wait for, or memory means something else than before.
    pub ends_epoch: bool,
    /// Its first argument points to something atomic.
    pub atomic: bool,
    /// How many of its arguments matter.
    pub arguments: u8,
}

impl Noted {
    /// The same, of which only the first argument matters.
    pub const fn of_one(self) -> Noted {
        Noted {
            arguments: 1,
            ..self
        }
    }
}

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// The program's, or that of a library that is not listed.
    Program,
    /// The language's runtime.
    Runtime,
    /// The dynamic loader: what it accesses is not told.
    Loader,
}
