//! The two orders of a race, told step by step.

use serde::{Deserialize, Serialize};

use crate::is_default;

/// One order of the racing accesses and what came of it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// Which of the two.
    pub order: WhichOrder,
    /// What matters of what the threads did, as it happened: a few dozen steps at most.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// How it ended, in plain words: `prints 2`, `crash: ...`.
    #[serde(default)]
    pub ends: String,
    /// The recording that repeats it, relative to the result folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// How often a thread loses its turn in that recording that could have gone on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptions: Option<u64>,
}

/// Which order of the racing accesses.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum WhichOrder {
    /// As recorded.
    Primary,
    /// The other one.
    Alternate,
}

/// One step of one thread.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Step {
    /// Who does it.
    pub thread: u32,
    /// What is done, in a few words: `reads 0 from counter`, `locks queue.mutex`, `SIGSEGV`.
    #[serde(default)]
    pub text: String,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The text of that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether this is one of the racing accesses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub racing: bool,
}
