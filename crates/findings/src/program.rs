//! The program whose races these are.

use serde::{Deserialize, Serialize};

use crate::Frame;

/// A program, what it was given, and how the recorded run ended.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Program {
    /// As it was named by the user; see [`text_of_bytes`](crate::text_of_bytes) for names that are not UTF-8.
    pub path: String,
    /// Its arguments, without its own name.
    #[serde(default)]
    pub args: Vec<String>,
    /// As a shell shows it: the exit code, or 128 + N when signal N ended the program. None when it did not end by
    /// itself.
    #[serde(default)]
    pub exit: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How it ended, in words, where the exit code does not say it all: `deadlock: 3 threads wait for each other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// The build id of the executable, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// A thread of the recorded run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Thread {
    /// Counted in the order of creation; accesses name it. The thread that the program starts with has the smallest.
    pub id: u32,
    /// The name it gave itself or was given, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who created it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Where it was created, in its parent, the innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub created_at: Vec<Frame>,
}
