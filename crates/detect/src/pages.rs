//! From an address to the unit that covers it.
//!
//! Pages of 4096 bytes hold one slot per granule of 8, 4, 2 or 1 bytes: as coarse as the bounds of all units
//! in the page allow. Traces of text number their variables from low addresses, real programs use all of
//! them: low pages are found by index, others by hash.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

/// The index of a unit. 0 is no unit.
pub(crate) type UnitId = u32;
pub(crate) const NO_UNIT: UnitId = 0;

const PAGE_BITS: u32 = 12;
pub(crate) const PAGE_BYTES: u64 = 1 << PAGE_BITS;
/// Pages below this number are found by index: 2^20 x 4 bytes at most.
const LOW_PAGES: u64 = 1 << 20;
/// Granules are at most 2^3 bytes: the size of most accesses.
const SHIFT_MAX: u32 = 3;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    /// Index into `pages` + 1, or 0.
    low: Vec<u32>,
    high: FxHashMap<u64, u32>,
    /// All page numbers, to walk over large ranges without visiting what is not there.
    numbers: BTreeSet<u64>,
}

#[derive(Debug)]
struct Page {
    /// log2 of the granule.
    shift: u32,
    slots: Box<[UnitId]>,
}

impl Pages {
    /// The unit that covers the byte at `addr`, or `NO_UNIT`.
    #[inline]
    pub fn unit_at(&self, addr: u64) -> UnitId {
        match self.page(addr >> PAGE_BITS) {
            Some(page) => page.slots[((addr % PAGE_BYTES) >> page.shift) as usize],
            None => NO_UNIT,
        }
    }

    /// Lets `unit` cover `start..end`.
    pub fn cover(&mut self, start: u64, end: u64, unit: UnitId) {
        let mut from = start;
        while from < end {
            let number = from >> PAGE_BITS;
            let to = end.min((number + 1).saturating_mul(PAGE_BYTES));
            let (first, last) = (from % PAGE_BYTES, (to - 1) % PAGE_BYTES + 1);
            let page = self.page_for(number, first, last);
            page.slots[(first >> page.shift) as usize..(last >> page.shift) as usize].fill(unit);
            from = to;
        }
    }

    /// The first byte in `start..end` that some unit covers, or `end`.
    pub fn next_covered(&self, start: u64, end: u64) -> u64 {
        let first_page = start >> PAGE_BITS;
        for &number in self.numbers.range(first_page..) {
            let base = number << PAGE_BITS;
            if base >= end {
                break;
            }
            let page = self.page(number).expect("numbers lists existing pages");
            let from = start.max(base) - base;
            let skip = (from >> page.shift) as usize;
            let found = page.slots[skip..].iter().position(|&slot| slot != NO_UNIT);
            if let Some(found) = found {
                let at = base + (((skip + found) as u64) << page.shift);
                return at.max(start).min(end);
            }
        }
        end
    }

    #[inline]
    fn page(&self, number: u64) -> Option<&Page> {
        let index = match self.low.get(number as usize) {
            Some(&index) => index,
            None if number < LOW_PAGES => 0,
            None => self.high.get(&number).copied().unwrap_or(0),
        };
        self.pages.get((index as usize).wrapping_sub(1))
    }

    /// The page, with granules fine enough for a bound at `first` and at `last`.
    fn page_for(&mut self, number: u64, first: u64, last: u64) -> &mut Page {
        let shift = (first | last).trailing_zeros().min(SHIFT_MAX);
        let index = match self.page_index(number) {
            Some(index) => index,
            None => self.add_page(number, shift),
        };
        let page = &mut self.pages[index];
        if shift < page.shift {
            page.refine(shift);
        }
        page
    }

    fn page_index(&self, number: u64) -> Option<usize> {
        let index = if number < LOW_PAGES {
            self.low.get(number as usize).copied().unwrap_or(0)
        } else {
            self.high.get(&number).copied().unwrap_or(0)
        };
        (index as usize).checked_sub(1)
    }

    fn add_page(&mut self, number: u64, shift: u32) -> usize {
        let slots = vec![NO_UNIT; (PAGE_BYTES >> shift) as usize].into_boxed_slice();
        self.pages.push(Page { shift, slots });
        self.numbers.insert(number);
        let index = self.pages.len() as u32;
        if number < LOW_PAGES {
            let wanted = self.low.len().max(number as usize + 1);
            self.low.resize(wanted, 0);
            self.low[number as usize] = index;
        } else {
            self.high.insert(number, index);
        }
        self.pages.len() - 1
    }
}

impl Page {
    fn refine(&mut self, shift: u32) {
        let times = 1usize << (self.shift - shift);
        self.slots = self
            .slots
            .iter()
            .flat_map(|&slot| std::iter::repeat_n(slot, times))
            .collect();
        self.shift = shift;
    }
}
