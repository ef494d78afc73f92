//! Local conflict detection (Banerjee et al., algorithm 3), the one in the Intel Thread Checker.
//!
//! Keeps, per location, the last segment to write and the last to read it. Sound; finds every location with an
//! output or flow race (theorems 9 and 11); `inconclusive` where only local input conflicts show, since
//! one may hide an anti race (theorem 12, remark 13.2).

use crate::limited::{self, Keep, Record};
use crate::{Algorithm, Detector, PairBy};

pub(crate) fn detector(by: PairBy) -> Box<dyn Detector> {
    limited::detector::<Local>(Algorithm::Local, by)
}

#[derive(Clone, Default)]
struct Local {
    last_write: Option<Record>,
    last_read: Option<Record>,
}

impl Keep for Local {
    const INPUT_IS_INCONCLUSIVE: bool = true;

    fn access(
        &mut self,
        now: Record,
        parallel: impl Fn(&Record) -> bool,
        seen: impl FnMut(&Record),
    ) {
        self.last_write
            .iter()
            .chain(&self.last_read)
            .filter(|last| parallel(last))
            .for_each(seen);
        if now.kind.is_write() {
            self.last_write = Some(now);
        } else {
            self.last_read = Some(now);
        }
    }

    fn kept(&self) -> u32 {
        u32::from(self.last_write.is_some()) + u32::from(self.last_read.is_some())
    }
}
