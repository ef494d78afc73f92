//! Each thread in turn, for a fixed number of instructions.

use crate::{Decision, DecisionPoint, Reason, Scheduler, SplitMix};
use verdict_events::ThreadId;

/// How many turns may be used up before their lengths begin to vary. A thread that takes a lock, looks and releases it in a
/// loop, waiting for others, can be interrupted with the lock in its hands at the end of every turn, for ever: turns
/// of one length end at the same place of a loop once that length is a multiple of the loop's.
const EQUAL_TURNS: u64 = 200;
/// From then on turns are shorter by less than this part of the quantum.
const SHORTER_BY_PART: u64 = 8;

/// Threads take turns in the order of their ids; a turn ends with the quantum, a wait, or a yield.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum: u64,
    /// Turns that ended with the quantum.
    used_up: u64,
}

impl RoundRobin {
    /// A turn is `quantum` instructions (at least 1).
    pub fn new(quantum: u64) -> Self {
        RoundRobin {
            quantum: quantum.max(1),
            used_up: 0,
        }
    }

    /// Instructions of the next turn.
    fn turn(&self) -> u64 {
        match self.quantum / SHORTER_BY_PART {
            range if range > 0 && self.used_up > EQUAL_TURNS => {
                self.quantum - SplitMix::new(self.used_up).below(range)
            }
            _ => self.quantum,
        }
    }
}

impl Scheduler for RoundRobin {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        if matches!(point.reason, Reason::SystemCall | Reason::Watched) {
            return Decision::Continue;
        }
        self.used_up += u64::from(point.reason == Reason::QuantumEnd);
        Decision::Run {
            thread: successor(point.current, point.runnable),
            instructions_max: self.turn(),
        }
    }
}

/// The next runnable thread after `current` in cyclic order.
fn successor(current: Option<ThreadId>, runnable: &[ThreadId]) -> ThreadId {
    let after = current.map_or(0, |current| {
        runnable.partition_point(|thread| *thread <= current)
    });
    runnable[after % runnable.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(reason: Reason, current: u32, runnable: &[u32]) -> Decision {
        let runnable: Vec<_> = runnable.iter().copied().map(ThreadId).collect();
        RoundRobin::new(10).decide(&DecisionPoint {
            reason,
            current: Some(ThreadId(current)),
            runnable: &runnable,
            retired: 0,
            next: None,
        })
    }

    fn runs(thread: u32) -> Decision {
        Decision::Run {
            thread: ThreadId(thread),
            instructions_max: 10,
        }
    }

    #[test]
    fn turns_go_round_by_id() {
        assert_eq!(decide(Reason::QuantumEnd, 0, &[0, 1, 4]), runs(1));
        assert_eq!(decide(Reason::QuantumEnd, 1, &[0, 1, 4]), runs(4));
        assert_eq!(decide(Reason::QuantumEnd, 4, &[0, 1, 4]), runs(0));
        assert_eq!(decide(Reason::Blocked, 2, &[0, 1, 4]), runs(4));
        assert_eq!(decide(Reason::Yielded, 0, &[0]), runs(0));
    }

    /// A loop of 61 instructions, 50 of them with a lock that the other thread wants: turns of a multiple of 61 that begin
    /// in the middle of it end there.
    #[test]
    fn no_loop_is_in_step_with_the_turns_for_ever() {
        let (round, locked) = (61, 50);
        let mut scheduler = RoundRobin::new(round * 1000);
        let runnable = [ThreadId(0)];
        let mut at = 10;
        let turns_until_free = (0..1000).find(|_| {
            let Decision::Run {
                instructions_max, ..
            } = scheduler.decide(&DecisionPoint {
                reason: Reason::QuantumEnd,
                current: Some(ThreadId(0)),
                runnable: &runnable,
                retired: 0,
                next: None,
            })
            else {
                return false;
            };
            at = (at + instructions_max) % round;
            at >= locked
        });
        assert!(turns_until_free.is_some());
    }

    #[test]
    fn system_calls_do_not_end_a_turn() {
        assert_eq!(decide(Reason::SystemCall, 0, &[0, 1]), Decision::Continue);
    }
}
