//! Adjacent conflict detection (Banerjee et al., algorithm 2).
//!
//! Keeps, per location, the last segment to access it, and compares each access with that one. Sound: what it
//! calls `race` is one. Never `no-race` where there is a race (theorem 7), but `inconclusive` where only
//! adjacent input conflicts show (remark 8).

use crate::limited::{self, Keep, Record};
use crate::{Algorithm, Detector, PairBy};

pub(crate) fn detector(by: PairBy) -> Box<dyn Detector> {
    limited::detector::<Adjacent>(Algorithm::Adjacent, by)
}

#[derive(Clone, Default)]
struct Adjacent {
    last: Option<Record>,
}

impl Keep for Adjacent {
    const INPUT_IS_INCONCLUSIVE: bool = true;

    fn access(
        &mut self,
        now: Record,
        parallel: impl Fn(&Record) -> bool,
        seen: impl FnMut(&Record),
    ) {
        self.last
            .iter()
            .filter(|last| parallel(last))
            .for_each(seen);
        self.last = Some(now);
    }

    fn kept(&self) -> u32 {
        u32::from(self.last.is_some())
    }
}
