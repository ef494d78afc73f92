//! Reads of a granule that are not ordered among themselves: at most one of each thread.
//!
//! Many granules are read by the same threads in the same epochs, so each set is kept once and granules have its number. Where
//! threads come back in ever new epochs, sets would be made without end: such a granule gets a set of its own, which changes.

use rustc_hash::FxHashMap;
use verdict_clocks::HappensBefore;

use super::cell::{BYTES, SPECIAL, follows, thread_of};

/// More sets than this are not told apart.
const SETS_MAX: usize = 1 << 20;
const NUMBER_SHIFT: u32 = 8;
/// The number is that of a granule's own set.
const OWN: u64 = 1 << 61;
/// As long as there are no more sets than this, they are not made without end: granules share them.
const SETS_FEW: usize = 1 << 12;
/// Most reads of a granule's own set.
const OWN_LEN: usize = 4;
/// Where there are more sets of granules' own, the next ones are kept once for all.
const OWN_MAX: usize = 1 << 20;

/// All sets.
#[derive(Default, Debug)]
pub(super) struct Readers {
    sets: Vec<Box<[u64]>>,
    numbers: FxHashMap<Box<[u64]>, u32>,
    /// What adding a read to a set gave.
    added: FxHashMap<(u64, u64), u64>,
    /// Sets of granules' own, filled up with 0.
    own: Vec<[u64; OWN_LEN]>,
    /// Numbers of those that no granule has any more.
    spare: Vec<u32>,
}

impl Readers {
    /// The reads of a word that stands for several.
    pub(super) fn of(&self, word: u64) -> &[u64] {
        let number = number_of(word);
        if word & OWN != 0 {
            let set = &self.own[number];
            let len = set.iter().take_while(|read| **read != 0).count();
            return &set[..len];
        }
        self.sets.get(number).map_or(&[], |set| set)
    }

    /// The same reads in a word of which there may be copies.
    pub(super) fn shared(&mut self, word: u64) -> u64 {
        if word & (SPECIAL | OWN) != SPECIAL | OWN {
            return word;
        }
        let set = self.of(word).to_vec();
        self.release(word);
        self.word_for(set)
    }

    /// No granule has this word any more.
    pub(super) fn release(&mut self, word: u64) {
        if word & (SPECIAL | OWN) == SPECIAL | OWN {
            self.spare.push(number_of(word) as u32);
        }
    }

    /// The word for the reads of `word` and one that happens now.
    #[inline]
    pub(super) fn add(&mut self, word: u64, now: u64, order: &HappensBefore) -> u64 {
        if word & SPECIAL != 0 {
            return self.add_to_set(word, now, order);
        }
        let bytes = word & BYTES;
        if bytes == 0 || follows(thread_of(now), word, order) {
            return now | bytes;
        }
        self.word_for(vec![word, now])
    }

    fn add_to_set(&mut self, word: u64, now: u64, order: &HappensBefore) -> u64 {
        if word & OWN != 0 {
            return self.add_to_own(word, now, order);
        }
        if let Some(known) = self.added.get(&(word, now)) {
            return *known;
        }
        let again = |read: &u64| thread_of(*read) == thread_of(now);
        if self.sets.len() >= SETS_FEW
            && self.of(word).iter().any(again)
            && let Some(own) = self.own_set(word)
        {
            return self.add_to_own(own, now, order);
        }
        let mut now_all = now;
        let mut set = Vec::new();
        for &read in self.of(word) {
            // A read that this one follows is represented by it, as far as writes to come are concerned.
            if follows(thread_of(now), read, order) {
                now_all |= read & BYTES;
            } else {
                set.push(read);
            }
        }
        set.push(now_all);
        let result = self.word_for(set);
        if self.added.len() >= SETS_MAX {
            self.added.clear();
        }
        self.added.insert((word, now), result);
        result
    }

    /// A set of a granule's own with the same reads; `None` if there is no room for it.
    fn own_set(&mut self, word: u64) -> Option<u64> {
        let mut set = [0; OWN_LEN];
        let reads = self.of(word);
        set.get_mut(..reads.len())?.copy_from_slice(reads);
        let number = match self.spare.pop() {
            Some(number) => number,
            None if self.own.len() >= OWN_MAX => return None,
            None => {
                self.own.push([0; OWN_LEN]);
                self.own.len() as u32 - 1
            }
        };
        self.own[number as usize] = set;
        Some(SPECIAL | OWN | u64::from(number) << NUMBER_SHIFT | word & BYTES)
    }

    fn add_to_own(&mut self, word: u64, now: u64, order: &HappensBefore) -> u64 {
        let mut now_all = now;
        let mut kept = [0; OWN_LEN];
        let mut len = 0;
        for &read in self.of(word) {
            if follows(thread_of(now), read, order) {
                now_all |= read & BYTES;
            } else {
                kept[len] = read;
                len += 1;
            }
        }
        if len == 0 || len == OWN_LEN {
            self.release(word);
            let mut set = kept[..len].to_vec();
            set.push(now_all);
            return self.word_for(set);
        }
        kept[len] = now_all;
        self.own[number_of(word)] = kept;
        let bytes = kept.iter().fold(0, |all, read| all | read & BYTES);
        word & !BYTES | bytes
    }

    fn word_for(&mut self, mut set: Vec<u64>) -> u64 {
        set.sort_unstable();
        if let [only] = set[..] {
            return only;
        }
        let bytes = set.iter().fold(0, |all, read| all | read & BYTES);
        let number = match self.numbers.get(&set[..]) {
            Some(number) => *number,
            None => self.new_set(set),
        };
        SPECIAL | u64::from(number) << NUMBER_SHIFT | bytes
    }

    fn new_set(&mut self, mut set: Vec<u64>) -> u32 {
        if self.sets.len() >= SETS_MAX {
            // As if each had read until the end of time: too much is suspected, never too little.
            const FOREVER: u64 = (u32::MAX as u64) << NUMBER_SHIFT;
            set.iter_mut().for_each(|read| *read |= FOREVER | BYTES);
            if let Some(number) = self.numbers.get(&set[..]) {
                return *number;
            }
        }
        let number = self.sets.len() as u32;
        let set: Box<[u64]> = set.into();
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }
}

fn number_of(word: u64) -> usize {
    ((word & !(SPECIAL | OWN)) >> NUMBER_SHIFT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suspects::cell::word_of;
    use verdict_clocks::Rules;
    use verdict_events::{Event, EventKind, SiteId, SyncId, ThreadId};

    /// Reads of a granule by three threads that let each other know nothing; each read is in a new epoch of its thread.
    #[test]
    fn a_granule_that_threads_come_back_to_has_a_set_of_its_own() {
        let mut order = HappensBefore::new(Rules::All);
        let mut readers = Readers::default();
        let mut read = |readers: &mut Readers, word: u64, thread: u32| {
            let thread = ThreadId(thread);
            let post = Event {
                thread,
                site: SiteId(0),
                kind: EventKind::Notify(SyncId(u64::from(thread.0))),
            };
            order.receive(&post);
            order.post(&post);
            let now = word_of(order.note_access(thread)).expect("a small number") | 1 << thread.0;
            (readers.add(word, now, &order), now)
        };
        let (mut word, mut last) = (0, [0; 3]);
        for thread in [0, 1, 2] {
            (word, last[thread as usize]) = read(&mut readers, word, thread);
        }
        assert_eq!((word & OWN, readers.sets.len()), (0, 2));
        for round in 0..2 * SETS_FEW {
            let thread = round as u32 % 3;
            (word, last[thread as usize]) = read(&mut readers, word, thread);
            let mut now = readers.of(word).to_vec();
            now.sort_unstable();
            assert_eq!(now, last);
            assert_eq!(word & BYTES, 0b111);
        }
        assert_eq!((readers.sets.len(), readers.own.len()), (SETS_FEW, 1));
        let copied = readers.shared(word);
        assert_eq!((copied & OWN, readers.of(copied)), (0, &last[..]));
        assert_eq!(readers.spare, [0]);
    }
}
