//! Every place that is accessed, numbered as it is first seen.
//!
//! A *place* is the bytes of an access together with the object they lie in. Block files hold place numbers: they are
//! small, near each other where a thread works, and looking one up while detecting is an index, not a hash.
//!
//! Looking one up while building happens for every access, so it must not jump through memory: a page has a slot for
//! every eight bytes, which leads to the places that start there. What does not fit that is in a hash table.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use verdict_detect::AccessKind;

use crate::allocations::{ObjectId, is_mixed};
use crate::record::{NONE, What};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    pub object: ObjectId,
    pub thread: u32,
    /// Entries that were begun for it.
    pub entries: u32,
    /// The block that accessed it last, and the place of the newest entry for it there.
    pub last_block: u32,
    pub last_entry: u32,
    /// Another one that starts in the same slot and lies in the same object, or `NONE`.
    next: u32,
    pub threads: Threads,
    /// A bit per kind of access.
    pub kinds: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Threads {
    One,
    Several,
}

impl Place {
    #[inline]
    pub fn note(&mut self, thread: u32, what: What) {
        self.kinds |= 1 << what.kind_number();
        if thread != self.thread {
            self.threads = Threads::Several;
        }
    }

    /// Whether some access is no `free`: only those make a location that reports speak of.
    pub fn is_location(&self) -> bool {
        self.kinds & !(1 << AccessKind::Free as u8) != 0
    }
}

/// A page has 128 slots of 8 bytes: 512 bytes, for programs that use as little as one variable of it.
const PAGE_BITS: u32 = 10;
const SLOT_BITS: u32 = 3;
const SLOTS: usize = 1 << (PAGE_BITS - SLOT_BITS);
/// Places that one slot leads to. More, as only contrived traces have them, are in the table.
const CHAIN_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Places {
    all: Vec<Place>,
    /// The last place that started in each slot, or `NONE`.
    pages: Vec<[u32; SLOTS]>,
    page_numbers: FxHashMap<u64, u32>,
    /// Places that lie in several allocations, and those that a slot has no room for.
    others: HashTable<u32>,
}

impl Places {
    /// The number of a place, or nothing when there are no more numbers.
    #[inline]
    pub fn number(&mut self, start: u64, end: u64, object: ObjectId, thread: u32) -> Option<u32> {
        match self.find(start, end, object) {
            Some(number) => Some(number),
            None => self.add(start, end, object, thread),
        }
    }

    #[inline]
    fn find(&self, start: u64, end: u64, object: ObjectId) -> Option<u32> {
        let page = *self.page_numbers.get(&(start >> PAGE_BITS))?;
        let mut number = self.pages[page as usize][slot_of(start)];
        while let Some(place) = self.all.get(number as usize) {
            if place.start == start && place.end == end && place.object == object {
                return Some(number);
            }
            number = place.next;
        }
        None
    }

    #[inline(never)]
    fn find_other(&self, start: u64, end: u64, object: ObjectId) -> Option<u32> {
        let same = |&number: &u32| {
            let place = &self.all[number as usize];
            place.start == start && place.end == end && place.object == object
        };
        self.others.find(hash(start, end, object), same).copied()
    }

    #[inline(never)]
    fn add(&mut self, start: u64, end: u64, object: ObjectId, thread: u32) -> Option<u32> {
        if let Some(number) = self.find_other(start, end, object) {
            return Some(number);
        }
        let number = u32::try_from(self.all.len()).ok().filter(|&n| n < NONE)?;
        self.all.push(Place {
            start,
            end,
            object,
            thread,
            entries: 0,
            last_block: u32::MAX,
            last_entry: 0,
            next: NONE,
            threads: Threads::One,
            kinds: 0,
        });
        if is_mixed(object) || !self.chain(number) {
            let all = &self.all;
            let hash_of = |&number: &u32| {
                let place = &all[number as usize];
                hash(place.start, place.end, place.object)
            };
            self.others
                .insert_unique(hash(start, end, object), number, hash_of);
        }
        Some(number)
    }

    /// Lets the slot of a new place lead to it first. False if the slot leads to too many others.
    fn chain(&mut self, number: u32) -> bool {
        let Place { start, object, .. } = self.all[number as usize];
        let next_page = self.pages.len() as u32;
        let page = self.page_numbers.entry(start >> PAGE_BITS);
        let page = *page.or_insert(next_page) as usize;
        if page == self.pages.len() {
            self.pages.push([NONE; SLOTS]);
        }
        let mut chain = Vec::new();
        let mut at = self.pages[page][slot_of(start)];
        while let Some(place) = self.all.get(at as usize) {
            // That byte was allocated anew since: a place in what was there before is never accessed again.
            if place.start != start || place.object == object {
                chain.push(at);
            }
            at = place.next;
        }
        let fits = chain.len() < CHAIN_MAX;
        if fits {
            chain.insert(0, number);
        }
        let link = |next, &number: &u32| {
            self.all[number as usize].next = next;
            number
        };
        self.pages[page][slot_of(start)] = chain.iter().rev().fold(NONE, link);
        fits
    }

    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut Place {
        &mut self.all[number as usize]
    }

    pub fn into_all(self) -> Vec<Place> {
        self.all
    }
}

#[inline]
fn slot_of(start: u64) -> usize {
    (start >> SLOT_BITS) as usize % SLOTS
}

#[inline]
fn hash(start: u64, end: u64, object: ObjectId) -> u64 {
    let mut hasher = FxHasher::default();
    (start, end, object).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_number_and_another_gets_another() {
        let mut places = Places::default();
        let mut before = 0;
        // Objects one after the other; more in one slot than it leads to; far pages; the end of memory.
        for object in [0, 3, 9, 1 << 31] {
            let starts = [0u64, 1, 7, 8, 5000, 1 << 40, u64::MAX - 90].into_iter();
            let wanted: Vec<(u64, u64)> = starts
                .flat_map(|start| (1..=40).map(move |size| (start, start + size)))
                .collect();
            for _ in 0..2 {
                for (nth, &(start, end)) in wanted.iter().enumerate() {
                    let found = places.number(start, end, object, 1);
                    assert_eq!(found, Some(before + nth as u32), "{start} {end} {object}");
                }
            }
            before += wanted.len() as u32;
        }
        assert_eq!(places.into_all().len() as u32, before);
    }

    #[test]
    fn objects_that_share_a_slot_share_it_for_long() {
        let mut places = Places::default();
        for _ in 0..100 {
            assert_eq!(places.number(0, 4, 1, 1), Some(0));
            assert_eq!(places.number(4, 8, 2, 1), Some(1));
        }
    }
}
