//! Findings in, verdicts out: the races of a document are steered to and classified, and what came of it is written
//! into the same document with names and lines instead of addresses.
#![forbid(unsafe_code)]

mod classified;
mod confirmed;
mod modules;
mod names;

pub use classified::classify_findings;
pub use confirmed::confirm_findings;
pub use modules::Modules;
