//! What is remembered of each thread.

use crate::calls::Calls;
use crate::hooks::Hook;
use crate::repeats::Repeats;
use rustc_hash::FxHashMap;
use verdict_events::LockMode;

/// A thread of the guest.
#[derive(Default, Debug)]
pub(crate) struct ThreadState {
    pub(crate) calls: Calls,
    /// Calls of noted functions that have not returned, innermost last.
    pub(crate) hooks: Vec<Hook>,
    pub(crate) repeats: Repeats,
    /// Locks held, how, and how often they were taken.
    pub(crate) held: FxHashMap<u64, (LockMode, u32)>,
    /// A block that it is about to free and does not, and what it frees instead.
    pub(crate) withheld: Option<(u64, u64)>,
    /// The function that it is about to create another thread for.
    pub(crate) starting: Option<u64>,
    /// It has done something.
    pub(crate) begun: bool,
    /// It will do nothing more.
    pub(crate) ended: bool,
    /// The last instruction was the program's.
    pub(crate) in_program: bool,
    /// The last instruction of the program that was not in a stub.
    pub(crate) last_own: u64,
    /// The instruction whose access is being told; 0 outside of accesses.
    pub(crate) at: u64,
    pub(crate) fs_base: u64,
    pub(crate) gs_base: u64,
}

impl ThreadState {
    /// It goes on at `pc`; what an exception or a jump has left is over.
    pub(crate) fn goes_on_at(&mut self, pc: u64) {
        self.calls.goes_on_at(pc);
        let depth = self.calls.depth();
        while self.hooks.last().is_some_and(|hook| hook.depth > depth) {
            self.hooks.pop();
        }
    }

    /// True unless it just goes on.
    #[inline(always)]
    pub(crate) fn expects_something(&self) -> bool {
        self.calls.is_returning() || !self.hooks.is_empty()
    }

    /// Code of a library runs. The loader may look for the function first.
    pub(crate) fn enters_library(&mut self, pc: u64) {
        if std::mem::take(&mut self.in_program)
            && let Some(frame) = self.calls.top()
        {
            frame.left = self.last_own;
            frame.entered = pc;
        }
    }

    /// True if what happens now is the inside of a noted function.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hooks.last().is_some_and(|hook| hook.hides)
    }
}
