//! Plain accesses of a running thread, many of them between two of its other events.
//!
//! In a short epoch, what the cells know is the quickest way to see that an access says nothing new. In a long one, `Recent` is.

use super::bytes::GRANULE;
use super::cell::{Access, BYTES};
use super::recent::Key;
use super::{Doubt, Life, Looked, Suspects, bytes_between, touch_own};
use verdict_events::ThreadId;

/// A running thread in its present epoch: what its plain accesses are taken with, until it does anything else.
#[derive(Clone, Copy, Debug)]
pub struct Present {
    pub(super) word: u64,
    pub(super) key: Key,
    /// It does so much in this epoch that `Recent` pays.
    pub(super) is_long: bool,
}

/// So many plain accesses make an epoch a long one. Before that, few of them are repeated often enough for `Recent` to save
/// more than it costs to look there first. Small in tests, which are to come by both.
const LONG: u32 = if cfg!(debug_assertions) { 6 } else { 1000 };

/// More granules than this are worth to be taken page by page.
const FEW: u64 = 8;

impl Suspects {
    /// A thread goes on with so many plain accesses. `None` if they need not be told, or if nothing is known of the thread.
    #[inline(always)]
    pub fn present(&mut self, thread: ThreadId, accesses: usize) -> Option<Present> {
        let state = self.threads.get_mut(thread.0 as usize)?;
        if state.life != Life::Running {
            return None;
        }
        state.announced = state.announced.saturating_add(accesses as u32);
        Some(Present {
            word: state.word,
            key: state.key,
            is_long: state.announced > LONG,
        })
    }

    /// True only if a plain access need not be told, since it repeats another one.
    #[inline(always)]
    #[must_use]
    pub fn repeats(&mut self, present: Present, address: u64, size: u32, is_write: bool) -> bool {
        if present.is_long {
            return self.recent.repeats(present.key, address, size, is_write);
        }
        let Some(bytes) = bytes_of(address, size) else {
            return false;
        };
        let access = Access {
            word: present.word | bytes,
            is_write,
        };
        let cell = self.places.known(address);
        cell.is_some_and(|cell| cell.repeats(access))
    }

    /// A plain access of a running thread to some bytes.
    #[inline(always)]
    pub fn access_in(
        &mut self,
        present: Present,
        address: u64,
        size: u32,
        is_write: bool,
    ) -> Looked {
        if !present.is_long {
            return self.access_short(present.word, address, size, is_write);
        }
        if self.recent.repeats(present.key, address, size, is_write) {
            return Looked::Done;
        }
        self.access_long(present.word, present.key, address, size, is_write)
    }

    /// A plain access that repeats none of those that its thread has made in its epoch, as far as whoever calls has seen.
    #[inline(always)]
    pub fn access_new(
        &mut self,
        thread: ThreadId,
        address: u64,
        size: u32,
        is_write: bool,
    ) -> Looked {
        match self.threads.get(thread.0 as usize) {
            Some(state) if state.life == Life::Running && size > 0 => {
                self.access_short(state.word, address, size, is_write)
            }
            _ => self.access(thread, address, size, is_write),
        }
    }

    /// A plain access to this address will be told soon: what is known of it may be far away.
    #[inline(always)]
    pub fn expect(&self, address: u64) {
        self.places.fetch(address);
    }

    /// The same in a short epoch.
    #[inline(always)]
    fn access_short(&mut self, word: u64, address: u64, size: u32, is_write: bool) -> Looked {
        let Some(bytes) = bytes_of(address, size) else {
            return self.access_across(word, address, size, is_write);
        };
        let access = Access {
            word: word | bytes,
            is_write,
        };
        let Some(cell) = self.places.known(address) else {
            return self.access_across(word, address, size, is_write);
        };
        if cell.repeats(access) || touch_own(cell, access, &self.order, &mut self.readers) {
            return Looked::Done;
        }
        self.access_granule(address, access, Doubt::Ask)
    }

    /// The same of any granules.
    #[inline(never)]
    fn access_across(&mut self, word: u64, address: u64, size: u32, is_write: bool) -> Looked {
        let size = u64::from(size);
        if size > FEW * GRANULE {
            let present = Present {
                word,
                key: Key::default(),
                is_long: false,
            };
            return self.access_many(present, address, size, is_write, Doubt::Ask);
        }
        let end = address.saturating_add(size);
        let mut at = address;
        let mut all = Looked::Done;
        while at < end {
            let next = (at / GRANULE + 1) * GRANULE;
            let access = Access {
                word: word | bytes_between(at, end.min(next)),
                is_write,
            };
            let cell = self.places.cell(at);
            let is_done =
                cell.repeats(access) || touch_own(cell, access, &self.order, &mut self.readers);
            if !is_done && self.access_granule(at, access, Doubt::Ask) == Looked::PerhapsAtomic {
                all = Looked::PerhapsAtomic;
            }
            at = next;
        }
        all
    }

    /// The same in a long epoch, of one that does not repeat another one as far as `Recent` can see.
    #[inline(never)]
    fn access_long(
        &mut self,
        word: u64,
        key: Key,
        address: u64,
        size: u32,
        is_write: bool,
    ) -> Looked {
        let Some(bytes) = bytes_of(address, size) else {
            let present = Present {
                word,
                key,
                is_long: true,
            };
            return self.access_many(present, address, u64::from(size), is_write, Doubt::Ask);
        };
        let access = Access {
            word: word | bytes,
            is_write,
        };
        let cell = self.places.cell(address);
        if cell.repeats(access) {
            let end = address + u64::from(size);
            self.recent.remember(key, address, end, is_write);
            return Looked::Done;
        }
        // Most are not repeated before the thread's next epoch: to remember them is not worth it yet.
        match touch_own(cell, access, &self.order, &mut self.readers) {
            true => Looked::Done,
            false => self.access_granule(address, access, Doubt::Ask),
        }
    }
}

/// The bits of an access to some bytes of one granule; `None` if there are more.
#[inline(always)]
fn bytes_of(address: u64, size: u32) -> Option<u64> {
    let offset = address % GRANULE;
    let fits = offset + u64::from(size) <= GRANULE;
    fits.then(|| BYTES.wrapping_shr((GRANULE as u32).wrapping_sub(size)) << offset)
}
