//! Memory that is accessed by atomic operations only: found by LOCK instructions, by what is handed to functions that
//! initialise once, and by the compiler's guard variables.

use rustc_hash::FxHashMap;

const PAGE: u64 = 4096;

/// Addresses of atomic variables.
#[derive(Default, Debug)]
pub(crate) struct AtomicPlaces {
    pages: FxHashMap<u64, Vec<u64>>,
    /// All that ever were, for what was accessed before it was known.
    ever: rustc_hash::FxHashSet<u64>,
}

impl AtomicPlaces {
    pub(crate) fn add(&mut self, address: u64) {
        let page = self.pages.entry(address / PAGE).or_default();
        if !page.contains(&address) {
            page.push(address);
            self.ever.insert(address);
        }
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        !self.pages.is_empty()
            && self
                .pages
                .get(&(address / PAGE))
                .is_some_and(|page| page.contains(&address))
    }

    /// True if the address was atomic at some time.
    pub(crate) fn ever(&self, address: u64) -> bool {
        self.ever.contains(&address)
    }

    /// Other variables will be there.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        if self.pages.is_empty() {
            return;
        }
        let (first, last) = (start / PAGE, end.div_ceil(PAGE));
        let keep = |address: &u64| !(start..end).contains(address);
        if last - first < self.pages.len() as u64 {
            for page in first..last {
                if let Some(addresses) = self.pages.get_mut(&page) {
                    addresses.retain(keep);
                }
            }
        } else {
            for (_, addresses) in self
                .pages
                .iter_mut()
                .filter(|(page, _)| (first..last).contains(*page))
            {
                addresses.retain(keep);
            }
        }
    }
}
