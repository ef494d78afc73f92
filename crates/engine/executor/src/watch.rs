//! Watched instructions: the engine gets control before one runs, with the guest's registers and memory as the
//! instruction will find them, and the scheduler says who goes on.
//!
//! Watching changes nothing that the guest can notice: instructions are counted as ever, and schedulers that do not
//! care about watched instructions decide as if there were none.
//!
//! Two kinds of site need more than a look at one instruction: a call of the program, for which the called function
//! accesses the program's memory ([`crate::watched_calls`]), and an update in place, which is a load and a store
//! ([`crate::halves`]). Functions that free are watched to withhold what they free ([`crate::withhold`]): no scheduler
//! hears of that.

use crate::Executor;
use crate::halves::Half;
use crate::watched_calls::WatchedCalls;
use crate::withhold::Withheld;
use std::collections::BTreeMap;
use verdict_kernel::Outcome;
use verdict_schedule::Reason;

/// What the executor remembers of watched instructions.
#[derive(Default, Debug)]
pub(crate) struct WatchState {
    passing: Option<Passing>,
    /// Times that a watched instruction was about to run.
    pub(crate) stops: u64,
    pub(crate) calls: WatchedCalls,
    /// Threads that have loaded what they are about to update.
    pub(crate) halves: BTreeMap<usize, Half>,
    /// Freed blocks of a copy in which memory is not handed out again.
    pub(crate) withheld: Withheld,
}

/// A thread that runs the instructions it stands before, without being asked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Passing {
    thread: usize,
    pc: u64,
    instructions: u32,
}

impl Executor {
    /// The current thread stands before a watched instruction, or inside a watched call.
    pub(crate) fn at_watched(&mut self) -> Outcome {
        let pc = self.kernel.thread().registers.rip;
        if self.has_arrived(pc) {
            return Outcome::Continue;
        }
        let current = self.kernel.current;
        let inside = self.is_in_watched_call(pc);
        if self.kernel.current != current {
            return Outcome::Continue;
        }
        if inside {
            self.step_in_call(pc);
        } else if self.watch.withheld.begins_at(pc) {
            self.pass(pc, 1);
        } else if self.cache.is_watched(pc) {
            self.at_site(pc);
        }
        Outcome::Continue
    }

    fn at_site(&mut self, pc: u64) {
        self.watch.stops += 1;
        self.ask_at(pc);
        if self.scheduler.is_done_with(pc) || self.only_notes_too_many_stops() {
            self.cache.unwatch(pc);
        }
    }

    fn ask_at(&mut self, pc: u64) {
        if let Some(update) = self.update_to_split() {
            return self.at_update(pc, &update);
        }
        let current = self.kernel.current;
        self.decide(Reason::Watched);
        if self.kernel.current == current {
            self.pass(pc, 1);
        }
    }

    /// The current thread runs so many instructions from `pc` on as they are.
    pub(crate) fn pass(&mut self, pc: u64, instructions: u32) {
        let thread = self.kernel.current;
        self.watch.passing = Some(Passing {
            thread,
            pc,
            instructions,
        });
    }

    /// How many instructions from `pc` on must run in a block of their own, if any: a store into code, or what the
    /// scheduler lets pass.
    pub(crate) fn steps_alone(&mut self, pc: u64) -> Option<u32> {
        let passing = self.watch.passing.take();
        let passing = passing.filter(|passing| (passing.thread, passing.pc) == (self.loaded, pc));
        if passing.is_some() {
            self.join_halves(pc);
            self.withhold(pc);
        }
        let single_step = std::mem::take(&mut self.single_step);
        match passing {
            Some(_) if single_step => Some(1),
            Some(passing) => Some(passing.instructions),
            None => single_step.then_some(1),
        }
    }
}
