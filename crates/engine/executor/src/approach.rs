//! A copy whose schedule begins later: when a thread comes to a watched instruction.
//!
//! Until then threads have long turns. What a thread does depends on the others where they meet, so how many instructions it has
//! retired by then may be another number every time; how often it has come to the instruction is what tells the moment.

use crate::Executor;
use verdict_protocol::{Approach, RunOrder, RunSchedule};

/// What is awaited, and what begins then.
#[derive(Debug)]
pub(crate) struct Approaching {
    awaited: Approach,
    come: u64,
    schedule: RunSchedule,
    loaded: bool,
}

impl Approaching {
    pub(crate) fn new(awaited: Approach, order: &RunOrder) -> Self {
        Approaching {
            awaited,
            come: 0,
            schedule: order.schedule.clone(),
            loaded: order.loaded,
        }
    }
}

impl Executor {
    /// The current thread has come to a watched instruction. True if it is the awaited one: the schedule begins.
    pub(crate) fn has_arrived(&mut self, pc: u64) -> bool {
        let thread = self.kernel.thread().id.0;
        let Some(approaching) = &mut self.approaching else {
            return false;
        };
        if (approaching.awaited.thread, approaching.awaited.pc) != (thread, pc) {
            return false;
        }
        approaching.come += 1;
        if approaching.come < approaching.awaited.nth {
            return false;
        }
        if let Some(arrived) = self.approaching.take() {
            self.begin_schedule(&arrived.schedule, arrived.loaded);
        }
        true
    }
}
