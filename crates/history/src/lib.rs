//! What earlier runs said about the races of a program, and what the user said about them.
#![forbid(unsafe_code)]

mod comparison;

pub use comparison::{Change, Comparison, KnownRace};
