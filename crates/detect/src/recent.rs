//! Remembers what was accessed a moment ago: most accesses repeat one of the same epoch.

use verdict_clocks::Epoch;
use verdict_events::Access;

/// 1024 x 16 bytes: half of a first-level cache.
const PLACES_BITS: u32 = 10;
/// Sizes below 2^7 and addresses below 2^56 fit a key together with what the access does.
const SIZES: u32 = 1 << 7;
const ADDRESSES: u64 = 1 << 56;
/// 2^64 divided by the golden ratio: neighbouring addresses get places far from each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The last access that fell on each place of a table. Forgets at any time, but never remembers what was not.
pub(crate) struct Recent {
    places: Box<[Place; 1 << PLACES_BITS]>,
    is_empty: bool,
}

#[derive(Clone, Copy)]
struct Place {
    epoch: Epoch,
    /// First byte, size, and in the lowest bit whether it wrote.
    key: u64,
}

const NOTHING: Place = Place {
    epoch: Epoch::NONE,
    key: 0,
};

impl Recent {
    pub fn new() -> Recent {
        Recent {
            places: Box::new([NOTHING; 1 << PLACES_BITS]),
            is_empty: true,
        }
    }

    /// True only if the same bytes have been accessed in this epoch, by a write if this is one. Remembers it otherwise.
    #[inline(always)]
    pub fn repeats(&mut self, access: &Access, is_write: bool, epoch: Epoch) -> bool {
        let addr = access.addr.0;
        if (addr / ADDRESSES) | u64::from(access.size / SIZES) != 0 {
            return false;
        }
        let key = addr << 8 | u64::from(access.size) << 1 | u64::from(is_write);
        let place = &mut self.places[(addr.wrapping_mul(SPREAD) >> (64 - PLACES_BITS)) as usize];
        // To a read, it does not matter whether the other was one. No branches: half of the accesses repeat another,
        // and nothing foretells which.
        let any = u64::from(!is_write);
        let repeats = (place.epoch == epoch) & (place.key | any == key | any);
        place.epoch = epoch;
        place.key = if repeats { place.key } else { key };
        self.is_empty = false;
        repeats
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if !self.is_empty {
            self.places.fill(NOTHING);
            self.is_empty = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_events::{Addr, ThreadId};

    #[test]
    fn a_write_covers_reads_but_not_the_other_way_round() {
        let mut recent = Recent::new();
        let epoch = Epoch::new(ThreadId(1), 5);
        let access = |addr, size| Access {
            addr: Addr(addr),
            size,
            value: None,
        };
        let whole = access(64, 8);
        assert!(!recent.repeats(&whole, false, epoch));
        assert!(recent.repeats(&whole, false, epoch));
        assert!(!recent.repeats(&whole, true, epoch));
        assert!(recent.repeats(&whole, true, epoch));
        assert!(recent.repeats(&whole, false, epoch));
        assert!(!recent.repeats(&access(64, 4), false, epoch));
        assert!(!recent.repeats(&whole, false, epoch), "one for each place");
        assert!(!recent.repeats(&whole, false, Epoch::new(ThreadId(1), 6)));
        assert!(!recent.repeats(&whole, false, Epoch::new(ThreadId(2), 6)));
        recent.clear();
        assert!(!recent.repeats(&whole, false, Epoch::new(ThreadId(2), 6)));
        for odd in [access(64, 128), access(1 << 56, 8)] {
            assert!(!recent.repeats(&odd, false, epoch));
            assert!(!recent.repeats(&odd, false, epoch));
        }
    }
}
