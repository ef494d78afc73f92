//! Current conflict detection (Banerjee et al., algorithm 5; Itzkovitz et al. 1999, Pozniansky & Schuster 2003).
//!
//! Keeps, per location and thread, the last segment to write and the last to read it. Says `race` for exactly the
//! locations that have one (theorem 17); not every race of such a location is found.
//!
//! Departs from the paper: atomic stores and loads have their own two records, as they do not race with
//! each other; and a thread's records outlive it, as what comes later may be parallel to them.

use crate::limited::{self, Keep, Record};
use crate::{AccessKind, Algorithm, Detector, PairBy};

pub(crate) fn detector(by: PairBy) -> Box<dyn Detector> {
    limited::detector::<Current>(Algorithm::Current, by)
}

#[derive(Clone, Default)]
struct Current {
    /// At most one for each thread and kind of access.
    last: Vec<Record>,
}

impl Keep for Current {
    const INPUT_IS_INCONCLUSIVE: bool = false;

    fn access(
        &mut self,
        now: Record,
        parallel: impl Fn(&Record) -> bool,
        mut seen: impl FnMut(&Record),
    ) {
        for writes in [true, false] {
            let records = self
                .last
                .iter()
                .filter(|record| record.kind.is_write() == writes);
            records
                .filter(|record| parallel(record))
                .for_each(&mut seen);
        }
        let same = |record: &&mut Record| {
            record.epoch.thread() == now.epoch.thread() && slot(record.kind) == slot(now.kind)
        };
        match self.last.iter_mut().find(same) {
            Some(record) => *record = now,
            None => self.last.push(now),
        }
    }

    fn kept(&self) -> u32 {
        self.last.len() as u32
    }
}

/// Giving memory back is a write like any other.
fn slot(kind: AccessKind) -> AccessKind {
    if kind == AccessKind::Free {
        AccessKind::Write
    } else {
        kind
    }
}
