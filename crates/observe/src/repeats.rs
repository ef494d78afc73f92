//! Drops what says nothing new: the same access from the same place, with nothing of the same thread between that orders
//! it against others or changes the memory.

/// Slots of the table; a later access takes the place of an earlier one.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;
/// Slots that get their memory together, when the first of them is needed: of a thousand threads, most do little.
const CHUNK: usize = 64;

/// An access, what it is, and when. Generations begin at 1.
type Slot = (u64, u64, u32);

/// What one thread did lately.
#[derive(Debug)]
pub(crate) struct Repeats {
    /// Empty where there was nothing yet.
    chunks: Box<[Box<[Slot]>]>,
    /// Counts what makes earlier accesses different from later ones.
    generation: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Repeats {
            chunks: Box::default(),
            generation: 1,
        }
    }
}

impl Repeats {
    /// From now on nothing is a repetition.
    pub(crate) fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.chunks = Box::default();
            self.generation = 1;
        }
    }

    /// True if the same was asked since the last [`Repeats::forget`].
    pub(crate) fn seen(&mut self, address: u64, what: u64) -> bool {
        let hash = (address ^ what.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> (u64::BITS - SLOT_BITS)) as usize;
        let now = (address, what, self.generation);
        let chunk = self.chunks.get_mut(slot / CHUNK);
        match chunk.and_then(|chunk| chunk.get_mut(slot % CHUNK)) {
            Some(slot) => std::mem::replace(slot, now) == now,
            None => {
                *self.new_slot(slot) = now;
                false
            }
        }
    }

    fn new_slot(&mut self, slot: usize) -> &mut Slot {
        if self.chunks.is_empty() {
            self.chunks = vec![Box::default(); SLOTS / CHUNK].into();
        }
        let chunk = &mut self.chunks[slot / CHUNK];
        *chunk = vec![(0, 0, 0); CHUNK].into();
        &mut chunk[slot % CHUNK]
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
        assert!(repeats.chunks.is_empty());
        repeats.seen(0x10, 1);
        let there = repeats.chunks.iter().filter(|chunk| !chunk.is_empty());
        assert_eq!(there.count(), 1);
    }
}
