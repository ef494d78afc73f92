//! Remembers which ranges were accessed a moment ago: loops over the same data repeat one another.

const PLACES: usize = 256;

/// The last range that fell on each place of a table. Forgets at any time, but never remembers what was not.
#[derive(Debug)]
pub(super) struct Ranges {
    places: Box<[Range; PLACES]>,
    /// Counts how often everything was forgotten.
    generation: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Range {
    start: u64,
    size: u64,
    word: u64,
    generation: u64,
    is_write: bool,
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges {
            places: Box::new([Range::default(); PLACES]),
            generation: 1,
        }
    }
}

impl Ranges {
    /// True only if the same range has been accessed in the epoch `word`, in the same way. Remembers it otherwise.
    pub(super) fn repeats(&mut self, start: u64, size: u64, is_write: bool, word: u64) -> bool {
        let now = Range {
            start,
            size,
            word,
            generation: self.generation,
            is_write,
        };
        let hash = (start ^ size << 32 ^ u64::from(is_write)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.places[(hash >> 56) as usize];
        std::mem::replace(place, now) == now
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.generation += 1;
    }
}
