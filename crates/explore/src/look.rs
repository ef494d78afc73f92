//! Are all threads in loops that nobody can end? What each of them does is noted for a while; a thread that is found to be
//! stuck ([`stuck`]) stays so only for as long as nobody else writes what its loop depends on. That others wrote
//! before they came to a loop of their own counts, too: the thread that waits for it may just not have had its turn.

use crate::{Holder, Step, Stuck, stuck};
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a thread after which it must be in its loop.
const STEPS: usize = 3000;

/// What threads have done since the look began.
#[derive(Debug, Default)]
pub struct Look {
    steps: BTreeMap<usize, Vec<Step>>,
    stuck: BTreeMap<usize, Stuck>,
}

impl Look {
    /// The thread has made this step.
    pub fn note(&mut self, thread: usize, step: Step) {
        self.steps.entry(thread).or_default().push(step);
    }

    /// True if enough steps of this thread are known to tell whether it is stuck.
    #[must_use]
    pub fn has_seen_enough_of(&self, thread: usize) -> bool {
        let steps = self.steps.get(&thread);
        steps.is_some_and(|steps| steps.len() >= STEPS)
    }

    /// Looks for a loop in what this thread has done. True if it is in one that it cannot leave by itself.
    pub fn judge(&mut self, thread: usize) -> bool {
        let steps = self.steps.get(&thread).map_or(&[][..], Vec::as_slice);
        let found = stuck(steps);
        let is_stuck = found.is_some();
        self.stuck.extend(found.map(|found| (thread, found)));
        is_stuck
    }

    /// The threads that were found to be stuck, with their loops.
    #[must_use]
    pub fn stuck(&self) -> &BTreeMap<usize, Stuck> {
        &self.stuck
    }

    /// True if nobody has done anything meanwhile that could let one of the stuck threads go on.
    #[must_use]
    pub fn nobody_helped(&self) -> bool {
        self.stuck.iter().all(|(waiting, found)| {
            let others = self.steps.iter().filter(|(thread, _)| *thread != waiting);
            let mut made = others.flat_map(|(_, steps)| steps);
            !made.any(|step| may_change(step, &found.depends_on))
        })
    }
}

fn may_change(step: &Step, bytes: &BTreeSet<u64>) -> bool {
    let mut written = step.writes.iter().chain(&step.may_write);
    let hits = |holder: &Holder| matches!(holder, Holder::Byte(byte) if bytes.contains(byte));
    step.opaque || written.any(hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: u64 = 0x100;

    /// `cmp byte [flag], 0; je` for as long as it takes.
    fn waits_for(look: &mut Look, thread: usize, flag: u64) {
        while !look.has_seen_enough_of(thread) {
            look.note(
                thread,
                Step {
                    pc: 0x14,
                    reads: vec![Holder::Byte(flag)],
                    writes: vec![Holder::Flags],
                    bytes: vec![0],
                    ..Step::default()
                },
            );
            look.note(
                thread,
                Step {
                    pc: 0x18,
                    decides: true,
                    reads: vec![Holder::Flags],
                    ..Step::default()
                },
            );
        }
        assert!(look.judge(thread));
    }

    fn writes(byte: u64) -> Step {
        Step {
            pc: 0x10,
            writes: vec![Holder::Byte(byte)],
            ..Step::default()
        }
    }

    #[test]
    fn threads_that_wait_for_what_nobody_writes_are_stuck() {
        let mut look = Look::default();
        waits_for(&mut look, 0, TURN);
        waits_for(&mut look, 1, TURN);
        assert!(look.nobody_helped());
        assert_eq!(look.stuck().len(), 2);
    }

    #[test]
    fn a_thread_that_handed_over_before_it_began_to_wait_has_helped() {
        let mut look = Look::default();
        waits_for(&mut look, 0, TURN);
        look.note(1, writes(TURN));
        waits_for(&mut look, 1, TURN);
        assert!(!look.nobody_helped());
    }

    #[test]
    fn a_loop_that_writes_what_another_waits_for_helps() {
        let mut look = Look::default();
        waits_for(&mut look, 0, TURN);
        for _ in 0..STEPS {
            look.note(1, writes(TURN));
        }
        assert!(look.judge(1));
        assert!(!look.nobody_helped());
    }

    #[test]
    fn what_a_thread_did_before_its_own_loop_does_not_end_it() {
        let mut look = Look::default();
        look.note(0, writes(TURN));
        look.note(
            0,
            Step {
                opaque: true,
                ..Step::default()
            },
        );
        waits_for(&mut look, 0, TURN);
        assert!(look.nobody_helped());
    }

    #[test]
    fn nobody_knows_what_a_system_call_of_another_thread_has_changed() {
        let mut look = Look::default();
        waits_for(&mut look, 0, TURN);
        look.note(
            1,
            Step {
                opaque: true,
                ..Step::default()
            },
        );
        assert!(!look.nobody_helped());
    }
}
