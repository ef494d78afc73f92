//! Reads of a granule that are not ordered among themselves: at most one of each thread.
//!
//! Many granules are read by the same threads in the same epochs, so each set is kept once and granules have its number.

use rustc_hash::FxHashMap;
use verdict_clocks::HappensBefore;

use super::cell::{BYTES, SPECIAL, follows, thread_of};

/// More sets than this are not told apart.
const SETS_MAX: usize = 1 << 20;
const NUMBER_SHIFT: u32 = 8;

/// All sets.
#[derive(Default, Debug)]
pub(super) struct Readers {
    sets: Vec<Box<[u64]>>,
    numbers: FxHashMap<Box<[u64]>, u32>,
    /// What adding a read to a set gave.
    added: FxHashMap<(u64, u64), u64>,
}

impl Readers {
    /// The reads of a word that stands for several.
    pub(super) fn of(&self, word: u64) -> &[u64] {
        let number = (word & !SPECIAL) >> NUMBER_SHIFT;
        self.sets.get(number as usize).map_or(&[], |set| set)
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
        if let Some(known) = self.added.get(&(word, now)) {
            return *known;
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
