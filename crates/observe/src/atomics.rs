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
    /// A bit for every address that may be among them: most are not, and this is quicker to see.
    hints: Hints,
}

const HINT_BITS: u32 = 14;

#[derive(Debug)]
struct Hints(Box<[u64; 1 << (HINT_BITS - 6)]>);

impl Default for Hints {
    fn default() -> Self {
        Hints(Box::new([0; 1 << (HINT_BITS - 6)]))
    }
}

/// The word and the bit of an address.
#[inline]
fn hint(address: u64) -> (usize, u64) {
    let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HINT_BITS);
    ((hash >> 6) as usize, 1 << (hash % 64))
}

impl AtomicPlaces {
    /// Answers whether it was not known.
    pub(crate) fn add(&mut self, address: u64) -> bool {
        let page = self.pages.entry(address / PAGE).or_default();
        let is_new = !page.contains(&address);
        if is_new {
            page.push(address);
            self.ever.insert(address);
            let (word, bit) = hint(address);
            self.hints.0[word] |= bit;
        }
        is_new
    }

    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        let (word, bit) = hint(address);
        self.hints.0[word] & bit != 0
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
