//! Each thread in turn, for a fixed number of instructions.

use crate::{Decision, DecisionPoint, Reason, Scheduler};
use verdict_events::ThreadId;

/// Threads take turns in the order of their ids; a turn ends with the quantum, a wait, or a yield.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum: u64,
}

impl RoundRobin {
    /// A turn is `quantum` instructions (at least 1).
    pub fn new(quantum: u64) -> Self {
        RoundRobin {
            quantum: quantum.max(1),
        }
    }
}

impl Scheduler for RoundRobin {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        if matches!(point.reason, Reason::SystemCall | Reason::Watched) {
            return Decision::Continue;
        }
        Decision::Run {
            thread: successor(point.current, point.runnable),
            instructions_max: self.quantum,
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

    #[test]
    fn system_calls_do_not_end_a_turn() {
        assert_eq!(decide(Reason::SystemCall, 0, &[0, 1]), Decision::Continue);
    }
}
