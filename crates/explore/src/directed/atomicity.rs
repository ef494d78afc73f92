//! Atomicity violations: one thread makes two accesses that belong together, and another one comes between.
//!
//! A thread that has made the first access is held back wherever it can be until it has made the second one: at the
//! second access itself, but also before, since it may have to take a lock first that the other thread needs, too. Who is
//! about to make the third access waits until somebody is between, and then goes first. The violation is there when the
//! second access follows.

use super::{Facing, Postponed, RaceDirected};
use std::collections::BTreeMap;
use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, Next, NextAccess};

/// What is known of atomicity violations in the making.
#[derive(Clone, Default, Debug)]
pub(super) struct Atomicity {
    /// What each thread has accessed at the first site since it was last at the second.
    passed: BTreeMap<ThreadId, Vec<NextAccess>>,
    /// Threads that another one has come between, as long as their second access is to come.
    begun: BTreeMap<ThreadId, Facing>,
    /// The last of those.
    last: Option<Facing>,
}

/// More accesses of one thread are not remembered: a loop at the first site need not be told in full.
const PASSED_MAX: usize = 256;
/// Where a thread stands that is held before it comes to any site.
const NOWHERE: u64 = 0;

impl RaceDirected {
    /// A violation that has begun: the stacks of its threads tell most while the third access is to come.
    #[must_use]
    pub fn begun(&self) -> Option<Facing> {
        self.atomicity.last
    }

    /// The thread makes the access that it stands before.
    pub(super) fn pass(&mut self, thread: ThreadId, next: &Next<'_>) {
        if self.target.aim != super::Aim::Atomicity {
            return;
        }
        let atomicity = &mut self.atomicity;
        if self.target.second.contains(&next.pc)
            && atomicity.passed.remove(&thread).is_some()
            && let Some(facing) = atomicity.begun.remove(&thread)
        {
            self.note(facing);
        }
        let atomicity = &mut self.atomicity;
        if self.target.first.contains(&next.pc) {
            if atomicity.begun.remove(&thread).is_some() {
                // It went another way and begins anew.
                atomicity.passed.remove(&thread);
            }
            let passed = atomicity.passed.entry(thread).or_default();
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
        let comes_between = match self.is_third(next.pc) {
            true => self.owner_of(thread, next.accesses),
            false => None,
        };
        if let Some((owner, own, other)) = comes_between {
            self.begin(point, owner, (thread, next.pc), own, other);
            self.pass(thread, next);
            return Decision::Continue;
        }
        if self.is_held_back(thread) || self.is_third(next.pc) {
            self.postpone(thread, next, self.now(point));
            return self.another(point);
        }
        self.pass(thread, next);
        Decision::Continue
    }

    /// The current thread is somewhere between its two accesses: others may go on first.
    pub(super) fn hold_between(&mut self, point: &DecisionPoint<'_>) {
        let Some(thread) = point.current else {
            return;
        };
        let can_run = point.runnable.contains(&thread) && !self.postponed.contains_key(&thread);
        if can_run && self.is_held_back(thread) {
            let held = Postponed {
                pc: NOWHERE,
                accesses: Vec::new(),
                since: self.now(point),
            };
            self.postponed.insert(thread, held);
        }
    }

    /// Lets somebody who waits at the third access go, if there is somebody to come between.
    pub(super) fn come_between(&mut self, point: &DecisionPoint<'_>) -> Option<Decision> {
        let waiting = self.postponed.iter();
        let mut waiting = waiting.filter(|(_, postponed)| self.is_third(postponed.pc));
        let (remote, pc, found) = waiting.find_map(|(remote, postponed)| {
            let found = self.owner_of(*remote, &postponed.accesses)?;
            Some((*remote, postponed.pc, found))
        })?;
        let (owner, own, other) = found;
        self.begin(point, owner, (remote, pc), own, other);
        self.release(remote);
        Some(self.run(remote))
    }

    /// True while a thread is between, and nobody else has been there.
    fn is_held_back(&self, thread: ThreadId) -> bool {
        let atomicity = &self.atomicity;
        atomicity.passed.contains_key(&thread) && !atomicity.begun.contains_key(&thread)
    }

    /// A thread that these accesses of another one would come between, with the two accesses that conflict.
    fn owner_of(
        &self,
        remote: ThreadId,
        accesses: &[NextAccess],
    ) -> Option<(ThreadId, NextAccess, NextAccess)> {
        let owners = self.atomicity.passed.iter();
        let mut owners =
            owners.filter(|(owner, _)| **owner != remote && self.is_held_back(**owner));
        owners.find_map(|(owner, passed)| {
            let ahead = self.postponed.get(owner).into_iter();
            let belonging = passed.iter().chain(ahead.flat_map(|at| &at.accesses));
            let (own, other) = belonging
                .flat_map(|own| accesses.iter().map(move |other| (own, other)))
                .find(|(own, other)| own.conflicts(other))?;
            Some((*owner, *own, *other))
        })
    }

    fn begin(
        &mut self,
        point: &DecisionPoint<'_>,
        owner: ThreadId,
        remote: (ThreadId, u64),
        own: NextAccess,
        other: NextAccess,
    ) {
        let second = self.target.second.first().copied();
        let facing = Facing {
            retired: point.retired,
            waiting: (owner.0, second.unwrap_or(NOWHERE)),
            arrived: (remote.0.0, remote.1),
            waiting_writes: own.write,
            arrived_writes: other.write,
            address: own.address.max(other.address),
            arrived_first: true,
        };
        self.atomicity.begun.insert(owner, facing);
        self.atomicity.last = Some(facing);
        self.release(owner);
    }

    fn is_third(&self, pc: u64) -> bool {
        self.target.further.iter().any(|site| site.contains(&pc))
    }
}
