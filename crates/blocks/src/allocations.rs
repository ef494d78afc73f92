//! Which allocation the bytes of an access belong to.
//!
//! An allocation makes its bytes a fresh object. Every byte therefore has a *generation*, the number of the last
//! allocation that covered it, and accesses meet only in bytes of the same one. Nearly all accesses lie within
//! one generation; one that does not is described by its runs.

use std::collections::BTreeMap;

use hashbrown::HashMap;

/// Bytes of one generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Run {
    pub generation: u32,
    pub start: u64,
    pub end: u64,
}

/// A generation, or a number that stands for several runs.
pub(crate) type ObjectId = u32;

/// Numbers from here on stand for several runs.
const MIXED: ObjectId = 1 << 31;

/// Whether it stands for several runs.
#[inline]
pub(crate) fn is_mixed(object: ObjectId) -> bool {
    object >= MIXED
}

#[derive(Default)]
pub(crate) struct Allocations {
    /// By first byte: the end and the generation. What is not here has never been allocated.
    live: BTreeMap<u64, (u64, u32)>,
    generations: u32,
    mixed: Vec<Vec<Run>>,
    mixed_ids: HashMap<Vec<Run>, ObjectId>,
}

impl Allocations {
    /// False when there are more allocations than numbers.
    #[must_use]
    pub fn allocate(&mut self, start: u64, end: u64) -> bool {
        if start >= end {
            return true;
        }
        self.split_at(start);
        self.split_at(end);
        while let Some((&covered, _)) = self.live.range(start..end).next() {
            self.live.remove(&covered);
        }
        self.generations += 1;
        self.live.insert(start, (end, self.generations));
        self.generations < MIXED - 1
    }

    /// The object that `start..end` lies in.
    #[inline]
    pub fn object(&mut self, start: u64, end: u64) -> ObjectId {
        if self.live.is_empty() {
            return 0;
        }
        self.find(start, end)
    }

    fn find(&mut self, start: u64, end: u64) -> ObjectId {
        // The one that covers the last byte; most often it covers all.
        match self.live.range(..end).next_back() {
            None => 0,
            Some((_, &(covered_end, _))) if covered_end <= start => 0,
            Some((&first, &(covered_end, generation))) if first <= start && end <= covered_end => {
                generation
            }
            Some(_) => self.find_mixed(start, end),
        }
    }

    fn find_mixed(&mut self, start: u64, end: u64) -> ObjectId {
        let runs = self.runs_between(start, end);
        if let Some(&id) = self.mixed_ids.get(&runs) {
            return id;
        }
        let id = MIXED + self.mixed.len() as u32;
        self.mixed.push(runs.clone());
        self.mixed_ids.insert(runs, id);
        id
    }

    fn runs_between(&self, start: u64, end: u64) -> Vec<Run> {
        let before = self.live.range(..=start).next_back();
        let first = before.map_or(start, |(&first, _)| first);
        let mut runs = Vec::new();
        let mut at = start;
        for (&from, &(to, generation)) in self.live.range(first..end) {
            if to <= at {
                continue;
            }
            if at < from {
                runs.push(Run {
                    generation: 0,
                    start: at,
                    end: from,
                });
                at = from;
            }
            let to = to.min(end);
            runs.push(Run {
                generation,
                start: at,
                end: to,
            });
            at = to;
        }
        if at < end {
            runs.push(Run {
                generation: 0,
                start: at,
                end,
            });
        }
        runs
    }

    /// Calls `each` with the runs of `start..end`, as they were when `object` was answered for it.
    pub fn for_each_run(&self, object: ObjectId, start: u64, end: u64, mut each: impl FnMut(Run)) {
        if !is_mixed(object) {
            each(Run {
                generation: object,
                start,
                end,
            });
        } else {
            self.mixed[(object - MIXED) as usize]
                .iter()
                .for_each(|&run| each(run));
        }
    }

    fn split_at(&mut self, at: u64) {
        if let Some((_, entry)) = self.live.range_mut(..at).next_back()
            && entry.0 > at
        {
            let (end, generation) = *entry;
            entry.0 = at;
            self.live.insert(at, (end, generation));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_know_their_last_allocation() {
        let mut allocations = Allocations::default();
        assert_eq!(allocations.object(0, 100), 0);
        assert!(allocations.allocate(10, 30));
        assert!(allocations.allocate(20, 25));
        assert_eq!(allocations.object(10, 20), 1);
        assert_eq!(allocations.object(20, 25), 2);
        assert_eq!(allocations.object(26, 30), 1);
        assert_eq!(allocations.object(30, 40), 0);
        assert_eq!(allocations.object(0, 10), 0);
        let mixed = allocations.object(5, 28);
        assert_eq!(mixed, allocations.object(5, 28));
        let mut runs = Vec::new();
        allocations.for_each_run(mixed, 5, 28, |run| {
            runs.push((run.generation, run.start, run.end));
        });
        assert_eq!(runs, [(0, 5, 10), (1, 10, 20), (2, 20, 25), (1, 25, 28)]);
    }
}
