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

/// How often each rule applied, while counting.
#[derive(Default, Debug)]
pub(crate) struct SyncCounts {
    rules: FxHashMap<SyncRule, u64>,
    /// Events by rules that are calls of functions, and all calls.
    by_function: Tally,
    calls: Tally,
    functions: BTreeSet<String>,
}

impl SyncCounts {
    pub(crate) fn count(&mut self, rule: SyncRule) {
        match rule {
            SyncRule::Function(name) => self.by_function.count(name),
            _ => *self.rules.entry(rule).or_default() += 1,
        }
    }

    /// A noted function is there.
    pub(crate) fn function(&mut self, name: String) {
        self.functions.insert(name);
    }

    pub(crate) fn count_call(&mut self, name: &'static str) {
        self.calls.count(name);
    }

    pub(crate) fn summary(self) -> SyncSummary {
        let mut summary = SyncSummary::default();
        summary.rules.extend(self.rules);
        for (name, count) in self.by_function.counts() {
            *summary.rules.entry(SyncRule::Function(name)).or_default() += count;
        }
        for name in self.functions {
            summary.functions.entry(name).or_default();
        }
        for (name, count) in self.calls.counts() {
            *summary.functions.entry(name.to_owned()).or_default() += count;
        }
        summary
    }
}

/// Counts names that come millions of times. They are found by their addresses.
#[derive(Default, Debug)]
struct Tally {
    /// Where the address of the name says.
    latest: [(&'static str, u64); LATEST],
    others: FxHashMap<&'static str, u64>,
}

/// Programs have few functions that they call all the time.
const LATEST: usize = 32;

impl Tally {
    #[inline]
    fn count(&mut self, name: &'static str) {
        // Names lie side by side, and are a few bytes long.
        let latest = &mut self.latest[name.as_ptr() as usize / 8 % LATEST];
        if std::ptr::eq(latest.0, name) {
            latest.1 += 1;
            return;
        }
        let (other, count) = std::mem::replace(latest, (name, 1));
        *self.others.entry(other).or_default() += count;
    }

    /// All names and how often each was counted, in any order, perhaps several times.
    fn counts(self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.latest.into_iter().chain(self.others);
        all.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_counted_whoever_comes_between() {
        let names: Vec<&'static str> = (0..100)
            .map(|length| &*format!("function {length}").leak())
            .collect();
        let mut counts = SyncCounts::default();
        for round in 0..1000 {
            let name = names[round * round % 97];
            counts.count_call(name);
            counts.count(SyncRule::Function(name));
            counts.count(SyncRule::Futex);
        }
        let summary = counts.summary();
        for (number, name) in names.iter().enumerate() {
            let expected = (0..1000).filter(|round| round * round % 97 == number);
            let expected = expected.count() as u64;
            let counted = summary.functions.get(*name).copied();
            assert_eq!(counted.unwrap_or(0), expected);
            let rule = SyncRule::Function(name);
            assert_eq!(summary.rules.get(&rule).copied().unwrap_or(0), expected);
        }
        assert_eq!(summary.rules[&SyncRule::Futex], 1000);
    }
}
