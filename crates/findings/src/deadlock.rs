//! Deadlocks: cycles of locks, and what steering to them showed.

use serde::{Deserialize, Serialize};

use crate::{Frame, Program};

/// The lock cycles of one program.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct DeadlockFindings {
    /// What kind of document this is.
    pub schema: DeadlockSchema,
    /// Whose.
    pub program: Program,
    /// The shortest first.
    pub cycles: Vec<LockCycle>,
}

/// What kind of document it is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeadlockSchema {
    /// Lock cycles.
    #[serde(rename = "verdict.deadlocks/1")]
    Deadlocks1,
}

/// Threads each of which was seen to hold one lock and take the next one's.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct LockCycle {
    /// Each takes what the next one holds.
    pub steps: Vec<LockStep>,
    /// Whether a run really ended in it.
    pub confirmed: bool,
    /// Runs that were steered to it.
    pub runs: u64,
    /// Of these, runs in which a thread stood before each lock.
    pub hits: u64,
    /// Of these, runs that ended in a deadlock.
    pub deadlocks: u64,
    /// A seed that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The threads of that deadlock, as they stood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<StuckThread>,
    /// A recording that ends in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// A thread that held one lock and took another.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct LockStep {
    /// Which thread.
    pub thread: u32,
    /// The lock that it held.
    pub holds: String,
    /// Where it had taken it.
    pub held_since: Frame,
    /// The lock that it took.
    pub wants: String,
    /// Where.
    pub at: Frame,
}

/// A thread that waits for a lock.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct StuckThread {
    /// Which thread.
    pub thread: u32,
    /// What it waits for.
    pub waits_for: String,
    /// The thread that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
    /// Where it stands, the innermost frame first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}
