//! Bits for granules that may be in a set: whoever finds none need not look for the granules themselves.

use std::fmt;

use super::bytes::GRANULE;

/// Bytes whose granules have the bits of one word.
const LINE: u64 = 64 * GRANULE;
/// Words for each page that has granules in the set: few enough lines share one that hardly any is taken for another.
const WORDS_PER_PAGE: usize = 32;
const PAGES_MIN: usize = 32;

/// A word for each line, shared by lines that are far from each other.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Hints {
    /// As many as a power of two; none where nothing is in the set.
    words: Box<[u64]>,
}

impl Hints {
    /// Empty ones, for a set that has granules in so many pages.
    pub(super) fn for_pages(pages: usize) -> Hints {
        let words = pages.max(PAGES_MIN).next_power_of_two() * WORDS_PER_PAGE;
        Hints {
            words: vec![0; words].into(),
        }
    }

    /// Everything is in the set.
    pub(super) fn of_everything() -> Hints {
        Hints {
            words: Box::new([u64::MAX]),
        }
    }

    /// In how many pages a set may have granules.
    pub(super) fn pages(&self) -> usize {
        self.words.len() / WORDS_PER_PAGE
    }

    #[inline(always)]
    fn index(&self, address: u64) -> usize {
        let hash = (address / LINE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        hash as usize & self.words.len().wrapping_sub(1)
    }

    /// Adds the granule of an address.
    pub(super) fn add(&mut self, address: u64) {
        self.add_line(address, 1 << (address % LINE / GRANULE));
    }

    /// Adds granules of the line that an address is in, one for each bit.
    pub(super) fn add_line(&mut self, address: u64, granules: u64) {
        let index = self.index(address);
        self.words[index] |= granules;
    }

    /// False only if no granule of these bytes is in the set.
    #[inline(always)]
    pub(super) fn may_touch(&self, first: u64, last: u64) -> bool {
        if first / LINE == last / LINE {
            return self.may_touch_within(first, last);
        }
        self.may_touch_lines(first, last)
    }

    /// The same, with nothing to decide: true wherever the bytes are on several lines.
    #[inline(always)]
    pub(super) fn may_touch_short(&self, first: u64, last: u64) -> bool {
        let other_line = (first ^ last) / LINE;
        let word = self.words.get(self.index(first)).copied().unwrap_or(0);
        other_line | word & granules(first, last) != 0
    }

    /// The same within one line.
    #[inline(always)]
    fn may_touch_within(&self, first: u64, last: u64) -> bool {
        let word = self.words.get(self.index(first));
        word.is_some_and(|word| word & granules(first, last) != 0)
    }

    fn may_touch_lines(&self, first: u64, last: u64) -> bool {
        let lines = first / LINE..=last / LINE;
        // There are quicker ways to see that than through most of the words.
        if last / LINE - first / LINE >= self.words.len() as u64 / 2 {
            return !self.words.is_empty();
        }
        lines.into_iter().any(|line| {
            let start = first.max(line * LINE);
            let end = last.min(line * LINE + (LINE - 1));
            self.may_touch_within(start, end)
        })
    }
}

impl fmt::Debug for Hints {
    /// Which granules there are is known elsewhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hints({} words)", self.words.len())
    }
}

/// The bits of the granules of some bytes, if these are on one line.
#[inline(always)]
fn granules(first: u64, last: u64) -> u64 {
    let (from, to) = (first / GRANULE, last / GRANULE);
    // `2 << 63` is 0: all 64 of them.
    (2u64 << (to.wrapping_sub(from) % 64)).wrapping_sub(1) << (from % 64)
}
