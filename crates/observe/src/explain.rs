//! What was recognised as synchronisation, by which rule, and how often.

use std::collections::BTreeMap;

/// Why an event orders threads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
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

impl SyncSummary {
    pub(crate) fn count(&mut self, rule: SyncRule) {
        *self.rules.entry(rule).or_default() += 1;
    }
}
