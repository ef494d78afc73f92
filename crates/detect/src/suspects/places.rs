//! From an address to the cell of its granule.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use verdict_fetch::fetch;

use super::bytes::GRANULE;
use super::cell::{ATOMIC, BYTES, Cell, SPECIAL};

pub(super) const PAGE: u64 = 4096;
const CELLS: usize = (PAGE / GRANULE) as usize;
/// Pages that were accessed lately are found without hashing.
const LATELY_BITS: u32 = 12;
/// Larger blocks that are given back get no cells where they have none.
const FREED_SMALL: u64 = 16 * PAGE;

/// Pages of an arena of the C library: 64 MB.
const ARENA_BITS: u32 = 14;
/// Times their number, the golden section of all words: wherever they are, no few of them have the same upper bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// A page and its index share a word. The guest has no memory beyond the pages that have room in one.
const INDEX_BITS: u32 = 28;
const INDEX: u64 = (1 << INDEX_BITS) - 1;
const PAGES_MAX: u64 = 1 << (u64::BITS - INDEX_BITS);

/// As many pages with cells of their own are not worth looking through. Few in tests, which are to come by both.
const PAGES_FEW: usize = if cfg!(debug_assertions) { 2 } else { 1024 };

type Page = [Cell; CELLS];

/// The cells of all pages that were accessed.
#[derive(Debug)]
pub(super) struct Places {
    pages: Vec<Page>,
    numbers: FxHashMap<u64, u32>,
    /// Indices that no page has any more.
    unused: Vec<u32>,
    /// When there are so many pages with cells of their own, those are looked for that need none.
    many: usize,
    /// A page and its index each; [`u64::MAX`] for none.
    lately: Box<[u64; 1 << LATELY_BITS]>,
    /// Pages of which all granules have the same cell, by page. Pages that have cells of their own are not among them.
    alike: FxHashMap<u64, Cell>,
    /// Large blocks that were given back: by start, their end and who did it when. Pages without cells only.
    freed: BTreeMap<u64, (u64, u64)>,
}

impl Default for Places {
    fn default() -> Self {
        Places {
            pages: Vec::new(),
            numbers: FxHashMap::default(),
            unused: Vec::new(),
            many: PAGES_FEW,
            lately: Box::new([u64::MAX; 1 << LATELY_BITS]),
            alike: FxHashMap::default(),
            freed: BTreeMap::new(),
        }
    }
}

/// Where the number of a page is that was accessed lately. Neighbours are side by side.
#[inline(always)]
fn place(page: u64) -> usize {
    // Arenas of the C library are far from each other, and all begin with the same low bits.
    let spread = (page >> ARENA_BITS).wrapping_mul(SPREAD) >> (u64::BITS - LATELY_BITS);
    (page.wrapping_add(spread) & ((1 << LATELY_BITS) - 1)) as usize
}

impl Places {
    /// The cell of an address; an empty one is made where there is none.
    #[inline(always)]
    pub(super) fn cell(&mut self, address: u64) -> &mut Cell {
        let index = self.index(address / PAGE);
        &mut self.pages[index][(address % PAGE / GRANULE) as usize]
    }

    /// The cell of an address, if its page was accessed lately.
    #[inline(always)]
    pub(super) fn known(&mut self, address: u64) -> Option<&mut Cell> {
        let index = self.lately(address / PAGE)?;
        Some(&mut self.pages[index][(address % PAGE / GRANULE) as usize])
    }

    /// Has the processor fetch the cell of an address, if its page was accessed lately.
    #[inline(always)]
    pub(super) fn fetch(&self, address: u64) {
        if let Some(index) = self.lately(address / PAGE) {
            fetch(&self.pages[index][(address % PAGE / GRANULE) as usize]);
        }
    }

    #[inline(always)]
    fn lately(&self, page: u64) -> Option<usize> {
        let known = self.lately[place(page)];
        let index = (known & INDEX) as usize;
        (known >> INDEX_BITS == page && index < self.pages.len()).then_some(index)
    }

    #[inline(always)]
    fn index(&mut self, page: u64) -> usize {
        if let Some(index) = self.lately(page) {
            return index;
        }
        let index = self.find(page);
        if page < PAGES_MAX && u64::from(index) < INDEX {
            self.lately[place(page)] = page << INDEX_BITS | u64::from(index);
        }
        index as usize
    }

    /// The cell of all granules of the page that begins at `start`; `None` if they have cells of their own.
    pub(super) fn page(&mut self, start: u64) -> Option<&mut Cell> {
        let page = start / PAGE;
        if self.numbers.contains_key(&page) {
            return None;
        }
        if !self.alike.contains_key(&page) {
            let cell = self.freed_at(start);
            self.alike.insert(page, cell);
        }
        self.alike.get_mut(&page)
    }

    /// The cells of the granules from `start` on, which is the first byte of one, that end before `end`, and on the same page.
    pub(super) fn cells(&mut self, start: u64, end: u64) -> &mut [Cell] {
        let page_end = (start / PAGE + 1) * PAGE;
        let first = (start % PAGE / GRANULE) as usize;
        let count = ((end.min(page_end) - start) / GRANULE) as usize;
        let index = self.index(start / PAGE);
        &mut self.pages[index][first..first + count]
    }

    #[inline(never)]
    fn find(&mut self, page: u64) -> u32 {
        if let Some(known) = self.numbers.get(&page) {
            return *known;
        }
        if self.numbers.len() >= self.many {
            self.merge();
        }
        let alike = self.alike.remove(&page);
        let cell = alike.unwrap_or_else(|| self.freed_at(page * PAGE));
        let index = match self.unused.pop() {
            Some(index) => {
                self.pages[index as usize] = [cell; CELLS];
                index
            }
            None => {
                self.pages.push([cell; CELLS]);
                (self.pages.len() - 1) as u32
            }
        };
        self.numbers.insert(page, index);
        index
    }

    /// Takes their cells from all pages whose granules have come to be alike: what a thread has gone through is, in the end.
    fn merge(&mut self) {
        let (pages, alike, unused) = (&self.pages, &mut self.alike, &mut self.unused);
        let lately = &mut self.lately;
        self.numbers.retain(|page, index| {
            let cells = &pages[*index as usize];
            let cell = cells[0];
            // Reads that several granules have are kept once for all.
            if cell.write & (SPECIAL | ATOMIC) != 0 || cells.iter().any(|other| *other != cell) {
                return true;
            }
            alike.insert(*page, cell);
            lately[place(*page)] = u64::MAX;
            unused.push(*index);
            false
        });
        let left = self.numbers.len();
        self.many = left + PAGES_FEW.max(left / 4);
    }

    fn freed_at(&self, address: u64) -> Cell {
        let write = match self.freed.range(..=address).next_back() {
            Some((_, (end, word))) if address < *end => word | BYTES,
            _ => 0,
        };
        Cell { write, read: 0 }
    }

    /// The bytes are a fresh object.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        for edge in [start, end] {
            if !edge.is_multiple_of(PAGE) && self.freed_at(edge / PAGE * PAGE).write != 0 {
                self.find(edge / PAGE);
            }
        }
        self.cut_freed(start, end);
        for page in self.existing(start, end) {
            let base = page * PAGE;
            if start <= base && end >= base + PAGE && self.alike.remove(&page).is_some() {
                continue;
            }
            let index = self.find(page) as usize;
            let first = start.max(base) - base;
            let last = end.min(base + PAGE) - base;
            for granule in first / GRANULE..last.div_ceil(GRANULE) {
                let cell = &mut self.pages[index][granule as usize];
                let from = first.max(granule * GRANULE);
                let to = last.min((granule + 1) * GRANULE);
                if to - from == GRANULE {
                    *cell = Cell::default();
                } else {
                    cell.forget(super::bytes_between(from, to));
                }
            }
        }
    }

    /// A thread gives memory back: answers with the parts that are to be written, and remembers the rest.
    pub(super) fn freed(&mut self, start: u64, end: u64, word: u64) -> Vec<(u64, u64)> {
        if end - start <= FREED_SMALL {
            return vec![(start, end)];
        }
        let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        let mut parts = vec![(start, first), (last, end)];
        parts.extend(
            self.existing(first, last)
                .into_iter()
                .map(|page| (page * PAGE, (page + 1) * PAGE)),
        );
        parts.retain(|(start, end)| start < end);
        self.cut_freed(first, last);
        self.freed.insert(first, (last, word));
        parts
    }

    /// Pages of a range that have cells, ascending.
    fn existing(&self, start: u64, end: u64) -> Vec<u64> {
        let (first, last) = (start / PAGE, end.div_ceil(PAGE));
        let exists = |page: &u64| self.numbers.contains_key(page) || self.alike.contains_key(page);
        if start >= end {
            Vec::new()
        } else if last - first <= (self.numbers.len() + self.alike.len()) as u64 {
            (first..last).filter(exists).collect()
        } else {
            let pages = self.numbers.keys().chain(self.alike.keys()).copied();
            let mut within: Vec<u64> = pages.filter(|page| (first..last).contains(page)).collect();
            within.sort_unstable();
            within
        }
    }

    /// Takes a range out of the blocks that were given back. Pages that are cut in two keep what they had.
    fn cut_freed(&mut self, start: u64, end: u64) {
        let overlapping: Vec<(u64, (u64, u64))> = self
            .freed
            .range(..end)
            .rev()
            .take_while(|(_, (block_end, _))| *block_end > start)
            .map(|(from, to)| (*from, *to))
            .collect();
        for (from, (to, word)) in overlapping {
            self.freed.remove(&from);
            let before_end = start.next_multiple_of(PAGE).min(to);
            if from < before_end && from < start {
                self.freed.insert(from, (before_end, word));
            }
            let after_start = (end / PAGE * PAGE).max(from);
            if after_start < to && end < to {
                self.freed.insert(after_start, (to, word));
            }
        }
    }
}

impl Cell {
    /// Some of its bytes are a fresh object.
    fn forget(&mut self, bytes: u64) {
        let without = |word: u64| match word & SPECIAL {
            0 if word & BYTES & !bytes == 0 => word & ATOMIC,
            0 => word & !bytes,
            _ => word,
        };
        self.write = without(self.write);
        self.read = without(self.read);
    }
}
