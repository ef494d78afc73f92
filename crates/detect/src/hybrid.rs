//! Hybrid detection (O'Callahan & Choi 2003, as used by RaceFuzzer, section 2.2, phase 1): predicts.
//!
//! Two conflicting accesses are a candidate if they hold no common lock and neither happens before the
//! other by fork, join and notify alone. Locks, barriers, semaphores and atomics order nothing: in another
//! run they may be passed in another order.
//! Misses: races hidden by an unrelated common lock. False alarms: order made by data (a flag under a lock), by
//! barriers, semaphores and atomics; `confirm` removes them.
//! Departs from the paper: a lock that both accesses hold shared keeps nothing apart.

use verdict_clocks::Rules;
use verdict_events::{Event, ThreadId};

use crate::complete::{Complete, Guard};
use crate::locksets::{LocksetId, Locksets};
use crate::machine::Machine;
use crate::{Algorithm, Detector, Keep, PairBy};

pub(crate) fn detector(by: PairBy, keep: Keep) -> Box<dyn Detector> {
    let judge = Complete::new(Locksets::default(), by, keep);
    Box::new(Machine::new(Algorithm::Hybrid, judge))
}

impl Guard for Locksets {
    const RULES: Rules = Rules::Messages;

    fn synchronise(&mut self, event: &Event) {
        Locksets::synchronise(self, event);
    }

    fn current(&self, thread: ThreadId) -> LocksetId {
        Locksets::current(self, thread)
    }

    fn keep_apart(&mut self, a: LocksetId, b: LocksetId) -> bool {
        Locksets::keep_apart(self, a, b)
    }

    fn common(&mut self, a: LocksetId, b: LocksetId) -> Option<LocksetId> {
        Locksets::common(self, a, b)
    }
}
