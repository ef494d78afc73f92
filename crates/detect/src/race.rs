//! Race detection (Banerjee et al., algorithm 4).
//!
//! Keeps, per location, the last segment to write it and, of the segments that read it since, those that are
//! parallel to the last of them. Says `race` for exactly the locations that have one (theorems 9, 11, 15);
//! not every race of such a location is found.
//!
//! Departs from the paper: atomic accesses do not race with each other, so one cannot stand in for another
//! that it does not follow. They are kept like reads, a set of mutually parallel ones each for stores and loads,
//! and compared with plain accesses only. By lemma 6, whatever is parallel to a member that was
//! dropped because a newer one follows it, is parallel to the newer one; and a plain write that
//! follows all members stands in for all of them.

use crate::limited::{self, Keep, Record};
use crate::{AccessKind, Algorithm, Detector, PairBy};

pub(crate) fn detector(by: PairBy) -> Box<dyn Detector> {
    limited::detector::<Race>(Algorithm::Race, by)
}

#[derive(Clone, Default)]
struct Race {
    last_write: Option<Record>,
    parallel_reads: Vec<Record>,
    /// Mostly empty, so not worth its own two vectors in every location.
    atomics: Option<Box<Atomics>>,
}

#[derive(Clone, Default)]
struct Atomics {
    writes: Vec<Record>,
    reads: Vec<Record>,
}

impl Keep for Race {
    const INPUT_IS_INCONCLUSIVE: bool = false;

    fn access(
        &mut self,
        now: Record,
        parallel: impl Fn(&Record) -> bool,
        mut seen: impl FnMut(&Record),
    ) {
        self.last_write
            .iter()
            .filter(|last| parallel(last))
            .for_each(&mut seen);
        if now.kind.is_write() {
            self.parallel_reads
                .iter()
                .filter(|read| parallel(read))
                .for_each(&mut seen);
        }
        if let Some(atomics) = &self.atomics
            && !now.kind.is_atomic()
        {
            let reads = atomics.reads.iter().filter(|_| now.kind.is_write());
            atomics
                .writes
                .iter()
                .chain(reads)
                .filter(|access| parallel(access))
                .for_each(&mut seen);
        }
        self.keep(now, parallel);
    }

    fn kept(&self) -> u32 {
        let atomics = self
            .atomics
            .as_ref()
            .map_or(0, |atomics| atomics.writes.len() + atomics.reads.len());
        u32::from(self.last_write.is_some()) + (self.parallel_reads.len() + atomics) as u32
    }
}

impl Race {
    fn keep(&mut self, now: Record, parallel: impl Fn(&Record) -> bool) {
        match now.kind {
            AccessKind::Write | AccessKind::Free => {
                self.parallel_reads.clear();
                self.atomics = None;
                self.last_write = Some(now);
            }
            AccessKind::Read => keep_parallel(&mut self.parallel_reads, now, parallel),
            AccessKind::AtomicWrite => keep_parallel(&mut self.atomics().writes, now, parallel),
            AccessKind::AtomicRead => keep_parallel(&mut self.atomics().reads, now, parallel),
        }
    }

    fn atomics(&mut self) -> &mut Atomics {
        self.atomics.get_or_insert_default()
    }
}

fn keep_parallel(kept: &mut Vec<Record>, now: Record, parallel: impl Fn(&Record) -> bool) {
    kept.retain(|earlier| parallel(earlier));
    kept.push(now);
}
