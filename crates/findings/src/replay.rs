//! What replaying both orders showed (replay-classification, sections 4 and 5), and what was written out differently.

use serde::{Deserialize, Serialize};

use crate::{Frame, is_default};

/// The outcome of replaying both orders of every instance to the end of their segments.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Replay {
    /// Of the race: no-state-change only if it is that of all instances.
    pub outcome: ReplayOutcome,
    /// What the instances gave.
    #[serde(default)]
    pub instances: InstanceCounts,
}

/// What replaying both orders gives.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayOutcome {
    /// Both orders leave the same registers and memory.
    NoStateChange,
    /// They leave different ones.
    StateChange,
    /// The other order cannot be replayed on the recorded path.
    ReplayFailure,
}

impl ReplayOutcome {
    /// As JSON and reports spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NoStateChange => "no-state-change",
            Self::StateChange => "state-change",
            Self::ReplayFailure => "replay-failure",
        }
    }
}

/// How many instances gave which outcome.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct InstanceCounts {
    /// Both orders left the same.
    #[serde(default)]
    pub no_state_change: u64,
    /// They did not.
    #[serde(default)]
    pub state_change: u64,
    /// The other order was not on the recorded path.
    #[serde(default)]
    pub replay_failure: u64,
    /// Not tried: there were too many, or the time was up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub not_tried: u64,
}

/// A variable that the two orders leave with different values.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct StateDifference {
    /// By name, or a register, or `memory at` and an address.
    pub variable: String,
    /// Its value after the recorded order.
    #[serde(default)]
    pub old: String,
    /// Its value after the other order.
    #[serde(default)]
    pub new: String,
}

impl StateDifference {
    /// Whether it says more than where.
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.variable.starts_with("memory at ")
    }
}

/// The first difference between what the two orders handed to output system calls.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct OutputDifference {
    /// `standard output`, `standard error`, or the name of the file or connection.
    #[serde(default)]
    pub stream: String,
    /// How many bytes were the same before it.
    #[serde(default)]
    pub position: u64,
    /// Whether the same whole pieces were written in another order: nothing is lost or changed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub only_interleaving: bool,
    /// What the recorded order wrote there.
    #[serde(default)]
    pub primary: OutputPiece,
    /// What the other order wrote there.
    #[serde(default)]
    pub alternate: OutputPiece,
}

/// What was written around a difference.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct OutputPiece {
    /// As text; see [`text_of_bytes`](crate::text_of_bytes). Starts at the beginning of the line that differs, ends
    /// after some lines; empty where nothing was written.
    #[serde(default)]
    pub text: String,
    /// Who wrote it, the innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}
