//! Sites of other races, on the way to the one that is steered to.
//!
//! What it takes to come to a race is often what another one does: two threads that release an object, because both saw
//! a count that was wrong. A switch at each of those sites gives that a chance; threads that wait there for each other make it
//! likely. Nobody counts those meetings.

use super::{RaceDirected, meeting};
use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, Next};

/// Of the time that threads wait at the race itself, the part that they wait here.
const PATIENCE_PART: u64 = 8;

impl RaceDirected {
    pub(super) fn is_other(&self, pc: u64) -> bool {
        self.target.others.contains(&pc) && !self.is_site(pc)
    }

    /// A thread stands before an access of another race.
    pub(super) fn arrive_at_other(
        &mut self,
        point: &DecisionPoint<'_>,
        thread: ThreadId,
        next: &Next<'_>,
    ) -> Decision {
        if self.released.remove(&thread) {
            return Decision::Continue;
        }
        if !self.target.meet_at_others || self.is_done_with(next.pc) {
            return self.another(point);
        }
        let rivals: Vec<ThreadId> = self
            .postponed
            .iter()
            .filter(|(other, postponed)| **other != thread && self.is_other(postponed.pc))
            .filter(|(_, postponed)| meeting(&postponed.accesses, next.accesses).is_some())
            .map(|(other, _)| *other)
            .collect();
        if !rivals.is_empty() && self.random.below(2) == 0 {
            return Decision::Continue;
        }
        self.postpone(thread, next, self.now(point));
        let Some(first) = rivals.first().copied() else {
            return self.another(point);
        };
        rivals.into_iter().for_each(|rival| self.release(rival));
        self.run(first)
    }

    /// Those who wait at another race: they are let go before anybody who waits at this one.
    pub(super) fn at_others(&self, threads: &[ThreadId]) -> Vec<ThreadId> {
        let waits = |thread: &&ThreadId| {
            let postponed = self.postponed.get(thread);
            postponed.is_some_and(|postponed| self.is_other(postponed.pc))
        };
        threads.iter().filter(waits).copied().collect()
    }

    /// How long a thread waits at a site.
    pub(super) fn patience_at(&self, pc: u64) -> u64 {
        if self.is_other(pc) {
            self.patience / PATIENCE_PART
        } else {
            self.patience
        }
    }
}
