//! Two racing accesses and the rest of their segments, one after the other (Narayanasamy et al. 2007, section 4.2).
//!
//! The first thread is brought to its access and runs to the end of the segment; then the second. With both orders run
//! from the same moment, what they leave in memory can be compared. A segment ends where its thread synchronises: at a
//! system call, a function that is watched for that, its end, or a limit.

use crate::alternate::Access;
use serde::{Deserialize, Serialize};
use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, NextAccess, Reason, RoundRobin, Scheduler};

/// How far the two segments have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentsState {
    /// The first thread is on its way to its access.
    BringingFirst,
    /// It runs to the end of its segment.
    InFirst,
    /// The second thread is on its way.
    BringingSecond,
    /// It runs to the end of its segment.
    InSecond,
    /// Both segments are over.
    Done,
    /// Nobody could run who may: this order cannot be had.
    Blocked,
}

/// Runs one segment after the other.
#[derive(Clone, Debug)]
pub struct Segments {
    accesses: [Access; 2],
    length_max: u64,
    state: SegmentsState,
    others: RoundRobin,
    /// The thread has been let past its access.
    past: bool,
}

impl Segments {
    /// The segment of `first`, then that of `second`, each of at most so many instructions after its access.
    #[must_use]
    pub fn new(first: Access, second: Access, length_max: u64) -> Self {
        Segments {
            accesses: [first, second],
            length_max,
            state: SegmentsState::BringingFirst,
            others: RoundRobin::new(length_max),
            past: false,
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> SegmentsState {
        self.state
    }

    /// The access at hand and the one it conflicts with.
    fn at_hand(&self) -> (&Access, NextAccess) {
        let first = matches!(
            self.state,
            SegmentsState::BringingFirst | SegmentsState::InFirst
        );
        let (own, other) = if first { (0, 1) } else { (1, 0) };
        let other = &self.accesses[other];
        let conflicting = NextAccess {
            address: other.address,
            len: other.len,
            write: other.write,
        };
        (&self.accesses[own], conflicting)
    }

    fn bring(&mut self, point: &DecisionPoint<'_>) -> Decision {
        let (access, other) = self.at_hand();
        let (thread, pc) = (ThreadId(access.thread), access.pc);
        let held = match self.state {
            SegmentsState::BringingFirst => ThreadId(self.accesses[1].thread),
            _ => ThreadId(self.accesses[0].thread),
        };
        if let (Reason::Watched, Some(next), Some(current)) =
            (point.reason, point.next, point.current)
        {
            let here = current == thread
                && next.pc == pc
                && next.accesses.iter().any(|access| access.conflicts(&other));
            if here {
                self.state = match self.state {
                    SegmentsState::BringingFirst => SegmentsState::InFirst,
                    _ => SegmentsState::InSecond,
                };
                self.past = false;
                return self.run(thread);
            }
            if current != held {
                return Decision::Continue;
            }
        }
        // The thread itself first; others only where it waits for them.
        if point.runnable.contains(&thread) {
            return self.run(thread);
        }
        let free: Vec<ThreadId> = point
            .runnable
            .iter()
            .copied()
            .filter(|thread| *thread != held)
            .collect();
        if free.is_empty() {
            self.state = SegmentsState::Blocked;
            return self.run(point.runnable[0]);
        }
        self.others.decide(&DecisionPoint {
            runnable: &free,
            reason: Reason::Yielded,
            next: None,
            ..*point
        })
    }

    /// The thread at hand is in its segment: anything but its access ends it.
    fn in_segment(&mut self, point: &DecisionPoint<'_>) -> Decision {
        let (access, _) = self.at_hand();
        let (thread, pc) = (ThreadId(access.thread), access.pc);
        if point.current == Some(thread)
            && point.reason == Reason::Watched
            && !self.past
            && point.next.is_some_and(|next| next.pc == pc)
        {
            self.past = true;
            return Decision::Continue;
        }
        let is_racing = |pc: u64| self.accesses.iter().any(|access| access.pc == pc);
        if point.reason == Reason::Watched && point.next.is_some_and(|next| is_racing(next.pc)) {
            return Decision::Continue;
        }
        if self.state == SegmentsState::InFirst {
            self.state = SegmentsState::BringingSecond;
            return self.bring(point);
        }
        self.state = SegmentsState::Done;
        self.run(point.runnable[0])
    }

    fn run(&self, thread: ThreadId) -> Decision {
        Decision::Run {
            thread,
            instructions_max: self.length_max,
        }
    }
}

impl Scheduler for Segments {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        match self.state {
            SegmentsState::BringingFirst | SegmentsState::BringingSecond => self.bring(point),
            SegmentsState::InFirst | SegmentsState::InSecond => self.in_segment(point),
            SegmentsState::Done | SegmentsState::Blocked => self.run(point.runnable[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_schedule::Next;

    fn access(thread: u32, pc: u64) -> Access {
        Access {
            thread,
            pc,
            address: 0x100,
            len: 4,
            write: true,
        }
    }

    fn at<'a>(
        reason: Reason,
        current: u32,
        runnable: &'a [ThreadId],
        next: Option<Next<'a>>,
    ) -> DecisionPoint<'a> {
        DecisionPoint {
            reason,
            current: Some(ThreadId(current)),
            runnable,
            retired: 0,
            next,
        }
    }

    fn chosen(decision: Decision) -> Option<u32> {
        match decision {
            Decision::Continue => None,
            Decision::Run { thread, .. } => Some(thread.0),
        }
    }

    #[test]
    fn one_segment_after_the_other() {
        let all = [ThreadId(0), ThreadId(1), ThreadId(2)];
        let touched = [NextAccess {
            address: 0x100,
            len: 4,
            write: true,
        }];
        let next = |pc| {
            Some(Next {
                pc,
                accesses: &touched,
            })
        };
        let mut segments = Segments::new(access(2, 0x20), access(1, 0x10), 500);
        let start = at(Reason::Start, 1, &all, None);
        assert_eq!(chosen(segments.decide(&start)), Some(2));
        assert_eq!(
            chosen(segments.decide(&at(Reason::Watched, 2, &all, next(0x20)))),
            Some(2)
        );
        assert_eq!(segments.state(), SegmentsState::InFirst);
        // The segment ends with a system call; the other thread stands before its access already.
        assert_eq!(
            chosen(segments.decide(&at(Reason::SystemCall, 2, &all, None))),
            Some(1)
        );
        assert_eq!(segments.state(), SegmentsState::BringingSecond);
        assert_eq!(
            chosen(segments.decide(&at(Reason::Watched, 1, &all, next(0x10)))),
            Some(1)
        );
        segments.decide(&at(Reason::QuantumEnd, 1, &all, None));
        assert_eq!(segments.state(), SegmentsState::Done);
    }

    #[test]
    fn a_thread_that_waits_for_the_held_one_cannot_come_first() {
        let held = [ThreadId(1)];
        let mut segments = Segments::new(access(2, 0x20), access(1, 0x10), 500);
        segments.decide(&at(Reason::Blocked, 2, &held, None));
        assert_eq!(segments.state(), SegmentsState::Blocked);
    }
}
