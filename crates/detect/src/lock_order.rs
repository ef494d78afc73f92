//! Lock-order graph: cycles of locks that threads take while they hold others (Havelund 2000, "GoodLock").
//!
//! In: events in trace order. Out: cycles, each a deadlock that another schedule may have: different threads, each holds
//! one lock of the cycle and wants the next, and no lock is held by two of them that would keep them apart.
//! Misses: locks that are taken by nobody in the trace; cycles of more than [`CYCLE_MAX`] locks. False alarms: order
//! made by other means than locks; steering to the cycle tells.
//! Departs from the paper: edges of a thread with itself are kept by site, since that is where to steer to.

use std::collections::{BTreeMap, BTreeSet};
use verdict_events::{Event, EventKind, SiteId, SyncId, ThreadId};

/// Longest cycle that is looked for.
pub const CYCLE_MAX: usize = 4;
/// Cycles that are reported, at most.
const CYCLES_MAX: usize = 64;

/// A thread that held one lock and took another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LockStep {
    /// The lock it held.
    pub holds: SyncId,
    /// The lock it took.
    pub wants: SyncId,
    /// Who.
    pub thread: ThreadId,
    /// Where it took the one it held.
    pub held_since: SiteId,
    /// Where it took the other.
    pub site: SiteId,
    /// All that it held.
    held: BTreeSet<SyncId>,
}

/// Threads each of which holds what another one wants, all around.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LockCycle {
    /// Each wants what the next one holds.
    pub steps: Vec<LockStep>,
}

/// The order in which threads take locks.
#[derive(Default, Debug)]
pub struct LockOrder {
    held: BTreeMap<ThreadId, Vec<(SyncId, SiteId)>>,
    steps: BTreeSet<LockStep>,
}

impl LockOrder {
    /// The next event of the trace.
    pub fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Acquire(lock, _) => self.acquire(event.thread, event.site, lock),
            EventKind::Release(lock, _) => {
                let held = self.held.entry(event.thread).or_default();
                if let Some(last) = held.iter().rposition(|(other, _)| *other == lock) {
                    held.remove(last);
                }
            }
            _ => {}
        }
    }

    fn acquire(&mut self, thread: ThreadId, site: SiteId, lock: SyncId) {
        let held = self.held.entry(thread).or_default();
        let all: BTreeSet<SyncId> = held.iter().map(|(lock, _)| *lock).collect();
        // A lock that may be taken twice waits for nobody the second time.
        if !all.contains(&lock) {
            for (holds, held_since) in held.iter() {
                self.steps.insert(LockStep {
                    holds: *holds,
                    wants: lock,
                    thread,
                    held_since: *held_since,
                    site,
                    held: all.clone(),
                });
            }
        }
        held.push((lock, site));
    }

    /// All cycles, each once, the shortest first.
    #[must_use]
    pub fn cycles(&self) -> Vec<LockCycle> {
        let mut by_lock: BTreeMap<SyncId, Vec<&LockStep>> = BTreeMap::new();
        for step in &self.steps {
            by_lock.entry(step.holds).or_default().push(step);
        }
        let mut found = BTreeSet::new();
        for length in 2..=CYCLE_MAX {
            for first in &self.steps {
                extend(&mut vec![first], length, &by_lock, &mut found);
            }
        }
        let mut cycles: Vec<LockCycle> = found.into_iter().collect();
        cycles.sort_by_key(|cycle| cycle.steps.len());
        cycles.truncate(CYCLES_MAX);
        cycles
    }
}

/// Goes on from the last step to those that hold what it wants.
fn extend<'a>(
    path: &mut Vec<&'a LockStep>,
    length: usize,
    by_lock: &BTreeMap<SyncId, Vec<&'a LockStep>>,
    found: &mut BTreeSet<LockCycle>,
) {
    let (first, last) = (path[0], path[path.len() - 1]);
    if path.len() == length {
        if last.wants == first.holds && found.len() < CYCLES_MAX {
            let steps = path.iter().map(|step| (*step).clone()).collect();
            found.insert(LockCycle { steps });
        }
        return;
    }
    for next in by_lock.get(&last.wants).into_iter().flatten() {
        // A cycle is found from its smallest step only.
        if *next > first && path.iter().all(|step| can_meet(step, next)) {
            path.push(next);
            extend(path, length, by_lock, found);
            path.pop();
        }
    }
}

/// Two threads can be at these steps at the same time.
fn can_meet(one: &LockStep, other: &LockStep) -> bool {
    one.thread != other.thread && one.held.is_disjoint(&other.held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_events::LockMode;

    /// `1+a` is thread 1 taking lock a, `1-a` giving it up.
    fn cycles(trace: &str) -> Vec<String> {
        let mut order = LockOrder::default();
        for (at, word) in trace.split_whitespace().enumerate() {
            let bytes = word.as_bytes();
            let lock = SyncId(u64::from(bytes[2]));
            let kind = match bytes[1] {
                b'+' => EventKind::Acquire(lock, LockMode::Exclusive),
                _ => EventKind::Release(lock, LockMode::Exclusive),
            };
            order.event(&Event {
                thread: ThreadId(u32::from(bytes[0] - b'0')),
                site: SiteId(at as u32),
                kind,
            });
        }
        let name = |lock: SyncId| char::from(lock.0 as u8);
        let step =
            |step: &LockStep| format!("{}{}>{}", step.thread.0, name(step.holds), name(step.wants));
        let cycle = |cycle: &LockCycle| cycle.steps.iter().map(step).collect::<Vec<_>>().join(" ");
        order.cycles().iter().map(cycle).collect()
    }

    #[test]
    fn two_locks_in_two_orders() {
        assert_eq!(cycles("1+a 1+b 1-b 1-a 2+b 2+a 2-a 2-b"), ["1a>b 2b>a"]);
    }

    #[test]
    fn three_philosophers() {
        let trace = "1+a 1+b 1-b 1-a 2+b 2+c 2-c 2-b 3+c 3+a 3-a 3-c";
        assert_eq!(cycles(trace), ["1a>b 2b>c 3c>a"]);
    }

    #[test]
    fn one_order_is_none() {
        assert!(cycles("1+a 1+b 1-b 1-a 2+a 2+b 2-b 2-a").is_empty());
    }

    #[test]
    fn one_thread_alone_is_none() {
        assert!(cycles("1+a 1+b 1-b 1-a 1+b 1+a 1-a 1-b").is_empty());
    }

    #[test]
    fn a_common_lock_keeps_them_apart() {
        assert!(cycles("1+g 1+a 1+b 1-b 1-a 1-g 2+g 2+b 2+a 2-a 2-b 2-g").is_empty());
    }

    #[test]
    fn a_lock_that_is_taken_twice_is_no_edge() {
        assert!(cycles("1+a 1+b 1+a 1-a 1-b 1-a 2+a 2+b 2-b 2-a").is_empty());
    }
}
