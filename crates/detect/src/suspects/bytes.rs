//! Which bytes may race, in granules of eight.

use rustc_hash::FxHashMap;

use super::hints::Hints;

/// Bytes that are told apart: an access that touches one of a granule touches it.
pub(crate) const GRANULE: u64 = 8;
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / GRANULE / 64) as usize;

/// A set of granules.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SuspectBytes {
    pages: FxHashMap<u64, [u64; WORDS]>,
    count: u64,
    all: bool,
    /// Most accesses touch none of them, and this is quicker to see.
    hints: Hints,
}

impl SuspectBytes {
    /// True if nothing may race.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && !self.all
    }

    /// How many granules.
    #[must_use]
    pub fn granules(&self) -> u64 {
        self.count
    }

    /// Adds the granule of an address.
    pub fn add(&mut self, address: u64) {
        let page = self.pages.entry(address / PAGE).or_default();
        let granule = (address % PAGE / GRANULE) as usize;
        let word = &mut page[granule / 64];
        let bit = 1 << (granule % 64);
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
        if self.pages.len() > self.hints.pages() && !self.all {
            self.renew_hints();
        } else {
            self.hints.add(address);
        }
    }

    /// Makes room for hints of more pages.
    #[inline(never)]
    fn renew_hints(&mut self) {
        self.hints = Hints::for_pages(self.pages.len());
        for (page, words) in &self.pages {
            for (granules, word) in (0..).step_by(64).zip(words) {
                self.hints.add_line(page * PAGE + granules * GRANULE, *word);
            }
        }
    }

    /// Adds everything there is.
    pub fn add_all(&mut self) {
        self.all = true;
        self.hints = Hints::of_everything();
    }

    /// True if an access touches one of the granules.
    #[inline]
    #[must_use]
    pub fn touches(&self, address: u64, size: u64) -> bool {
        let last = address.saturating_add(size.saturating_sub(1));
        self.hints.may_touch(address, last) && self.surely_touches(address, size, last)
    }

    /// The same, only quicker, for an access of a few bytes. False only if it touches none; true also where that takes
    /// more to find out.
    #[inline(always)]
    #[must_use]
    pub fn may_touch(&self, address: u64, size: u16) -> bool {
        let last = address.wrapping_add(u64::from(size).wrapping_sub(1));
        self.hints.may_touch_short(address, last)
    }

    #[inline(never)]
    fn surely_touches(&self, address: u64, size: u64, last: u64) -> bool {
        if self.all || size == 0 {
            return self.all;
        }
        if address / PAGE == last / PAGE {
            return self.touches_within(address, last);
        }
        self.touches_pages(address, last)
    }

    #[inline]
    fn touches_within(&self, first: u64, last: u64) -> bool {
        let Some(page) = self.pages.get(&(first / PAGE)) else {
            return false;
        };
        (first % PAGE / GRANULE..=last % PAGE / GRANULE)
            .any(|granule| page[granule as usize / 64] >> (granule % 64) & 1 != 0)
    }

    fn touches_pages(&self, first: u64, last: u64) -> bool {
        let within = |page: u64| {
            let start = first.max(page * PAGE);
            let end = last.min(page * PAGE + (PAGE - 1));
            self.touches_within(start, end)
        };
        let pages = first / PAGE..=last / PAGE;
        if last / PAGE - first / PAGE < self.pages.len() as u64 {
            pages.into_iter().any(within)
        } else {
            let mut known = self.pages.keys();
            known.any(|page| pages.contains(page) && within(*page))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_touched_however_much_there_is() {
        let mut bytes = SuspectBytes::default();
        let address = |number: u64| 0x10_0000 + number * 0x1238;
        for number in 0..3000 {
            bytes.add(address(number));
        }
        for number in 0..3000 {
            let at = address(number);
            assert!(bytes.touches(at, 1), "{at:#x}");
            assert!(bytes.may_touch(at - 1, 2), "{at:#x}");
            assert!(bytes.touches(at - 3 * PAGE, 4 * PAGE), "{at:#x}");
            assert!(!bytes.touches(at + GRANULE, 100 * GRANULE), "{at:#x}");
        }
        bytes.add_all();
        assert!(bytes.touches(8, 1));
    }

    #[test]
    fn an_access_touches_what_any_of_its_bytes_is_in() {
        let mut bytes = SuspectBytes::default();
        bytes.add(0x5003);
        bytes.add(0x5007);
        assert_eq!(bytes.granules(), 1);
        for (address, size, touches) in [
            (0x5000, 1, true),
            (0x4ff8, 8, false),
            (0x4ff8, 9, true),
            (0x5008, 8, false),
            (0x5007, 4, true),
            (0, u64::MAX, true),
            (0x1000, 0x4000, false),
            (0x1000, 0x4001, true),
            (0x5000, 0, false),
        ] {
            assert_eq!(bytes.touches(address, size), touches, "{address:#x} {size}");
            if let (true, Ok(size)) = (touches, u16::try_from(size)) {
                assert!(bytes.may_touch(address, size), "{address:#x} {size}");
            }
        }
    }
}
