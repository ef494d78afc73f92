//! Drops what says nothing new: the same access from the same place, with nothing of the same thread between that orders
//! it against others or changes the memory.

/// Slots of the table; a later access takes the place of an earlier one.
const SLOTS: usize = 1 << 12;

/// What one thread did lately.
#[derive(Debug)]
pub(crate) struct Repeats {
    /// None until something is asked: most threads of a survey ask for nothing.
    slots: Box<[(u64, u64, u32)]>,
    /// Counts what makes earlier accesses different from later ones.
    generation: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Repeats {
            slots: Box::default(),
            generation: 1,
        }
    }
}

impl Repeats {
    /// From now on nothing is a repetition.
    pub(crate) fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.slots.fill((0, 0, 0));
            self.generation = 1;
        }
    }

    /// True if the same was asked since the last [`Repeats::forget`].
    pub(crate) fn seen(&mut self, address: u64, what: u64) -> bool {
        let hash = (address ^ what.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> 52) as usize;
        let now = (address, what, self.generation);
        let Some(slot) = self.slots.get_mut(slot) else {
            self.slots = vec![(0, 0, 0); SLOTS].into();
            self.slots[slot] = now;
            return false;
        };
        std::mem::replace(slot, now) == now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_seen_once_more_until_it_is_forgotten() {
        let mut repeats = Repeats::default();
        repeats.forget();
        assert!(!repeats.seen(0x10, 1));
        assert!(repeats.seen(0x10, 1));
        assert!(!repeats.seen(0x10, 2));
        assert!(repeats.seen(0x10, 1));
        repeats.forget();
        assert!(!repeats.seen(0x10, 1));
    }

    #[test]
    fn a_thread_that_asks_for_nothing_takes_no_memory() {
        let mut repeats = Repeats::default();
        repeats.forget();
        assert!(repeats.slots.is_empty());
        repeats.seen(0x10, 1);
        assert_eq!(repeats.slots.len(), SLOTS);
    }
}
