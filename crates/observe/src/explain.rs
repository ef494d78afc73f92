//! What was recognised as synchronisation, by which rule, and how often.

use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Why an event orders threads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SyncRule {
    /// A call of a function that was found by its symbol.
    Function(&'static str),
    /// A LOCK instruction, or an exchange with memory, of the program.
    LockInstruction,
    /// A plain access that debug information calls atomic.
    AtomicBySource,
    /// A plain access to memory that LOCK instructions also access, or that guards an initialisation.
    AtomicByPlace,
    /// Any access of a runtime for parallel programs to its own data.
    ParallelRuntime,
    /// A futex.
    Futex,
    /// Something was passed through the kernel.
    Descriptor,
    /// A thread was created.
    ThreadCreated,
    /// A thread has ended.
    ThreadEnded,
}

impl SyncRule {
    /// The rule for people.
    pub fn describe(&self) -> String {
        match self {
            SyncRule::Function(name) => format!("{name}, found by its symbol"),
            SyncRule::LockInstruction => "LOCK instructions and exchanges with memory".into(),
            SyncRule::AtomicBySource => {
                "plain accesses that debug information or source calls atomic".into()
            }
            SyncRule::AtomicByPlace => {
                "plain accesses to memory that LOCK instructions access too, and to guard variables"
                    .into()
            }
            SyncRule::ParallelRuntime => "accesses of an OpenMP runtime to its own data".into(),
            SyncRule::Futex => "futex system calls of the program".into(),
            SyncRule::Descriptor => "pipes, sockets and other descriptors".into(),
            SyncRule::ThreadCreated => "threads created".into(),
            SyncRule::ThreadEnded => "threads ended".into(),
        }
    }
}

/// How often each rule applied.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SyncSummary {
    /// Rules that applied, in a fixed order.
    pub rules: BTreeMap<SyncRule, u64>,
    /// How plain instructions were found to be atomic, and how many instructions each.
    pub atomic_by: BTreeMap<String, u64>,
    /// Noted functions that the program has, in alphabetical order, with how often they were called.
    pub functions: BTreeMap<String, u64>,
}

/// How often each rule applied, while counting. What happens millions of times is found by the address of its name.
#[derive(Default, Debug)]
pub(crate) struct SyncCounts {
    rules: FxHashMap<(std::mem::Discriminant<SyncRule>, usize), (SyncRule, u64)>,
    calls: FxHashMap<usize, (&'static str, u64)>,
    functions: BTreeSet<String>,
}

impl SyncCounts {
    pub(crate) fn count(&mut self, rule: SyncRule) {
        let name = match &rule {
            SyncRule::Function(name) => name.as_ptr() as usize,
            _ => 0,
        };
        let key = (std::mem::discriminant(&rule), name);
        self.rules.entry(key).or_insert((rule, 0)).1 += 1;
    }

    /// A noted function is there.
    pub(crate) fn function(&mut self, name: String) {
        self.functions.insert(name);
    }

    pub(crate) fn count_call(&mut self, name: &'static str) {
        let key = name.as_ptr() as usize;
        self.calls.entry(key).or_insert((name, 0)).1 += 1;
    }

    pub(crate) fn summary(self) -> SyncSummary {
        let mut summary = SyncSummary::default();
        for (rule, count) in self.rules.into_values() {
            *summary.rules.entry(rule).or_default() += count;
        }
        for name in self.functions {
            summary.functions.entry(name).or_default();
        }
        for (name, count) in self.calls.into_values() {
            *summary.functions.entry(name.to_owned()).or_default() += count;
        }
        summary
    }
}
