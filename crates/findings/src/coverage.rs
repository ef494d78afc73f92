//! What was done, and what was not: a report that finds nothing is worth as much as this says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Something that was not looked at, and may hide a race or an effect.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct CoverageNote {
    /// The stage that did not look: `record`, `detect`, `confirm`, `classify`.
    #[serde(default)]
    pub stage: String,
    /// What was not covered and why, in a sentence without a full stop.
    pub what: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// What a stage did, in numbers that are the same in every run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct StageStatistics {
    /// `record`, `detect`, `confirm`, `classify`.
    pub stage: String,
    /// By name, in plural: `instructions`, `events`, `threads`, `runs`.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
}
