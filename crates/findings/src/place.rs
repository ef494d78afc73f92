//! Places in a program: frames of a call stack, locks, pieces of source.

use serde::{Deserialize, Serialize};

use crate::is_default;

/// One level of a call stack. Stacks are lists of frames, the innermost first.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Frame {
    /// The function, demangled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file, as the compiler called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The binary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Where in the binary's file.
    #[serde(default)]
    pub offset: u64,
    /// Whether the compiler has put this function into that of the next frame, which then has the same offset.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inlined: bool,
}

/// A lock that a thread holds.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lock {
    /// The variable that is the lock, or what else names it: `queue.mutex`, `lock of 40 bytes on the heap`.
    #[serde(default)]
    pub name: String,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Held by one or by many.
    #[serde(default)]
    pub mode: LockMode,
    /// Where it was taken, the innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_at: Vec<Frame>,
}

/// How a lock is held.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum LockMode {
    /// By one thread.
    #[default]
    Exclusive,
    /// By any number of readers.
    Shared,
}

/// Some lines of a source file, as they were when the races were found.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Excerpt {
    /// The number of the first of the lines, from 1.
    #[serde(default)]
    pub first_line: u32,
    /// The lines, without their ends.
    #[serde(default)]
    pub lines: Vec<String>,
}

impl Excerpt {
    /// The text of a line, if it is among those here.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&str> {
        let index = number.checked_sub(self.first_line)?;
        self.lines.get(index as usize).map(String::as_str)
    }
}
