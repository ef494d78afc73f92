//! Findings in, verdicts out: the races of a document are steered to and classified, and what came of it is written
//! into the same document with names and lines instead of addresses.
#![forbid(unsafe_code)]

mod classified;
mod confirmed;
mod deadlocks;
mod doubts;
mod explored;
mod instructions;
mod label;
mod lines;
mod memory_errors;
mod modules;
mod names;
mod orders;
mod property;

pub use classified::classify_findings;
pub use confirmed::{Confirming, PairError, confirm_findings, confirm_pairs, confirm_triples};
pub use deadlocks::{SeenCycle, SeenStep, confirm_cycles};
pub use doubts::Doubts;
pub use explored::{Bounds, classify_explored};
pub use lines::{LineError, LinePair, LineTriple, SourceLine};
pub use memory_errors::memory_errors;
pub use modules::Modules;
pub use property::PropertyError;
