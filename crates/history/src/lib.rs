//! What earlier runs said about the races of a program, and what the user said about them.
//!
//! Everything ever said is kept, in one file of lines that is only appended to (`log`). What is known about each race, and what
//! has changed, follows from reading it from the beginning ([`History`]). Nothing here reads a clock: days are given.
#![forbid(unsafe_code)]

mod comparison;
mod day;
mod entry;
mod known;
mod log;
mod severity;

pub use comparison::{Change, Comparison, KnownRace};
pub use day::{Day, DayError};
pub use entry::{Entry, Mark, Opinion, Run, Seen};
pub use known::{History, Known};
pub use log::{Log, LogError, Reading};
pub use severity::Severity;
