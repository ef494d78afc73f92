//! Remembers which bytes each thread has accessed in its present epoch: most accesses repeat one, and seeing so here costs two
//! comparisons, whatever other threads did to the same memory meanwhile.
//!
//! Two bits for a byte, so that much of what a thread works on is close at hand.

use std::ops::Range;

/// A cache line for what was accessed in a region: threads whose epochs are short start many of them afresh.
const REGION_BITS: u32 = 8;
const REGION: u64 = 1 << REGION_BITS;
const WORDS: usize = (REGION / 64) as usize;
/// Regions of each class of threads.
const SLOT_BITS: u32 = 14;
const SLOTS: usize = 1 << (SLOT_BITS + CLASS_BITS);
/// Threads of one class push out what others of it have accessed. Classes are few, since memory that is made anew has to be
/// forgotten in each.
const CLASS_BITS: u32 = 2;
pub(super) const CLASSES: u32 = 1 << CLASS_BITS;
const KEY_BITS: u32 = 32;
/// The guest has no memory from here on.
const ADDRESS_MAX: u64 = 1 << 47;

/// A thread in one of its epochs. The lowest bits are its class.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Key(u32);

impl Key {
    /// That of the thread.
    pub(super) fn class(self) -> u32 {
        self.0 % CLASSES
    }
}

/// What was accessed in a region: a bit for each byte, of those that were read or written, then of those that were written.
type Bytes = [u64; 2 * WORDS];

const ACCESSED: usize = 0;
const WRITTEN: usize = WORDS;

/// The regions that were accessed lately. Forgets at any time, but never remembers what was not.
#[derive(Debug)]
pub(super) struct Recent {
    /// Which region each slot holds, and for whom; 0 for none.
    tags: Box<[u64; SLOTS]>,
    /// Pages of slots that were never used have never been touched: most programs need few.
    bytes: Box<[Bytes; SLOTS]>,
    keys: u32,
}

impl Default for Recent {
    fn default() -> Self {
        Recent {
            tags: boxed(0),
            bytes: boxed([0; 2 * WORDS]),
            keys: 0,
        }
    }
}

/// An array that never was on the stack.
fn boxed<T: Clone>(value: T) -> Box<[T; SLOTS]> {
    let slots = vec![value; SLOTS].into_boxed_slice();
    let slots = slots.try_into();
    slots.unwrap_or_else(|_| unreachable!("as many as were made"))
}

#[inline(always)]
fn slot_of(region: u64, class: u32) -> usize {
    (region & ((1 << SLOT_BITS) - 1)) as usize | (class as usize) << SLOT_BITS
}

#[inline(always)]
fn tag_of(region: u64, key: Key) -> u64 {
    region >> SLOT_BITS << KEY_BITS | u64::from(key.0)
}

/// Where in [`Bytes`] it is that says whether an access repeats.
#[inline(always)]
fn kind(is_write: bool) -> usize {
    if is_write { WRITTEN } else { ACCESSED }
}

/// The bits of so many bytes, of which there are 1 to 64.
#[inline(always)]
fn mask(count: u64) -> u64 {
    u64::MAX >> (64 - count)
}

/// The words of a set, a bit for each of its members, and the bits of each word that stand for a range of them.
pub(super) fn masks(range: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    (range.start / 64..range.end.div_ceil(64)).map(move |word| {
        let (start, end) = (word * 64, (word + 1) * 64);
        let (from, to) = (range.start.max(start), range.end.min(end));
        (word as usize, mask(to - from) << (from - start))
    })
}

/// The regions of a range, and the part of each that is in it.
fn regions(start: u64, end: u64) -> impl Iterator<Item = (u64, Range<u64>)> {
    (start / REGION..end.div_ceil(REGION)).map(move |region| {
        let first = region * REGION;
        (
            region,
            start.max(first) - first..end.min(first + REGION) - first,
        )
    })
}

impl Recent {
    /// A key that no access has been remembered with; `None` if there are no more until [`Recent::clear`].
    pub(super) fn new_key(&mut self, thread: u32) -> Option<Key> {
        self.keys = self.keys.checked_add(CLASSES)?;
        Some(Key(self.keys | (thread % CLASSES)))
    }

    /// True only if all these bytes, of which there are some, have been accessed with this key, written if it is a write.
    #[inline(always)]
    pub(super) fn repeats(&self, key: Key, address: u64, size: u32, is_write: bool) -> bool {
        let region = address >> REGION_BITS;
        let slot = slot_of(region, key.class());
        if self.tags[slot] != tag_of(region, key) {
            return false;
        }
        let bit = address % 64;
        if bit + u64::from(size) > 64 {
            let end = address.saturating_add(u64::from(size));
            return self.repeats_all(key, address, end, is_write);
        }
        let word = (address % REGION / 64) as usize;
        let done = self.bytes[slot][kind(is_write) + word];
        !done & mask(u64::from(size)) << bit == 0
    }

    /// The same, for any number of bytes.
    pub(super) fn repeats_all(&self, key: Key, start: u64, end: u64, is_write: bool) -> bool {
        regions(start, end).all(|(region, part)| {
            let slot = slot_of(region, key.class());
            if self.tags[slot] != tag_of(region, key) {
                return false;
            }
            let done = &self.bytes[slot][kind(is_write)..];
            masks(part).all(|(word, mask)| !done[word] & mask == 0)
        })
    }

    /// They have.
    pub(super) fn remember(&mut self, key: Key, start: u64, end: u64, is_write: bool) {
        if end >= ADDRESS_MAX {
            return;
        }
        for (region, part) in regions(start, end) {
            let slot = slot_of(region, key.class());
            let bytes = &mut self.bytes[slot];
            let tag = tag_of(region, key);
            if std::mem::replace(&mut self.tags[slot], tag) != tag {
                *bytes = [0; 2 * WORDS];
            }
            for (word, mask) in masks(part) {
                bytes[ACCESSED + word] |= mask;
                bytes[WRITTEN + word] |= if is_write { mask } else { 0 };
            }
        }
    }

    /// What was accessed there is not what is there now.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        if (end - start) >> REGION_BITS >= 1 << SLOT_BITS {
            self.tags.fill(0);
            return;
        }
        for (region, part) in regions(start, end) {
            for class in 0..CLASSES {
                let slot = slot_of(region, class);
                if self.tags[slot] >> KEY_BITS != region >> SLOT_BITS {
                    continue;
                }
                for (word, mask) in masks(part.clone()) {
                    self.bytes[slot][ACCESSED + word] &= !mask;
                    self.bytes[slot][WRITTEN + word] &= !mask;
                }
            }
        }
    }

    /// Forgets all accesses and all keys.
    pub(super) fn clear(&mut self) {
        self.tags.fill(0);
        self.keys = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_repeats_one_to_its_bytes_by_the_same_thread_in_the_same_epoch() {
        let mut recent = Recent::default();
        let key = recent.new_key(1).expect("the first");
        let later = recent.new_key(1).expect("the second");
        let other = recent.new_key(2).expect("the third");
        assert!(!recent.repeats(key, 0x5000, 1, false));
        recent.remember(key, 0x5000, 0x5004, false);
        recent.remember(key, 0x5004, 0x5005, false);
        assert!(recent.repeats(key, 0x5000, 5, false));
        assert!(!recent.repeats(key, 0x5000, 6, false));
        assert!(!recent.repeats(key, 0x5000, 1, true));
        assert!(!recent.repeats(later, 0x5000, 1, false));
        assert!(!recent.repeats(other, 0x5000, 1, false));
        assert!(!recent.repeats(key, 0x5000 + (REGION << SLOT_BITS), 1, false));
        recent.remember(other, 0x5000, 0x5010, true);
        assert!(recent.repeats(other, 0x5008, 8, false));
        assert!(recent.repeats(other, 0x5008, 8, true));
        assert!(recent.repeats(key, 0x5000, 5, false));
        recent.forget(0x5004, 0x5009);
        assert!(recent.repeats(key, 0x5000, 4, false));
        assert!(!recent.repeats(key, 0x5004, 1, false));
        assert!(!recent.repeats(other, 0x5008, 1, false));
        assert!(recent.repeats(other, 0x5009, 1, true));
    }

    #[test]
    fn ranges_go_across_words_and_regions() {
        let mut recent = Recent::default();
        let key = recent.new_key(3).expect("the first");
        recent.remember(key, 0x53ff, 0x5c01, true);
        assert!(recent.repeats_all(key, 0x53ff, 0x5c01, true));
        assert!(!recent.repeats_all(key, 0x53fe, 0x5c01, true));
        assert!(!recent.repeats_all(key, 0x53ff, 0x5c02, false));
        assert!(recent.repeats(key, 0x543c, 8, true));
        assert!(recent.repeats(key, 0x57fc, 8, true));
        assert!(!recent.repeats(key, 0x5bfc, 8, true));
        recent.forget(0, u64::MAX);
        assert!(!recent.repeats(key, 0x5800, 1, false));
    }
}
