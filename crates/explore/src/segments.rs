//! Two racing accesses and the rest of their segments, one after the other (Narayanasamy et al. 2007, section 4.2).
//!
//! The first thread is brought to its access and runs to the end of the segment; then the second. With both orders run
//! from the same moment, what they leave in memory can be compared. A segment ends where its thread synchronises: at a
//! system call, a function that is watched for that, its end, or a limit.
//!
//! Departs from the paper: an order that takes another path than the recorded one is not given up. Told where the segments
//! of the recorded order ended, both threads run on until they stand there, in turns, since one may wait for what the
//! other is about to write.

use crate::alternate::Access;
use serde::{Deserialize, Serialize};
use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, NextAccess, Reason, RoundRobin, Scheduler};

/// How far the two segments have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentsState {
    /// The second thread is on its way to its access, so that both orders begin alike.
    Facing,
    /// The first thread is on its way to its access.
    BringingFirst,
    /// It runs to the end of its segment.
    InFirst,
    /// The second thread is on its way.
    BringingSecond,
    /// It runs to the end of its segment.
    InSecond,
    /// Both accesses are made; the threads are on their way to where they shall stop.
    Completing,
    /// Both segments are over.
    Done,
    /// Nobody could run who may: this order cannot be had.
    Blocked,
    /// Both accesses are made, but a thread does not come to where it shall stop.
    Astray,
}

/// Who is brought to its access first. The other one, which may stand before its own already, is held meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentsStart {
    /// The thread whose segment comes first.
    First,
    /// The other one: it stays before its access until the first segment is over.
    Second,
}

/// Where a segment ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentEnd {
    /// At a synchronisation or a system call.
    At {
        /// The thread's next instruction.
        pc: u64,
        /// Its stack pointer: the same call, not one further in or out.
        sp: u64,
    },
    /// With the thread.
    Gone,
    /// Nowhere in particular: it was longer than segments may be.
    Cut,
}

impl SegmentEnd {
    /// True if a thread that stands here is where it shall be.
    #[must_use]
    pub fn fits(self, wanted: SegmentEnd) -> bool {
        self == wanted || wanted == SegmentEnd::Cut
    }
}

/// How things stand at a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Situation {
    /// The running thread's next instruction.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Somebody waits for a time.
    pub sleepers: bool,
    /// Who has the lock that the running thread has just begun to wait for.
    pub owner: Option<u32>,
    /// The running thread's last system call was part of a lock: it is made or not by chance.
    pub by_chance: bool,
}

/// Turns of each thread on the way to where both shall stop.
const TURNS_MAX: u64 = 8;

/// Runs one segment after the other.
#[derive(Clone, Debug)]
pub struct Segments {
    accesses: [Access; 2],
    length_max: u64,
    state: SegmentsState,
    others: RoundRobin,
    /// The thread has been let past its access.
    past: bool,
    /// Where the threads shall stop.
    wanted: Option<[SegmentEnd; 2]>,
    /// Where they have.
    ends: [Option<SegmentEnd>; 2],
    /// Times that the first thread passes where it shall stop.
    skips: u32,
    /// It has been stopped there before a watched instruction, and will be asked about it once more when it goes on.
    asked_again: bool,
    /// They stand where they shall.
    stopped: [bool; 2],
    /// They had to go on from there, since the other one waits for them: to wherever the next segment ends.
    released: [bool; 2],
    situation: Situation,
    /// Instructions of all threads by which both must stand where they shall.
    deadline: u64,
}

impl Segments {
    /// The segment of `first`, then that of `second`, each of at most so many instructions after its access. With
    /// `wanted`, the threads run on until they stand there. `start` says who is brought to its access first.
    #[must_use]
    pub fn new(
        first: Access,
        second: Access,
        length_max: u64,
        wanted: Option<[SegmentEnd; 2]>,
        start: SegmentsStart,
    ) -> Self {
        Segments {
            accesses: [first, second],
            length_max,
            state: match start {
                SegmentsStart::First => SegmentsState::BringingFirst,
                SegmentsStart::Second => SegmentsState::Facing,
            },
            others: RoundRobin::new(length_max),
            past: false,
            wanted,
            ends: [None; 2],
            skips: 0,
            asked_again: false,
            stopped: [false; 2],
            released: [false; 2],
            situation: Situation::default(),
            deadline: 0,
        }
    }

    /// The first thread passes the place where it shall stop so many times: it may have come there too early.
    #[must_use]
    pub fn skipping(mut self, skips: u32) -> Self {
        self.skips = skips;
        self
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> SegmentsState {
        self.state
    }

    /// Where the segments ended, as far as they have.
    #[must_use]
    pub fn ends(&self) -> [Option<SegmentEnd>; 2] {
        self.ends
    }

    /// The thread that is kept from running.
    #[must_use]
    pub fn held(&self) -> Option<u32> {
        match self.state {
            SegmentsState::BringingFirst => Some(self.accesses[1].thread),
            SegmentsState::Facing | SegmentsState::BringingSecond => Some(self.accesses[0].thread),
            SegmentsState::Completing => (0..2)
                .find(|index| self.stopped[*index])
                .map(|index| self.accesses[index].thread),
            _ => None,
        }
    }

    /// Says how things stand, before each decision.
    pub fn tell(&mut self, situation: Situation) {
        self.situation = situation;
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
            SegmentsState::BringingFirst => self.thread(1),
            _ => self.thread(0),
        };
        if let (Reason::Watched, Some(next), Some(current)) =
            (point.reason, point.next, point.current)
        {
            let here = current == thread
                && next.pc == pc
                && next.accesses.iter().any(|access| access.conflicts(&other));
            if here && self.state == SegmentsState::Facing {
                self.state = SegmentsState::BringingFirst;
                return self.run(held);
            }
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
        if point.runnable.contains(&thread) && point.reason != Reason::Yielded {
            return self.run(thread);
        }
        self.let_others(point, &[held])
            .unwrap_or_else(|| self.give_up(SegmentsState::Blocked, point))
    }

    /// True if time alone may bring somebody else along.
    fn can_wait(&self, point: &DecisionPoint<'_>) -> bool {
        self.situation.sleepers && (self.deadline == 0 || point.retired < self.deadline)
    }

    /// Anybody who is not held, also later.
    fn let_others(&mut self, point: &DecisionPoint<'_>, held: &[ThreadId]) -> Option<Decision> {
        let free: Vec<ThreadId> = point
            .runnable
            .iter()
            .copied()
            .filter(|thread| !held.contains(thread))
            .collect();
        if free.is_empty() {
            return self.can_wait(point).then_some(Decision::Wait);
        }
        Some(self.others.decide(&DecisionPoint {
            runnable: &free,
            reason: Reason::Yielded,
            next: None,
            ..*point
        }))
    }

    fn give_up(&mut self, state: SegmentsState, point: &DecisionPoint<'_>) -> Decision {
        self.state = state;
        self.run(point.runnable[0])
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
        if self.is_racing(point) || self.is_by_chance(point) {
            return Decision::Continue;
        }
        let first = self.state == SegmentsState::InFirst;
        let index = usize::from(!first);
        let end = self.end(point.reason);
        self.ends[index] = Some(end);
        self.stopped[index] = self
            .wanted
            .is_some_and(|wanted| end.fits(wanted[index]) && !self.skips(index));
        if first {
            let passes = self
                .wanted
                .is_some_and(|wanted| end.fits(wanted[0]) && !self.stopped[0]);
            self.asked_again = passes && point.reason == Reason::Watched;

            self.state = SegmentsState::BringingSecond;
            return self.bring(point);
        }
        self.deadline = point
            .retired
            .saturating_add(self.length_max.saturating_mul(TURNS_MAX));
        self.state = SegmentsState::Completing;
        self.complete(point)
    }

    /// The racing instructions are watched, but no end of a segment.
    fn is_racing(&self, point: &DecisionPoint<'_>) -> bool {
        let is_racing = |pc: u64| self.accesses.iter().any(|access| access.pc == pc);
        point.reason == Reason::Watched && point.next.is_some_and(|next| is_racing(next.pc))
    }

    /// A lock that somebody else wants is a system call more: the segment goes on.
    fn is_by_chance(&self, point: &DecisionPoint<'_>) -> bool {
        let own =
            (0..2).any(|index| point.current == Some(self.thread(index)) && !self.stopped[index]);
        own && point.reason == Reason::SystemCall && self.situation.by_chance
    }

    fn end(&self, reason: Reason) -> SegmentEnd {
        match reason {
            Reason::Exited => SegmentEnd::Gone,
            Reason::QuantumEnd => SegmentEnd::Cut,
            _ => SegmentEnd::At {
                pc: self.situation.pc,
                sp: self.situation.sp,
            },
        }
    }

    /// Both accesses are made: who does not stand where it shall goes on.
    fn complete(&mut self, point: &DecisionPoint<'_>) -> Decision {
        let Some(wanted) = self.wanted else {
            return self.give_up(SegmentsState::Done, point);
        };
        if self.is_racing(point) || self.is_by_chance(point) {
            return Decision::Continue;
        }
        for (index, wanted) in wanted.into_iter().enumerate() {
            if point.current == Some(self.thread(index)) && !self.stopped[index] {
                let end = self.end(point.reason);
                let moved = self.ends[index] != Some(end) && end != SegmentEnd::Cut;
                self.ends[index] = Some(end);
                self.stopped[index] = if self.released[index] {
                    moved
                } else {
                    end.fits(wanted) && !self.skips(index)
                };
            }
        }
        let left: Vec<usize> = (0..2).filter(|index| !self.stopped[*index]).collect();
        if left.is_empty() {
            return self.give_up(SegmentsState::Done, point);
        }
        let gone = left
            .iter()
            .any(|index| self.ends[*index] == Some(SegmentEnd::Gone));
        if gone || point.retired >= self.deadline {
            return self.give_up(SegmentsState::Astray, point);
        }
        let held: Vec<ThreadId> = (0..2)
            .filter(|index| !left.contains(index))
            .map(|index| self.thread(index))
            .collect();
        self.run_on(point, &left)
            .or_else(|| self.release_owner(point))
            .or_else(|| self.let_others(point, &held))
            .or_else(|| self.release(point))
            .unwrap_or_else(|| self.give_up(SegmentsState::Astray, point))
    }

    /// True if this is a time that the thread passes the place where it shall stop.
    fn skips(&mut self, index: usize) -> bool {
        if index == 0 && std::mem::take(&mut self.asked_again) {
            return true;
        }
        let skips = index == 0 && self.skips > 0;
        self.skips -= u32::from(skips);
        skips
    }

    /// The other one waits for a lock that a thread has which stands where it shall: nobody else can help.
    fn release_owner(&mut self, point: &DecisionPoint<'_>) -> Option<Decision> {
        let owner = self
            .situation
            .owner
            .filter(|_| point.reason == Reason::Blocked)?;
        self.release_any(point, &|thread| thread == ThreadId(owner))
    }

    /// The other one waits for a thread that stands where it shall, perhaps for a lock: that one has to go on.
    fn release(&mut self, point: &DecisionPoint<'_>) -> Option<Decision> {
        self.release_any(point, &|_| true)
    }

    fn release_any(
        &mut self,
        point: &DecisionPoint<'_>,
        which: &dyn Fn(ThreadId) -> bool,
    ) -> Option<Decision> {
        let index = (0..2).find(|index| {
            let thread = self.thread(*index);
            let can_go_on = point.runnable.contains(&thread) && which(thread);
            self.stopped[*index] && !self.released[*index] && can_go_on
        })?;
        self.released[index] = true;
        self.stopped[index] = false;
        Some(self.run(self.thread(index)))
    }

    /// One of the two that are not where they shall be: the same one as long as it comes along by itself.
    fn run_on(&self, point: &DecisionPoint<'_>, left: &[usize]) -> Option<Decision> {
        let goes_on = matches!(point.reason, Reason::SystemCall | Reason::Watched);
        let mut candidates: Vec<ThreadId> = left.iter().map(|index| self.thread(*index)).collect();
        candidates.sort_by_key(|thread| (Some(*thread) == point.current) != goes_on);
        candidates
            .into_iter()
            .find(|thread| point.runnable.contains(thread))
            .map(|thread| self.run(thread))
    }

    fn thread(&self, index: usize) -> ThreadId {
        ThreadId(self.accesses[index].thread)
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
            SegmentsState::Facing
            | SegmentsState::BringingFirst
            | SegmentsState::BringingSecond => self.bring(point),
            SegmentsState::InFirst | SegmentsState::InSecond => self.in_segment(point),
            SegmentsState::Completing => self.complete(point),
            SegmentsState::Done | SegmentsState::Blocked | SegmentsState::Astray => {
                self.run(point.runnable[0])
            }
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

    fn standing(pc: u64) -> Situation {
        Situation {
            pc,
            sp: 0x1000,
            sleepers: false,
            owner: None,
            by_chance: false,
        }
    }

    fn chosen(decision: Decision) -> Option<u32> {
        match decision {
            Decision::Continue | Decision::Wait => None,
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
        let mut segments = Segments::new(
            access(2, 0x20),
            access(1, 0x10),
            500,
            None,
            SegmentsStart::First,
        );
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
        let mut segments = Segments::new(
            access(2, 0x20),
            access(1, 0x10),
            500,
            None,
            SegmentsStart::First,
        );
        segments.decide(&at(Reason::Blocked, 2, &held, None));
        assert_eq!(segments.state(), SegmentsState::Blocked);
    }

    #[test]
    fn a_thread_that_waits_for_the_others_write_goes_on_after_it() {
        let all = [ThreadId(1), ThreadId(2)];
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
        let end = |pc| SegmentEnd::At { pc, sp: 0x1000 };
        let wanted = Some([end(0x90), end(0x80)]);
        let mut segments = Segments::new(
            access(2, 0x20),
            access(1, 0x10),
            500,
            wanted,
            SegmentsStart::First,
        );
        segments.decide(&at(Reason::Watched, 2, &all, next(0x20)));
        // It goes round its loop until its turn is over.
        segments.decide(&at(Reason::QuantumEnd, 2, &all, None));
        segments.decide(&at(Reason::Watched, 1, &all, next(0x10)));
        segments.tell(standing(0x80));
        let go_on = segments.decide(&at(Reason::SystemCall, 1, &all, None));
        assert_eq!(segments.state(), SegmentsState::Completing);
        assert_eq!(chosen(go_on), Some(2));
        segments.tell(standing(0x90));
        segments.decide(&at(Reason::SystemCall, 2, &all, None));
        assert_eq!(segments.state(), SegmentsState::Done);
    }

    #[test]
    fn a_thread_that_passes_its_place_once_is_not_stopped_there_when_it_is_asked_again() {
        let all = [ThreadId(1), ThreadId(2)];
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
        let end = |pc| SegmentEnd::At { pc, sp: 0x1000 };
        let wanted = Some([end(0x70), end(0x80)]);
        let start = SegmentsStart::First;
        let segments = Segments::new(access(2, 0x20), access(1, 0x10), 500, wanted, start);
        let mut segments = segments.skipping(1);
        segments.decide(&at(Reason::Watched, 2, &all, next(0x20)));
        segments.tell(standing(0x70));
        segments.decide(&at(Reason::Watched, 2, &all, next(0x70)));
        segments.decide(&at(Reason::Watched, 1, &all, next(0x10)));
        segments.tell(standing(0x80));
        let go_on = segments.decide(&at(Reason::Watched, 1, &all, next(0x80)));
        assert_eq!(chosen(go_on), Some(2));
        segments.tell(standing(0x70));
        let passes = segments.decide(&at(Reason::Watched, 2, &all, next(0x70)));
        assert_eq!(chosen(passes), Some(2));
        assert_eq!(segments.state(), SegmentsState::Completing);
        segments.decide(&at(Reason::Watched, 2, &all, next(0x70)));
        assert_eq!(segments.state(), SegmentsState::Done);
    }

    #[test]
    fn a_thread_that_ends_elsewhere_is_astray() {
        let all = [ThreadId(1), ThreadId(2)];
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
        let end = |pc| SegmentEnd::At { pc, sp: 0x1000 };
        let wanted = Some([end(0x90), end(0x80)]);
        let mut segments = Segments::new(
            access(2, 0x20),
            access(1, 0x10),
            500,
            wanted,
            SegmentsStart::First,
        );
        segments.decide(&at(Reason::Watched, 2, &all, next(0x20)));
        segments.decide(&at(Reason::Exited, 2, &all[..1], None));
        segments.decide(&at(Reason::Watched, 1, &all[..1], next(0x10)));
        segments.decide(&at(Reason::SystemCall, 1, &all[..1], None));
        assert_eq!(segments.state(), SegmentsState::Astray);
    }

    #[test]
    fn a_thread_that_has_what_the_other_one_waits_for_goes_one_segment_further() {
        let all = [ThreadId(1), ThreadId(2)];
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
        let end = |pc| SegmentEnd::At { pc, sp: 0x1000 };
        let wanted = Some([end(0x90), end(0x80)]);
        let mut segments = Segments::new(
            access(2, 0x20),
            access(1, 0x10),
            500,
            wanted,
            SegmentsStart::First,
        );
        segments.decide(&at(Reason::Watched, 2, &all, next(0x20)));
        segments.tell(standing(0x70));
        segments.decide(&at(Reason::Watched, 2, &all, next(0x70)));
        segments.decide(&at(Reason::Watched, 1, &all, next(0x10)));
        segments.tell(standing(0x80));
        segments.decide(&at(Reason::Watched, 1, &all, next(0x80)));
        // Thread 2 waits for the lock that thread 1 is about to release.
        segments.tell(standing(0x75));
        let released = segments.decide(&at(Reason::Blocked, 2, &all[..1], None));
        assert_eq!(chosen(released), Some(1));
        segments.tell(standing(0x85));
        let go_on = segments.decide(&at(Reason::SystemCall, 1, &all, None));
        assert_eq!(chosen(go_on), Some(2));
        segments.tell(standing(0x90));
        segments.decide(&at(Reason::SystemCall, 2, &all, None));
        assert_eq!(segments.state(), SegmentsState::Done);
        assert_eq!(segments.ends(), [Some(end(0x90)), Some(end(0x85))]);
    }

    #[test]
    fn time_passes_while_the_thread_that_is_brought_sleeps() {
        let held = [ThreadId(1)];
        let mut segments = Segments::new(
            access(2, 0x20),
            access(1, 0x10),
            500,
            None,
            SegmentsStart::First,
        );
        segments.tell(Situation {
            sleepers: true,
            ..standing(0x70)
        });
        let wait = segments.decide(&at(Reason::Blocked, 2, &held, None));
        assert_eq!(wait, Decision::Wait);
        assert_eq!(segments.state(), SegmentsState::BringingFirst);
    }

    #[test]
    fn both_stand_before_their_accesses_when_the_recorded_order_begins() {
        let all = [ThreadId(1), ThreadId(2)];
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
        let start = SegmentsStart::Second;
        let mut segments = Segments::new(access(1, 0x10), access(2, 0x20), 500, None, start);
        let bring = segments.decide(&at(Reason::Start, 1, &all, None));
        assert_eq!(chosen(bring), Some(2));
        let first = segments.decide(&at(Reason::Watched, 2, &all, next(0x20)));
        assert_eq!(chosen(first), Some(1));
        segments.decide(&at(Reason::Watched, 1, &all, next(0x10)));
        assert_eq!(segments.state(), SegmentsState::InFirst);
    }
}
