//! What steering the scheduler towards a race showed (RaceFuzzer).

use serde::{Deserialize, Serialize};

use crate::{ConsequenceKind, Frame};

/// The runs that tried to bring the two accesses face to face.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Confirmation {
    /// How many there were.
    #[serde(default)]
    pub runs: u64,
    /// How many of them brought the accesses face to face.
    #[serde(default)]
    pub hits: u64,
    /// A seed that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Why they can never meet, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<String>,
    /// The stacks of both threads at the moment they face each other, in the order of the race's accesses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Vec<Frame>>,
    /// What went wrong afterwards, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ObservedError>,
}

/// An error that followed the race in some runs.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct ObservedError {
    /// In a word.
    pub kind: ConsequenceKind,
    /// What happened, in plain words.
    #[serde(default)]
    pub detail: String,
    /// A seed that repeats it.
    pub seed: u64,
    /// In how many of the runs.
    #[serde(default)]
    pub runs: u64,
    /// Where, the innermost frame first.
    #[serde(default)]
    pub stack: Vec<Frame>,
    /// The recording that repeats it, relative to the result folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}
