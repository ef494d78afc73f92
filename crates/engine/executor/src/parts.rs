//! Looking at parts of a run: where plain accesses begin to be told, and cease to be.

use crate::Executor;
use verdict_protocol::Part;

impl Executor {
    fn part(&self) -> Option<Part> {
        Some(self.config.sample?.at(self.kernel.retired))
    }

    /// Instructions until another part begins. It does so at exactly the same instruction in every look at the run.
    pub(crate) fn part_stop(&self) -> Option<u64> {
        Some(self.part()?.end - self.kernel.retired)
    }

    /// Sees to it that plain accesses are told from here on if they are in this part.
    pub(crate) fn see_to_part(&mut self) {
        let Some(Part { told, .. }) = self.part() else {
            return;
        };
        if !self.cache.tell_plain(told) {
            return;
        }
        self.forget_passed();
        self.tell_part(told);
    }
}
