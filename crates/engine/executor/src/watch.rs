//! Watched instructions: the engine gets control before one runs, with the guest's registers and memory as the
//! instruction will find them, and the scheduler says who goes on.
//!
//! Watching changes nothing that the guest can notice: instructions are counted as ever, and schedulers that do not
//! care about watched instructions decide as if there were none.

use crate::Executor;
use verdict_kernel::Outcome;
use verdict_schedule::Reason;

/// What the executor remembers of watched instructions.
#[derive(Default, Debug)]
pub(crate) struct WatchState {
    /// The thread that runs the instruction it stands before, and that instruction.
    passing: Option<(usize, u64)>,
    /// Times that a watched instruction was about to run.
    pub(crate) stops: u64,
}

impl Executor {
    /// The current thread stands before a watched instruction.
    pub(crate) fn at_watched(&mut self) -> Outcome {
        self.watch.stops += 1;
        let (current, pc) = (self.kernel.current, self.kernel.thread().registers.rip);
        self.decide(Reason::Watched);
        if self.kernel.current == current {
            self.watch.passing = Some((current, pc));
        }
        Outcome::Continue
    }

    /// True if the instruction at `pc` must run in a block of its own: a store into code, or a watched instruction that
    /// the scheduler lets run.
    pub(crate) fn steps_alone(&mut self, pc: u64) -> bool {
        let passes = self
            .watch
            .passing
            .take()
            .is_some_and(|passing| passing == (self.loaded, pc));
        std::mem::take(&mut self.single_step) || passes
    }
}
