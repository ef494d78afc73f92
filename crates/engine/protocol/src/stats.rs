//! What a run did. Everything but [`PartTimes`] is the same in every run of one config.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What `verdict exec --stats` shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Guest instructions executed, of all threads.
    pub instructions: u64,
    /// Each thread, in the order of creation.
    pub threads: Vec<ThreadStats>,
    /// Basic blocks translated, again included.
    pub blocks_translated: u64,
    /// Pages whose translations were thrown away because the guest wrote to them.
    pub pages_invalidated: u64,
    /// How often another thread went on.
    pub switches: u64,
    /// A hash over all switches: who, and at which instruction count.
    pub switches_hash: u64,
    /// System calls of the guest, by name.
    pub syscalls: BTreeMap<String, u64>,
    /// Signals delivered to guest handlers.
    pub signals: u64,
    /// Memory accesses, where they were logged.
    pub accesses: Option<AccessStats>,
    /// Times that a watched instruction was about to run.
    #[serde(default)]
    pub watch_stops: u64,
    /// What happened in the private world, where there was one.
    #[serde(default)]
    pub world: Option<WorldStats>,
    /// Where the time went, where it was measured. Differs from run to run.
    pub times: Option<PartTimes>,
}

/// A private world at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WorldStats {
    /// Bytes written to standard output and error.
    pub output_bytes: u64,
    /// The hash over them in order.
    pub output_hash: u64,
    /// How often the guest wanted to reach the outside and could not.
    pub held_back: u64,
    /// The first of these attempts, in words.
    pub attempts: Vec<String>,
}

/// One thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadStats {
    /// The id that the guest sees.
    pub tid: u32,
    /// Instructions executed.
    pub instructions: u64,
}

/// Logged accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AccessStats {
    /// How many words were logged.
    pub logged: u64,
    /// The hash over all of them in order, where asked for.
    pub hash: Option<u64>,
}

/// Nanoseconds of the executor's life, by what it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PartTimes {
    /// Until the first guest instruction.
    pub start_ns: u64,
    /// In translated code.
    pub guest_ns: u64,
    /// Translating.
    pub translate_ns: u64,
    /// In system calls, waiting for the outside world excluded.
    pub kernel_ns: u64,
    /// Waiting for the outside world.
    pub wait_ns: u64,
    /// From start to end.
    pub total_ns: u64,
}

impl Stats {
    /// System calls of all names.
    #[must_use]
    pub fn syscalls_total(&self) -> u64 {
        self.syscalls.values().sum()
    }
}
