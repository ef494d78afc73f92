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

use crate::pages::{Found, NO_UNIT, PAGE_BYTES, Pages, UNITS_MAX, UnitId};

/// Units longer than this are not worth a slot per granule.
const SMALL_MAX: u64 = PAGE_BYTES;

/// For how many units there is room from the start.
const ROOM: usize = 1 << 18;

/// What a detector found out about a byte so far. Survives the reuse of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Finding {
    #[default]
    Nothing,
    /// Unordered accesses that are no race: both read, or both are atomic.
    ParallelOnly,
    Race,
}

/// Where a unit lies, and what is known of it. Apart from the state, since nearly no access needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub start: u64,
    pub len: u64,
    /// The size of the largest access that starts at `start`; 0 if none does. Units with one are the locations
    /// that reports speak of.
    widest: u32,
    finding: Finding,
}

impl Extent {
    pub fn end(&self) -> u64 {
        self.start + self.len
    }

    pub fn contains(&self, addr: u64) -> bool {
        addr >= self.start && addr - self.start < self.len
    }

    pub fn note_finding(&mut self, finding: Finding) {
        self.finding = self.finding.max(finding);
    }
}

/// A unit, to look at and change.
pub(crate) struct Unit<'a, S> {
    pub extent: &'a mut Extent,
    pub state: &'a mut S,
}

/// Copies the state of a unit that is split.
pub(crate) trait Duplicate<S> {
    fn duplicate(&mut self, state: &S) -> S;
}

#[derive(Debug)]
pub(crate) struct Shadow<S> {
    /// By unit. Unit 0 stands for "no unit".
    extents: Vec<Extent>,
    states: Vec<S>,
    splits: u64,
    small: Pages,
    /// By first byte.
    large: BTreeMap<u64, UnitId>,
}

impl<S: Default> Shadow<S> {
    pub fn new() -> Shadow<S> {
        let nothing = Extent {
            start: u64::MAX,
            len: 0,
            widest: 0,
            finding: Finding::Nothing,
        };
        // Memory that is not used yet costs nothing, but to grow from small beginnings does.
        let (mut extents, mut states) = (Vec::with_capacity(ROOM), Vec::with_capacity(ROOM));
        extents.push(nothing);
        states.push(S::default());
        Shadow {
            extents,
            states,
            splits: 0,
            small: Pages::default(),
            large: BTreeMap::new(),
        }
    }

    /// The unit that an access of `size` bytes at `start` covers exactly, if there is one and accesses of this
    /// shape are known.
    #[inline(always)]
    pub fn exact(&self, start: u64, size: u32) -> Option<UnitId> {
        match self.small.find(start, size) {
            Found::Exactly(id) => Some(id),
            Found::Perhaps(id) => {
                let extent = &self.extents[id as usize];
                let exact = extent.start == start
                    && extent.len == u64::from(size)
                    && extent.widest >= size
                    && size > 0;
                exact.then_some(id)
            }
        }
    }

    /// Makes a unit of bytes that nothing has touched yet, for accesses of exactly this shape. `None` if it is not sure that
    /// there is none, or if the shape is an odd one.
    pub fn fresh(&mut self, start: u64, size: u32) -> Option<UnitId> {
        let len = u64::from(size);
        let end = start.checked_add(len)?;
        if !self.large.is_empty() || len > SMALL_MAX || !self.small.is_surely_free(start, end) {
            return None;
        }
        let extent = Extent {
            start,
            len,
            widest: size,
            finding: Finding::Nothing,
        };
        let id = self.add(extent, S::default());
        self.small.cover(start, end, id);
        self.small.note_shape(start, len);
        Some(id)
    }

    #[inline]
    pub fn state(&self, id: UnitId) -> &S {
        &self.states[id as usize]
    }

    #[inline(always)]
    pub fn state_mut(&mut self, id: UnitId) -> &mut S {
        &mut self.states[id as usize]
    }

    /// How many units have been split. While it does not change, neither does what an access covers exactly.
    #[inline]
    pub fn splits(&self) -> u64 {
        self.splits
    }

    #[inline]
    pub fn unit(&mut self, id: UnitId) -> Unit<'_, S> {
        Unit {
            extent: &mut self.extents[id as usize],
            state: &mut self.states[id as usize],
        }
    }

    /// How many units there are.
    pub fn units(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// The states of all units, in no particular order.
    pub fn states(&self) -> impl Iterator<Item = &S> {
        self.states[1..].iter()
    }

    /// The states of all units, in no particular order.
    pub fn states_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.states[1..].iter_mut()
    }

    /// Notes that an access of `size` bytes starts at `start`, where a unit must start.
    pub fn note_location(&mut self, start: u64, size: u32) {
        let id = self.unit_id_at(start);
        assert_ne!(id, NO_UNIT, "an accessed byte has a unit");
        let extent = &mut self.extents[id as usize];
        extent.widest = extent.widest.max(size);
        if extent.len == u64::from(size) {
            self.small.note_shape(start, extent.len);
        }
    }

    /// Cuts `start..end` into units, making those that are missing, and answers with them in order.
    pub fn pieces(&mut self, start: u64, end: u64, copy: &mut impl Duplicate<S>) -> Vec<UnitId> {
        // The usual case: memory that is seen for the first time.
        if self.large.is_empty() && self.small.is_surely_free(start, end) {
            return vec![self.make(start, end)];
        }
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let id = self.small.unit_at(at);
            if id == NO_UNIT {
                let gap_end = self.small.next_covered(at, end);
                self.fill_gap(at, gap_end, copy, &mut pieces);
                at = gap_end;
            } else {
                let id = self.cut_small(id, at, end, copy);
                pieces.push(id);
                at = self.extents[id as usize].end();
            }
        }
        pieces
    }

    /// The units in `start..end` that exist, cut at its bounds. Makes none.
    pub fn existing(&mut self, start: u64, end: u64, copy: &mut impl Duplicate<S>) -> Vec<UnitId> {
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let id = self.small.unit_at(at);
            if id == NO_UNIT {
                let gap_end = self.small.next_covered(at, end);
                self.cut_large(at, gap_end, copy);
                pieces.extend(self.large.range(at..gap_end).map(|(_, &id)| id));
                at = gap_end;
            } else {
                let id = self.cut_small(id, at, end, copy);
                pieces.push(id);
                at = self.extents[id as usize].end();
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

    /// How many locations were accessed, and those of them that `wanted` is true of, ascending, with the worst finding among
    /// their bytes.
    pub fn locations(&self, wanted: impl Fn(Finding) -> bool) -> (u64, Vec<(Addr, Finding)>) {
        let mut count = 0;
        let accessed = self.extents.iter().filter(|extent| extent.widest > 0);
        let findings = accessed.map(|extent| {
            count += 1;
            let whole = extent.len == u64::from(extent.widest);
            let worst = match whole {
                true => extent.finding,
                false => self.worst_finding(extent),
            };
            (Addr(extent.start), worst)
        });
        let mut found: Vec<(Addr, Finding)> =
            findings.filter(|&(_, worst)| wanted(worst)).collect();
        found.sort_unstable();
        (count, found)
    }

    /// The worst of all units that the widest access to where this one starts covered.
    fn worst_finding(&self, first: &Extent) -> Finding {
        let mut worst = Finding::Nothing;
        let (mut at, end) = (first.start, first.start.saturating_add(first.widest.into()));
        while at < end {
            let extent = &self.extents[self.unit_id_at(at) as usize];
            worst = worst.max(extent.finding);
            at = extent.end();
        }
        worst
    }

    /// Cuts a small unit so that one piece of it starts at `from` and ends at `to` or before.
    fn cut_small(
        &mut self,
        id: UnitId,
        from: u64,
        to: u64,
        copy: &mut impl Duplicate<S>,
    ) -> UnitId {
        let mut id = id;
        if self.extents[id as usize].start < from {
            id = self.split_small(id, from, copy).1;
        }
        if self.extents[id as usize].end() > to {
            id = self.split_small(id, to, copy).0;
        }
        id
    }

    /// Splits a small unit at `at`. The smaller part gets the new id, so that cutting a large unit into many
    /// small ones writes each slot once.
    fn split_small(
        &mut self,
        id: UnitId,
        at: u64,
        copy: &mut impl Duplicate<S>,
    ) -> (UnitId, UnitId) {
        let new = self.split(id, at, copy);
        let (left, right) = (self.extents[id as usize], self.extents[new as usize]);
        if right.len <= left.len {
            self.small.cover(right.start, right.end(), new);
            self.small.note_shape(left.start, 0);
            return (id, new);
        }
        self.small.cover(left.start, left.end(), new);
        self.extents.swap(id as usize, new as usize);
        self.states.swap(id as usize, new as usize);
        (new, id)
    }

    /// Splits a unit at `at`; the right part becomes a new unit that is not yet found by address.
    fn split(&mut self, id: UnitId, at: u64, copy: &mut impl Duplicate<S>) -> UnitId {
        let extent = &mut self.extents[id as usize];
        let right = Extent {
            start: at,
            len: extent.end() - at,
            widest: 0,
            finding: extent.finding,
        };
        extent.len = at - extent.start;
        self.splits += 1;
        let state = copy.duplicate(&self.states[id as usize]);
        self.add(right, state)
    }

    fn add(&mut self, extent: Extent, state: S) -> UnitId {
        let id = self.extents.len();
        assert!(id < UNITS_MAX, "memory holds fewer units");
        self.extents.push(extent);
        self.states.push(state);
        id as UnitId
    }

    /// Units for `start..end`, where no small one is.
    fn fill_gap(
        &mut self,
        start: u64,
        end: u64,
        copy: &mut impl Duplicate<S>,
        pieces: &mut Vec<UnitId>,
    ) {
        self.cut_large(start, end, copy);
        let large: Vec<UnitId> = self.large.range(start..end).map(|(_, &id)| id).collect();
        let mut at = start;
        for id in large {
            let (from, to) = (
                self.extents[id as usize].start,
                self.extents[id as usize].end(),
            );
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
        let extent = Extent {
            start,
            len: end - start,
            widest: 0,
            finding: Finding::Nothing,
        };
        let id = self.add(extent, S::default());
        if end - start <= SMALL_MAX {
            self.small.cover(start, end, id);
        } else {
            self.large.insert(start, id);
        }
        id
    }

    /// Splits large units so that none crosses `start` or `end`.
    fn cut_large(&mut self, start: u64, end: u64, copy: &mut impl Duplicate<S>) {
        for at in [start, end] {
            if let Some(id) = self.large_at(at)
                && self.extents[id as usize].start < at
            {
                let right = self.split(id, at, copy);
                self.large.insert(at, right);
            }
        }
    }

    fn large_at(&self, at: u64) -> Option<UnitId> {
        let (_, &id) = self.large.range(..=at).next_back()?;
        (at < self.extents[id as usize].end()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Cloned;

    impl Duplicate<Vec<u32>> for Cloned {
        fn duplicate(&mut self, state: &Vec<u32>) -> Vec<u32> {
            state.clone()
        }
    }

    fn touch(shadow: &mut Shadow<Vec<u32>>, start: u64, len: u64, access: u32) {
        if let Some(id) = shadow.exact(start, len as u32) {
            shadow.state_mut(id).push(access);
            return;
        }
        for id in shadow.pieces(start, start + len, &mut Cloned) {
            shadow.state_mut(id).push(access);
        }
        shadow.note_location(start, len as u32);
    }

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
            let uniform = next(3) == 0;
            for access in 0..30 {
                let len =
                    [1, 2, 4, 8, 16, 3, 9000, 5000][if uniform { 3 } else { next(8) as usize }];
                let offset = next(if len > 100 { 20_000 } else { 40 });
                let start = base
                    + if uniform && next(20) > 0 {
                        offset * 8
                    } else {
                        offset
                    };
                if next(8) == 0 {
                    for id in shadow.existing(start, start + len, &mut Cloned) {
                        shadow.state_mut(id).clear();
                    }
                    bytes.retain(|&at, _| at < start || at >= start + len);
                    continue;
                }
                touch(&mut shadow, start, len, access);
                for at in start..start + len {
                    bytes.entry(at).or_default().push(access);
                }
                let far = (base.saturating_sub(10)..base + 30_000).step_by(97);
                for at in far.chain(base..base + 400) {
                    let id = shadow.unit_id_at(at);
                    let known = if id == NO_UNIT {
                        &[][..]
                    } else {
                        &shadow.state(id)[..]
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
