//! Long turns, and one thread that has them first.

use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, Reason, RoundRobin, Scheduler};

/// Threads run until they wait; whenever somebody is chosen, the preferred one is if it can run. Nobody loses a turn who could go on,
/// but who has used up a whole one, which somebody who waits in a loop does.
#[derive(Clone, Debug)]
pub struct Preferring {
    preferred: Option<ThreadId>,
    quantum: u64,
    others: RoundRobin,
}

impl Preferring {
    /// Turns are `quantum` instructions.
    #[must_use]
    pub fn new(preferred: Option<u32>, quantum: u64) -> Self {
        Preferring {
            preferred: preferred.map(ThreadId),
            quantum,
            others: RoundRobin::new(quantum),
        }
    }
}

impl Scheduler for Preferring {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        let has_had_its_turn = matches!(point.reason, Reason::QuantumEnd | Reason::Yielded);
        let goes_on = matches!(point.reason, Reason::SystemCall | Reason::Watched);
        let preferred = self.preferred.filter(|thread| {
            let again = has_had_its_turn && point.current == Some(*thread);
            !goes_on && !again && point.runnable.contains(thread)
        });
        match preferred {
            Some(thread) => Decision::Run {
                thread,
                instructions_max: self.quantum,
            },
            None => self.others.decide(point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(reason: Reason, current: u32, runnable: &[u32]) -> Option<u32> {
        let runnable: Vec<ThreadId> = runnable.iter().copied().map(ThreadId).collect();
        let point = DecisionPoint {
            reason,
            current: Some(ThreadId(current)),
            runnable: &runnable,
            retired: 0,
            next: None,
        };
        match Preferring::new(Some(2), 100).decide(&point) {
            Decision::Run { thread, .. } => Some(thread.0),
            _ => None,
        }
    }

    #[test]
    fn the_preferred_thread_comes_before_others_that_wait_for_a_turn() {
        assert_eq!(next(Reason::Blocked, 0, &[1, 2, 3]), Some(2));
        assert_eq!(next(Reason::Blocked, 0, &[1, 3]), Some(1));
        assert_eq!(next(Reason::Exited, 3, &[0, 1]), Some(0));
    }

    #[test]
    fn nobody_loses_a_turn_to_it() {
        assert_eq!(next(Reason::SystemCall, 1, &[1, 2]), None);
        assert_eq!(next(Reason::Watched, 1, &[1, 2]), None);
    }

    #[test]
    fn who_waits_in_a_loop_lets_others_run() {
        assert_eq!(next(Reason::QuantumEnd, 2, &[1, 2]), Some(1));
        assert_eq!(next(Reason::Yielded, 2, &[1, 2, 3]), Some(3));
    }
}
