//! Atomicity violations: one thread makes two accesses that belong together, and another one comes between.
//!
//! A thread that has made the first access is kept before the second, and whoever is about to make the third is kept
//! there, until both are so: then the third comes first.

use super::{Facing, RaceDirected};
use std::collections::BTreeMap;
use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, Next, NextAccess};

/// What each thread has accessed at the first site since it was last at the second.
pub(super) type Passed = BTreeMap<ThreadId, Vec<NextAccess>>;

/// More accesses of one thread are not remembered: a loop at the first site need not be told in full.
const PASSED_MAX: usize = 256;

/// The two threads of a violation.
struct Violation {
    owner: ThreadId,
    remote: ThreadId,
    address: u64,
    writes: [bool; 2],
}

impl RaceDirected {
    /// The thread makes the access that it stands before.
    pub(super) fn pass(&mut self, thread: ThreadId, next: &Next<'_>) {
        if self.is_at_second(next.pc) {
            self.passed.remove(&thread);
        }
        if self.target.first.contains(&next.pc) {
            let passed = self.passed.entry(thread).or_default();
            passed.extend(next.accesses.iter().take(PASSED_MAX - passed.len()));
        }
    }

    /// A thread stands before one of the three accesses.
    pub(super) fn arrive_at_third(
        &mut self,
        point: &DecisionPoint<'_>,
        thread: ThreadId,
        next: &Next<'_>,
    ) -> Decision {
        let between = self.passed.contains_key(&thread) && self.is_at_second(next.pc);
        if !between && !self.is_third(next.pc) {
            self.pass(thread, next);
            return Decision::Continue;
        }
        self.postpone(thread, next, self.now(point));
        let Some(found) = self.violation(thread) else {
            return self.another(point);
        };
        let (waiting, arrived_first) = match found.remote == thread {
            true => (found.owner, true),
            false => (found.remote, false),
        };
        let [owner_writes, remote_writes] = found.writes;
        self.note(Facing {
            retired: point.retired,
            waiting: (waiting.0, self.postponed[&waiting].pc),
            arrived: (thread.0, next.pc),
            waiting_writes: if arrived_first {
                owner_writes
            } else {
                remote_writes
            },
            arrived_writes: if arrived_first {
                remote_writes
            } else {
                owner_writes
            },
            address: found.address,
            arrived_first,
        });
        self.release(found.owner);
        self.release(found.remote);
        if arrived_first {
            self.released.remove(&thread);
            self.pass(thread, next);
            return Decision::Continue;
        }
        self.run(found.remote)
    }

    /// Two postponed threads, one of them this, that are a violation.
    fn violation(&self, thread: ThreadId) -> Option<Violation> {
        let others = || {
            self.postponed
                .keys()
                .copied()
                .filter(|other| *other != thread)
        };
        let as_remote = others().find_map(|owner| self.between(owner, thread));
        as_remote.or_else(|| others().find_map(|remote| self.between(thread, remote)))
    }

    /// Whether `remote` is about to come between two accesses of `owner`.
    fn between(&self, owner: ThreadId, remote: ThreadId) -> Option<Violation> {
        let first = self.passed.get(&owner)?;
        let (second, third) = (&self.postponed[&owner], &self.postponed[&remote]);
        if !self.is_at_second(second.pc) || !self.is_third(third.pc) {
            return None;
        }
        let belonging = second.accesses.iter().chain(first);
        let (own, other) = belonging
            .flat_map(|own| third.accesses.iter().map(move |other| (own, other)))
            .find(|(own, other)| own.conflicts(other))?;
        Some(Violation {
            owner,
            remote,
            address: own.address.max(other.address),
            writes: [own.write, other.write],
        })
    }

    fn is_at_second(&self, pc: u64) -> bool {
        self.target.second.contains(&pc)
    }

    fn is_third(&self, pc: u64) -> bool {
        self.target.further.iter().any(|site| site.contains(&pc))
    }
}
