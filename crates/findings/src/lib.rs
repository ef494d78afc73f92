//! What is known about the races of a program, as data.
//!
//! One document, [`ProgramFindings`], is passed from stage to stage and grows: detection makes it (schema
//! `verdict.races/1`), confirmation and classification add a [`Verdict`] to each race (schema `verdict.verdicts/1`, the
//! same with more fields). Every report is made from it, and nothing but it.
//!
//! The types are plain: public fields, [`Default`] where there is a sensible one, so that a stage fills in what it knows
//! with `..Default::default()`. In JSON, what is not known is left out, and an unknown field is skipped: older
//! and newer files of the same schema can be read. Nothing in it depends on the wall clock or on the machine's load, so that
//! the same recording gives the same bytes.
//!
//! All text is as the program has it, so it may hold anything: line ends, escape codes, markup. Whoever prints it
//! has to see to that. Names that are not UTF-8 are kept by [`text_of_bytes`].
#![forbid(unsafe_code)]

mod class;
mod confirmation;
mod coverage;
mod deadlock;
mod document;
mod evidence;
mod order;
mod place;
mod program;
mod race;
mod raw_text;
mod relative;
mod replay;
mod variable;
mod verdict;

pub use class::{Class, Consequence, ConsequenceKind, Label, MisusedBlock};
pub use confirmation::{Confirmation, ObservedError};
pub use coverage::{CoverageNote, StageStatistics};
pub use deadlock::{DeadlockFindings, DeadlockSchema, LockCycle, LockStep, StuckThread};
pub use document::{ProgramFindings, ReadError, Schema};
pub use order::{Order, Step, WhichOrder};
pub use place::{Excerpt, Frame, Lock, LockMode};
pub use program::{Program, Thread};
pub use race::{Access, AccessKind, Conflict, Race, Suppression};
pub use raw_text::{bytes_of_text, text_of_bytes};
pub use replay::{
    InstanceCounts, OutputDifference, OutputPiece, Replay, ReplayOutcome, StateDifference,
};
pub use variable::{Variable, VariableKind};
pub use verdict::Verdict;

/// Whether a field can be left out of the JSON.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
