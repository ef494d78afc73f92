//! State per location, exact to the byte, fast where every access to a location has the same shape.
//!
//! Memory is cut into *units*: byte ranges whose bytes have all been touched by the same accesses so far. The
//! first access makes one unit of its bytes; one that covers part of a unit splits it and copies its
//! state. An access that covers exactly one unit, as nearly all do, finds it in a few loads ([`Shadow::exact`]);
//! any other is given the pieces it covers ([`Shadow::pieces`]).
//!
//! Units of up to a page are found through [`Pages`]. Larger ones (a freed block, a file read) sit in an ordered
//! map and are carved into small ones where something touches part of them.

use std::collections::BTreeMap;

use verdict_events::Addr;

use crate::pages::{NO_UNIT, PAGE_BYTES, Pages, UnitId};

/// Units longer than this are not worth a slot per granule.
const SMALL_MAX: u64 = PAGE_BYTES;

/// What a detector found out about a byte so far. Survives the reuse of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[repr(u8)]
pub(crate) enum Finding {
    #[default]
    Nothing,
    /// Unordered accesses that are no race: both read, or both are atomic.
    ParallelOnly,
    Race,
}

#[derive(Clone, Debug)]
pub(crate) struct Unit<S> {
    pub start: u64,
    pub len: u64,
    /// The size of the largest access that starts at `start`; 0 if none does. Units with one are the locations
    /// that reports speak of.
    widest: u32,
    pub finding: Finding,
    pub state: S,
}

impl<S> Unit<S> {
    fn end(&self) -> u64 {
        self.start + self.len
    }

    pub fn note_finding(&mut self, finding: Finding) {
        self.finding = self.finding.max(finding);
    }
}

#[derive(Debug)]
pub(crate) struct Shadow<S> {
    /// Unit 0 stands for "no unit".
    units: Vec<Unit<S>>,
    small: Pages,
    /// By first byte.
    large: BTreeMap<u64, UnitId>,
}

impl<S: Clone + Default> Shadow<S> {
    pub fn new() -> Shadow<S> {
        let nothing = Unit {
            start: u64::MAX,
            len: 0,
            widest: 0,
            finding: Finding::Nothing,
            state: S::default(),
        };
        Shadow {
            units: vec![nothing],
            small: Pages::default(),
            large: BTreeMap::new(),
        }
    }

    /// The unit that an access of `len` bytes at `start` covers exactly, if there is one and accesses of this
    /// shape are known.
    #[inline]
    pub fn exact(&mut self, start: u64, len: u64) -> Option<&mut Unit<S>> {
        let unit = &mut self.units[self.small.unit_at(start) as usize];
        (unit.start == start && unit.len == len && u64::from(unit.widest) >= len).then_some(unit)
    }

    pub fn unit(&mut self, id: UnitId) -> &mut Unit<S> {
        &mut self.units[id as usize]
    }

    /// Units in no particular order.
    pub fn units(&self) -> impl Iterator<Item = &Unit<S>> {
        self.units[1..].iter()
    }

    /// Units in no particular order.
    pub fn units_mut(&mut self) -> impl Iterator<Item = &mut Unit<S>> {
        self.units[1..].iter_mut()
    }

    /// Notes that an access of `size` bytes starts at `start`, where a unit must start.
    pub fn note_location(&mut self, start: u64, size: u32) {
        let id = self.unit_id_at(start);
        assert_ne!(id, NO_UNIT, "an accessed byte has a unit");
        let unit = self.unit(id);
        unit.widest = unit.widest.max(size);
    }

    /// Cuts `start..end` into units, making those that are missing, and answers with them in order.
    pub fn pieces(&mut self, start: u64, end: u64) -> Vec<UnitId> {
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let id = self.small.unit_at(at);
            if id == NO_UNIT {
                let gap_end = self.small.next_covered(at, end);
                self.fill_gap(at, gap_end, &mut pieces);
                at = gap_end;
            } else {
                let id = self.cut_small(id, at, end);
                pieces.push(id);
                at = self.units[id as usize].end();
            }
        }
        pieces
    }

    /// The units in `start..end` that exist, cut at its bounds. Makes none.
    pub fn existing(&mut self, start: u64, end: u64) -> Vec<UnitId> {
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let id = self.small.unit_at(at);
            if id == NO_UNIT {
                let gap_end = self.small.next_covered(at, end);
                self.cut_large(at, gap_end);
                pieces.extend(self.large.range(at..gap_end).map(|(_, &id)| id));
                at = gap_end;
            } else {
                let id = self.cut_small(id, at, end);
                pieces.push(id);
                at = self.units[id as usize].end();
            }
        }
        pieces
    }

    /// The unit that covers `at`, if any.
    pub fn unit_id_at(&self, at: u64) -> UnitId {
        match self.small.unit_at(at) {
            NO_UNIT => self.large_at(at).unwrap_or(NO_UNIT),
            id => id,
        }
    }

    /// Every location that was accessed, ascending, with the worst finding among its bytes.
    pub fn locations(&mut self) -> Vec<(Addr, Finding)> {
        let accessed = self.units.iter().filter(|unit| unit.widest > 0);
        let mut ranges: Vec<(u64, u64)> = accessed
            .map(|unit| {
                (
                    unit.start,
                    unit.start.saturating_add(u64::from(unit.widest)),
                )
            })
            .collect();
        ranges.sort_unstable();
        let worst = |shadow: &Shadow<S>, (start, end)| {
            let mut at = start;
            let mut worst = Finding::Nothing;
            while at < end {
                let unit = &shadow.units[shadow.unit_id_at(at) as usize];
                worst = worst.max(unit.finding);
                at = unit.end();
            }
            (Addr(start), worst)
        };
        ranges.into_iter().map(|range| worst(self, range)).collect()
    }

    /// Cuts a small unit so that one piece of it starts at `from` and ends at `to` or before.
    fn cut_small(&mut self, id: UnitId, from: u64, to: u64) -> UnitId {
        let id = if self.units[id as usize].start < from {
            self.split_small(id, from).1
        } else {
            id
        };
        if self.units[id as usize].end() > to {
            self.split_small(id, to).0
        } else {
            id
        }
    }

    /// Splits a small unit at `at`. The smaller part gets the new id, so that cutting a large unit into many
    /// small ones writes each slot once.
    fn split_small(&mut self, id: UnitId, at: u64) -> (UnitId, UnitId) {
        let new = self.split(id, at);
        let (left, right) = (&self.units[id as usize], &self.units[new as usize]);
        if right.len <= left.len {
            self.small.cover(right.start, right.end(), new);
            return (id, new);
        }
        self.small.cover(left.start, left.end(), new);
        self.units.swap(id as usize, new as usize);
        (new, id)
    }

    /// Splits a unit at `at`; the right part becomes a new unit that is not yet found by address.
    fn split(&mut self, id: UnitId, at: u64) -> UnitId {
        let unit = &mut self.units[id as usize];
        let right = Unit {
            start: at,
            len: unit.end() - at,
            widest: 0,
            finding: unit.finding,
            state: unit.state.clone(),
        };
        unit.len = at - unit.start;
        self.add(right)
    }

    fn add(&mut self, unit: Unit<S>) -> UnitId {
        let id = UnitId::try_from(self.units.len())
            .expect("fewer than 2^32 units: each is made by an event");
        self.units.push(unit);
        id
    }

    /// Units for `start..end`, where no small one is.
    fn fill_gap(&mut self, start: u64, end: u64, pieces: &mut Vec<UnitId>) {
        self.cut_large(start, end);
        let large: Vec<UnitId> = self.large.range(start..end).map(|(_, &id)| id).collect();
        let mut at = start;
        for id in large {
            let (from, to) = (self.units[id as usize].start, self.units[id as usize].end());
            if at < from {
                pieces.push(self.make(at, from));
            }
            if to - from <= SMALL_MAX {
                self.large.remove(&from);
                self.small.cover(from, to, id);
            }
            pieces.push(id);
            at = to;
        }
        if at < end {
            pieces.push(self.make(at, end));
        }
    }

    fn make(&mut self, start: u64, end: u64) -> UnitId {
        let id = self.add(Unit {
            start,
            len: end - start,
            widest: 0,
            finding: Finding::Nothing,
            state: S::default(),
        });
        if end - start <= SMALL_MAX {
            self.small.cover(start, end, id);
        } else {
            self.large.insert(start, id);
        }
        id
    }

    /// Splits large units so that none crosses `start` or `end`.
    fn cut_large(&mut self, start: u64, end: u64) {
        for at in [start, end] {
            if let Some(id) = self.large_at(at)
                && self.units[id as usize].start < at
            {
                let right = self.split(id, at);
                self.large.insert(at, right);
            }
        }
    }

    fn large_at(&self, at: u64) -> Option<UnitId> {
        let (_, &id) = self.large.range(..=at).next_back()?;
        (at < self.units[id as usize].end()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state is the list of accesses that touched the unit; a plain map of bytes says what it must be.
    #[test]
    fn units_know_what_touched_each_byte() {
        let mut random = 12345u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let mut shadow: Shadow<Vec<u32>> = Shadow::new();
            let mut bytes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            let base = [0, 1 << 40, PAGE_BYTES - 7, (LOW - 1) * PAGE_BYTES][next(4) as usize];
            for access in 0..30 {
                let len = [1, 2, 4, 8, 16, 3, 9000, 5000][next(8) as usize];
                let start = base + next(if len > 100 { 20_000 } else { 40 });
                if next(8) == 0 {
                    for id in shadow.existing(start, start + len) {
                        shadow.unit(id).state.clear();
                    }
                    bytes.retain(|&at, _| at < start || at >= start + len);
                    continue;
                }
                for id in shadow.pieces(start, start + len) {
                    shadow.unit(id).state.push(access);
                }
                for at in start..start + len {
                    bytes.entry(at).or_default().push(access);
                }
                for at in (base.saturating_sub(10)..base + 30_000)
                    .step_by(3)
                    .chain(base..base + 60)
                {
                    let id = shadow.unit_id_at(at);
                    let known = if id == NO_UNIT {
                        &[][..]
                    } else {
                        &shadow.unit(id).state[..]
                    };
                    assert_eq!(
                        known,
                        bytes.get(&at).map_or(&[][..], |list| &list[..]),
                        "at {at}"
                    );
                }
            }
        }
    }

    const LOW: u64 = 1 << 20;
}
