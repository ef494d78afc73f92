//! Every place that is accessed, numbered as it is first seen.
//!
//! A *place* is the bytes of an access together with the object they lie in. Block files hold place numbers: they are
//! small, near each other where a thread works, and looking one up while detecting is an index, not a hash.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use verdict_detect::AccessKind;

use crate::allocations::ObjectId;
use crate::record::What;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    pub object: ObjectId,
    pub thread: u32,
    /// Entries that block files have for it.
    pub entries: u32,
    /// The block that accessed it last, and the place of the newest entry for it there.
    pub last_block: u32,
    pub last_entry: u32,
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

#[derive(Default)]
pub(crate) struct Places {
    all: Vec<Place>,
    table: HashTable<u32>,
}

impl Places {
    /// The number of a place, or nothing when there are no more numbers.
    #[inline]
    pub fn number(&mut self, start: u64, end: u64, object: ObjectId, thread: u32) -> Option<u32> {
        let all = &mut self.all;
        let found = self.table.find(hash(start, end, object), |&number| {
            let place = &all[number as usize];
            place.start == start && place.end == end && place.object == object
        });
        match found {
            Some(&number) => Some(number),
            None => self.add(start, end, object, thread),
        }
    }

    fn add(&mut self, start: u64, end: u64, object: ObjectId, thread: u32) -> Option<u32> {
        let number = u32::try_from(self.all.len())
            .ok()
            .filter(|&n| n < u32::MAX)?;
        self.all.push(Place {
            start,
            end,
            object,
            thread,
            entries: 0,
            last_block: u32::MAX,
            last_entry: 0,
            threads: Threads::One,
            kinds: 0,
        });
        let all = &self.all;
        let hash_of = |&number: &u32| {
            let place = &all[number as usize];
            hash(place.start, place.end, place.object)
        };
        self.table
            .insert_unique(hash(start, end, object), number, hash_of);
        Some(number)
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
fn hash(start: u64, end: u64, object: ObjectId) -> u64 {
    let mut hasher = FxHasher::default();
    (start, end, object).hash(&mut hasher);
    hasher.finish()
}
