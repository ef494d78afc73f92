//! Remembers which granules of pages each thread has gone through in its present epoch: loops over the same data repeat one another,
//! whole or in part, and seeing so takes a look at each page instead of one at each granule.

use std::ops::Range;

use super::bytes::GRANULE;
use super::places::PAGE;
use super::recent::{CLASSES, Key, masks};

/// Pages of each class of threads that are remembered: what falls on the place of another page pushes it out.
const PLACE_BITS: u32 = 15;
const PLACES: usize = 1 << PLACE_BITS;
/// A block of more pages is forgotten with everything else.
const FORGOTTEN_ONE_BY_ONE: u64 = 64;
const WORDS: usize = (PAGE / GRANULE / 64) as usize;

/// What was gone through. Forgets at any time, but never remembers what was not.
#[derive(Debug)]
pub(super) struct Ranges {
    /// Parts of the table that were never used have never been touched: most programs need few.
    places: Box<[Passed]>,
    /// Counts how often everything was forgotten, from 1 on.
    generation: u32,
}

/// A page that a thread has gone through in one of its epochs: a bit for each granule.
#[derive(Clone, Copy, Default, Debug)]
struct Passed {
    page: u64,
    key: Key,
    /// 0 if there is none.
    generation: u32,
    accessed: [u64; WORDS],
    written: [u64; WORDS],
}

impl Passed {
    /// Whether these granules have been gone through, written if it is a write.
    fn has(&self, granules: Range<u64>, is_write: bool) -> bool {
        let done = match is_write {
            true => &self.written,
            false => &self.accessed,
        };
        masks(granules).all(|(word, mask)| !done[word] & mask == 0)
    }
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges {
            places: vec![Passed::default(); PLACES * CLASSES as usize].into(),
            generation: 1,
        }
    }
}

/// The pages of a range, which begins and ends where granules do, and the granules of each that are in it.
fn pages(start: u64, end: u64) -> impl Iterator<Item = (u64, Range<u64>)> {
    (start / PAGE..end.div_ceil(PAGE)).map(move |page| {
        let first = page * PAGE;
        let within = |at: u64| (at.clamp(first, first + PAGE) - first) / GRANULE;
        (page, within(start)..within(end))
    })
}

fn place_of(page: u64, class: u32) -> usize {
    (page % PLACES as u64) as usize | (class as usize) << PLACE_BITS
}

impl Ranges {
    /// The first part of a range of granules that has not been gone through with this key, written if it is a write, up to a page on
    /// which it has; `None` if there is none.
    pub(super) fn next_new(
        &self,
        key: Key,
        range: Range<u64>,
        is_write: bool,
    ) -> Option<Range<u64>> {
        if range.is_empty() {
            return None;
        }
        let is_done = |(page, granules): &(u64, Range<u64>)| {
            let passed = &self.places[place_of(*page, key.class())];
            (passed.page, passed.key, passed.generation) == (*page, key, self.generation)
                && passed.has(granules.clone(), is_write)
        };
        let mut rest = pages(range.start, range.end).skip_while(is_done);
        let (first, granules) = rest.next()?;
        let start = first * PAGE + granules.start * GRANULE;
        let (page, granules) = rest
            .take_while(|page| !is_done(page))
            .last()
            .unwrap_or((first, granules));
        Some(start..page * PAGE + granules.end * GRANULE)
    }

    /// It has been.
    pub(super) fn remember(&mut self, key: Key, range: Range<u64>, is_write: bool) {
        for (page, granules) in pages(range.start, range.end) {
            let passed = &mut self.places[place_of(page, key.class())];
            if (passed.page, passed.key, passed.generation) != (page, key, self.generation) {
                *passed = Passed {
                    page,
                    key,
                    generation: self.generation,
                    ..Passed::default()
                };
            }
            for (word, mask) in masks(granules) {
                passed.accessed[word] |= mask;
                passed.written[word] |= if is_write { mask } else { 0 };
            }
        }
    }

    /// What was there is not what is there now.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        let count = end.div_ceil(PAGE).saturating_sub(start / PAGE);
        if count > FORGOTTEN_ONE_BY_ONE {
            self.forget_all();
            return;
        }
        for page in start / PAGE..end.div_ceil(PAGE) {
            for class in 0..CLASSES {
                let passed = &mut self.places[place_of(page, class)];
                if passed.page == page {
                    passed.generation = 0;
                }
            }
        }
    }

    /// Nothing is known any more.
    pub(super) fn forget_all(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or_else(|| {
            self.places.fill(Passed::default());
            1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::recent::Recent;
    use super::*;

    #[test]
    fn only_what_was_not_gone_through_is_new() {
        let mut recent = Recent::default();
        let mut ranges = Ranges::default();
        let key = recent.new_key(1).expect("the first");
        let later = recent.new_key(1).expect("the second");
        let new = |ranges: &Ranges, key, range, is_write| ranges.next_new(key, range, is_write);
        assert_eq!(
            new(&ranges, key, 0x5800..0x8100, false),
            Some(0x5800..0x8100)
        );
        ranges.remember(key, 0x5800..0x8100, false);
        assert_eq!(new(&ranges, key, 0x5800..0x8100, false), None);
        assert_eq!(new(&ranges, key, 0x6000..0x6010, false), None);
        assert_eq!(new(&ranges, key, 0x6000..0x6000, true), None);
        assert_eq!(
            new(&ranges, key, 0x5800..0x8100, true),
            Some(0x5800..0x8100)
        );
        assert_eq!(
            new(&ranges, later, 0x6000..0x6010, false),
            Some(0x6000..0x6010)
        );
        // A page that is known in part only is gone through again.
        assert_eq!(
            new(&ranges, key, 0x4000..0x8200, false),
            Some(0x4000..0x6000)
        );
        assert_eq!(
            new(&ranges, key, 0x6000..0x8200, false),
            Some(0x8000..0x8200)
        );
        // Rows that are not quite side by side.
        ranges.remember(key, 0x8200..0x8300, true);
        assert_eq!(new(&ranges, key, 0x8000..0x8100, false), None);
        assert_eq!(new(&ranges, key, 0x8208..0x8300, true), None);
        assert_eq!(
            new(&ranges, key, 0x80f8..0x8208, false),
            Some(0x80f8..0x8208)
        );
    }

    #[test]
    fn what_is_forgotten_is_new() {
        let mut recent = Recent::default();
        let mut ranges = Ranges::default();
        let key = recent.new_key(2).expect("the first");
        let new = |ranges: &Ranges, range| ranges.next_new(key, range, true);
        ranges.remember(key, 0x5000..0x8000, true);
        ranges.forget(0x6011, 0x6013);
        assert_eq!(new(&ranges, 0x5000..0x8000), Some(0x6000..0x7000));
        ranges.forget(0x5000, 0x5000 + (FORGOTTEN_ONE_BY_ONE + 1) * PAGE);
        assert_eq!(new(&ranges, 0x7000..0x8000), Some(0x7000..0x8000));
        ranges.remember(key, 0x7000..0x8000, true);
        ranges.forget_all();
        assert_eq!(new(&ranges, 0x7000..0x8000), Some(0x7000..0x8000));
    }
}
