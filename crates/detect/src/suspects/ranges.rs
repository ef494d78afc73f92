//! Remembers which ranges were accessed a moment ago: loops over the same data repeat one another.

use super::recent::Key;

const PLACE_BITS: u32 = 12;
const PLACES: usize = 1 << PLACE_BITS;

/// The last range that fell on each place of a table. Forgets at any time, but never remembers what was not.
#[derive(Debug)]
pub(super) struct Ranges {
    places: Box<[Range]>,
    /// Counts how often everything was forgotten.
    generation: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Range {
    start: u64,
    /// Twice the size, and one if it was written.
    size: u64,
    key: Key,
    generation: u64,
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges {
            places: vec![Range::default(); PLACES].into(),
            generation: 1,
        }
    }
}

impl Ranges {
    /// True only if the same range has been accessed with this key, in the same way. Remembers it otherwise.
    pub(super) fn repeats(&mut self, start: u64, size: u64, is_write: bool, key: Key) -> bool {
        let now = Range {
            start,
            size: size << 1 | u64::from(is_write),
            key,
            generation: self.generation,
        };
        let hash = (start ^ now.size << 32 ^ u64::from(key.number()) << 16)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.places[(hash >> (u64::BITS - PLACE_BITS)) as usize];
        std::mem::replace(place, now) == now
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.generation += 1;
    }
}
