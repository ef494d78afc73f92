//! From an address to the unit that covers it.
//!
//! Pages of 4096 bytes hold one slot per granule of 8, 4, 2 or 1 bytes: as coarse as the bounds of all units
//! in the page allow. Traces of text number their variables from low addresses, real programs use all of
//! them: the slots of the lowest pages lie side by side, those of other low pages are found by index, the rest by hash.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

/// The index of a unit. 0 is no unit.
pub(crate) type UnitId = u32;
pub(crate) const NO_UNIT: UnitId = 0;

const PAGE_BITS: u32 = 12;
pub(crate) const PAGE_BYTES: u64 = 1 << PAGE_BITS;
/// The slots of pages below this number lie side by side, one for each byte: 2^20 x 4 bytes at most, as many as separate
/// pages would have for variables that are numbered.
const LOWEST_PAGES: u64 = 1 << 8;
/// Pages below this number are found by index: 2^20 x 4 bytes at most.
const LOW_PAGES: u64 = 1 << 20;
/// Granules are at most 2^3 bytes: the size of most accesses.
const SHIFT_MAX: u32 = 3;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Those of the lowest pages, by address.
    lowest: Vec<Slot>,
    pages: Vec<Page>,
    /// Index into `pages` + 1, or 0.
    low: Vec<u32>,
    high: FxHashMap<u64, u32>,
    /// All page numbers, to walk over large ranges without visiting what is not there.
    numbers: BTreeSet<u64>,
}

/// The slots of a page, and log2 of its granule.
#[derive(Clone, Copy)]
struct View<'a> {
    slots: &'a [Slot],
    shift: u32,
}

#[derive(Debug)]
struct Page {
    /// log2 of the granule.
    shift: u32,
    slots: Box<[Slot]>,
}

/// The unit of a granule and, at its first granule, its shape if that is known: log2 of its size + 1 in the
/// upper bits. An access of that size then covers it exactly, without a look at the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(u32);

const SHAPE_SHIFT: u32 = 29;
/// Shapes up to 2^6 bytes fit.
const SHAPE_MAX: u32 = 7;
/// Units are numbered below this: their states alone would take more memory than there is.
pub(crate) const UNITS_MAX: usize = 1 << SHAPE_SHIFT;

impl Slot {
    const EMPTY: Slot = Slot(NO_UNIT);

    fn new(unit: UnitId) -> Slot {
        debug_assert!(
            (unit as usize) < UNITS_MAX,
            "the upper bits are the shape's"
        );
        Slot(unit)
    }

    #[inline(always)]
    fn unit(self) -> UnitId {
        self.0 & (UNITS_MAX as u32 - 1)
    }

    /// The size of the unit, or 0 if it is not known.
    #[inline(always)]
    fn size(self) -> u32 {
        (1 << (self.0 >> SHAPE_SHIFT)) >> 1
    }

    fn with_size(self, size: u64) -> Slot {
        let shape = if size.is_power_of_two() {
            size.trailing_zeros() + 1
        } else {
            0
        };
        let shape = if shape <= SHAPE_MAX { shape } else { 0 };
        Slot(self.unit() | shape << SHAPE_SHIFT)
    }
}

/// What lies at an address.
pub(crate) enum Found {
    /// The unit that an access of the size asked for covers exactly.
    Exactly(UnitId),
    /// Some unit, or none.
    Perhaps(UnitId),
}

impl Pages {
    /// The unit that covers the byte at `addr`, or `NO_UNIT`.
    #[inline]
    pub fn unit_at(&self, addr: u64) -> UnitId {
        match self.page(addr >> PAGE_BITS) {
            Some(page) => page.slots[((addr % PAGE_BYTES) >> page.shift) as usize].unit(),
            None => NO_UNIT,
        }
    }

    /// The unit that an access of `size` bytes at `addr` meets first.
    #[inline(always)]
    pub fn find(&self, addr: u64, size: u32) -> Found {
        if let Some(&slot) = self.lowest.get(addr as usize) {
            return match slot.size() == size {
                true => Found::Exactly(slot.unit()),
                false => Found::Perhaps(slot.unit()),
            };
        }
        let Some(page) = self.page(addr >> PAGE_BITS) else {
            return Found::Perhaps(NO_UNIT);
        };
        let granule = ((addr % PAGE_BYTES) >> page.shift) as usize;
        let slot = page.slots[granule];
        let aligned = addr & ((1 << page.shift) - 1) == 0;
        if slot.size() == size && aligned {
            Found::Exactly(slot.unit())
        } else {
            Found::Perhaps(slot.unit())
        }
    }

    /// Notes that the unit at `start` has `size` bytes and is accessed as a whole, or (0) that this is not known.
    pub fn note_shape(&mut self, start: u64, size: u64) {
        if let Some(slot) = self.lowest.get_mut(start as usize) {
            *slot = slot.with_size(size);
        } else if let Some(index) = self.page_index(start >> PAGE_BITS) {
            let page = &mut self.pages[index];
            let slot = &mut page.slots[((start % PAGE_BYTES) >> page.shift) as usize];
            *slot = slot.with_size(size);
        }
    }

    /// Lets `unit` cover `start..end`. Its shape is not known.
    pub fn cover(&mut self, start: u64, end: u64, unit: UnitId) {
        let mut from = start;
        while from < end {
            let number = from >> PAGE_BITS;
            let to = end.min((number + 1).saturating_mul(PAGE_BYTES));
            if number < LOWEST_PAGES {
                self.lowest_for(number)[from as usize..to as usize].fill(Slot::new(unit));
                from = to;
                continue;
            }
            let (first, last) = (from % PAGE_BYTES, (to - 1) % PAGE_BYTES + 1);
            let page = self.page_for(number, first, last);
            let granules = (first >> page.shift) as usize..(last >> page.shift) as usize;
            page.slots[granules].fill(Slot::new(unit));
            from = to;
        }
    }

    /// True only if no unit covers any of `start..end`. Looks at one page at most.
    pub fn is_surely_free(&self, start: u64, end: u64) -> bool {
        let number = start >> PAGE_BITS;
        if start >= end || (end - 1) >> PAGE_BITS != number {
            return false;
        }
        let Some(page) = self.page(number) else {
            return true;
        };
        let granule = |addr: u64| ((addr % PAGE_BYTES) >> page.shift) as usize;
        let slots = &page.slots[granule(start)..=granule(end - 1)];
        slots.iter().all(|&slot| slot == Slot::EMPTY)
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
            let to = (end - base).min(PAGE_BYTES);
            let stop = to.div_ceil(1 << page.shift) as usize;
            let found = page.slots[skip..stop]
                .iter()
                .position(|&slot| slot != Slot::EMPTY);
            if let Some(found) = found {
                let at = base + (((skip + found) as u64) << page.shift);
                return at.max(start).min(end);
            }
        }
        end
    }

    #[inline(always)]
    fn page(&self, number: u64) -> Option<View<'_>> {
        let first = number.wrapping_mul(PAGE_BYTES) as usize;
        if number < LOWEST_PAGES && first < self.lowest.len() {
            let slots = &self.lowest[first..first + PAGE_BYTES as usize];
            return Some(View { slots, shift: 0 });
        }
        let index = match self.low.get(number as usize) {
            Some(&index) => index,
            None => self.high_index(number),
        };
        let page = self.pages.get((index as usize).wrapping_sub(1))?;
        Some(View {
            slots: &page.slots,
            shift: page.shift,
        })
    }

    /// The slots of the lowest pages, that with this number among them.
    fn lowest_for(&mut self, number: u64) -> &mut [Slot] {
        let wanted = ((number + 1) * PAGE_BYTES) as usize;
        while self.lowest.len() < wanted {
            self.numbers.insert(self.lowest.len() as u64 >> PAGE_BITS);
            let longer = self.lowest.len() + PAGE_BYTES as usize;
            self.lowest.resize(longer, Slot::EMPTY);
        }
        &mut self.lowest
    }

    #[inline(never)]
    fn high_index(&self, number: u64) -> u32 {
        self.high.get(&number).copied().unwrap_or(0)
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
        let granules = (PAGE_BYTES >> shift) as usize;
        self.pages.push(Page {
            shift,
            slots: vec![Slot::EMPTY; granules].into_boxed_slice(),
        });
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
        // Only where a unit starts can its shape be known.
        let repeated = |slot: &Slot| {
            let rest = std::iter::repeat_n(slot.with_size(0), times - 1);
            std::iter::once(*slot).chain(rest)
        };
        self.slots = self.slots.iter().flat_map(repeated).collect();
        self.shift = shift;
    }
}
