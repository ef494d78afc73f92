//! What was hit by racing accesses.

use serde::{Deserialize, Serialize};

use crate::Frame;

/// The variable or the block of memory that both accesses touch.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Variable {
    /// With its field or element, as one would write it: `stats.pushed`, `queue->items[3]`. None where only the memory is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it lives.
    #[serde(default)]
    pub kind: VariableKind,
    /// Its type, as the source has it.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// The source file of its declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of its declaration, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The bytes of the whole variable or block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How far into it the accesses reach first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The binary that a global is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The thread that allocated a heap block, or whose stack it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The function whose stack frame holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Where a heap block was allocated, the innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated_at: Vec<Frame>,
}

/// Where a variable lives.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum VariableKind {
    /// In the data of a binary.
    Global,
    /// In a block from an allocator.
    Heap,
    /// In a stack frame.
    Stack,
    /// In the memory of one thread, used by another.
    ThreadLocal,
    /// Not known.
    #[default]
    Unknown,
}
