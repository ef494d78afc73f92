//! Which bytes may race, in granules of eight.

use rustc_hash::FxHashMap;

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
    }

    /// Adds everything there is.
    pub fn add_all(&mut self) {
        self.all = true;
    }

    /// True if an access touches one of the granules.
    #[inline]
    #[must_use]
    pub fn touches(&self, address: u64, size: u64) -> bool {
        if self.all || self.count == 0 || size == 0 {
            return self.all;
        }
        let last = address.saturating_add(size - 1);
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
        }
    }
}
