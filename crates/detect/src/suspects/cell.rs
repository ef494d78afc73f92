//! What is known of the accesses to one granule: its last write, and its last reads.
//!
//! Both are words: which bytes (8 bits), how many posts of the thread before (32 bits), the thread (22 bits), and two bits for
//! what is not an access. 0 is no access.

use verdict_clocks::{Epoch, HappensBefore};
use verdict_events::ThreadId;

use super::readers::Readers;

pub(super) const BYTES: u64 = 0xff;
const COUNT_SHIFT: u32 = 8;
const THREAD_SHIFT: u32 = 40;
const THREADS_MAX: u32 = 1 << 22;
/// The word is no access: of a write, that more is known elsewhere; of a read, that there are several.
pub(super) const SPECIAL: u64 = 1 << 63;
/// Of a write: the granule is atomic, or was accessed by an atomic operation.
pub(super) const ATOMIC: u64 = 1 << 62;

/// An epoch as a word, without bytes. `None` for threads that have no room in one.
pub(super) fn word_of(epoch: Epoch) -> Option<u64> {
    let thread = epoch.thread().0;
    (thread < THREADS_MAX)
        .then(|| u64::from(thread) << THREAD_SHIFT | u64::from(epoch.count()) << COUNT_SHIFT)
}

pub(super) fn thread_of(word: u64) -> u64 {
    (word & !(SPECIAL | ATOMIC)) >> THREAD_SHIFT
}

/// Whether what `viewer` does now is ordered after the access `word`.
pub(super) fn follows(viewer: u64, word: u64, order: &HappensBefore) -> bool {
    let thread = thread_of(word);
    let count = (word >> COUNT_SHIFT) as u32;
    thread == viewer
        || count
            < order
                .clock(ThreadId(viewer as u32))
                .get(ThreadId(thread as u32))
}

/// What an access to a granule, or to one byte of it, comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Touched {
    /// It is ordered after all earlier ones that it conflicts with.
    Ordered,
    /// It may race with one.
    MayRace,
    /// It is unordered with one to other bytes of the granule: they have to be told apart.
    Apart,
}

/// The last accesses to a granule.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Cell {
    pub(super) write: u64,
    pub(super) read: u64,
}

/// An access on its way: epoch and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) word: u64,
    pub(super) is_write: bool,
}

impl Cell {
    /// True if an access to the same bytes in the same epoch has been seen, a write if it is one.
    #[inline(always)]
    pub(super) fn repeats(&self, access: Access) -> bool {
        let same = |word: u64| (word ^ access.word) & (!BYTES | access.word) == 0;
        same(self.write) || !access.is_write && same(self.read) && self.write < ATOMIC
    }

    /// Remembers an access if all that is known are accesses of the same thread: it follows these, and what others have done
    /// need not be asked for. False if there is more to it.
    #[inline(always)]
    pub(super) fn touch_own(&mut self, access: Access) -> bool {
        let own = |word: u64| word == 0 || (word ^ access.word) >> THREAD_SHIFT == 0;
        if !own(self.write) || !own(self.read) {
            return false;
        }
        if access.is_write {
            self.write = access.word | self.write & BYTES;
            if self.read & BYTES & !self.write == 0 {
                self.read = 0;
            }
        } else {
            self.read = access.word | self.read & BYTES;
        }
        true
    }

    /// Compares an access with those that are known, then remembers it.
    pub(super) fn touch(
        &mut self,
        access: Access,
        order: &HappensBefore,
        readers: &mut Readers,
    ) -> Touched {
        let compared = self.compare(access, order, readers);
        if compared == Touched::Ordered {
            self.remember(access, order, readers);
        }
        compared
    }

    fn compare(&self, access: Access, order: &HappensBefore, readers: &Readers) -> Touched {
        let mut all = against(self.write, access.word, order);
        if access.is_write && all != Touched::MayRace {
            if self.read & SPECIAL == 0 {
                all = all.worse(against(self.read, access.word, order));
            } else {
                let each = readers.of(self.read).iter();
                all = each.fold(all, |all, read| {
                    all.worse(against(*read, access.word, order))
                });
            }
        }
        all
    }

    /// Where several bytes have different histories, all get the later one: whoever does not follow an earlier access
    /// follows no access that does.
    fn remember(&mut self, access: Access, order: &HappensBefore, readers: &mut Readers) {
        if access.is_write {
            self.write = access.word | self.write & (BYTES | ATOMIC);
            // Both kinds of words have their bytes at the same place.
            if self.read & BYTES & !self.write == 0 {
                readers.release(self.read);
                self.read = 0;
            }
        } else {
            self.read = readers.add(self.read, access.word, order);
        }
    }
}

impl Touched {
    fn worse(self, other: Touched) -> Touched {
        match (self, other) {
            (Touched::MayRace, _) | (_, Touched::MayRace) => Touched::MayRace,
            (Touched::Apart, _) | (_, Touched::Apart) => Touched::Apart,
            _ => Touched::Ordered,
        }
    }
}

/// An earlier access against the one that happens now.
pub(super) fn against(earlier: u64, now: u64, order: &HappensBefore) -> Touched {
    let bytes = earlier & BYTES;
    if bytes == 0 || follows(thread_of(now), earlier, order) {
        Touched::Ordered
    } else if bytes & now == 0 {
        Touched::Apart
    } else {
        Touched::MayRace
    }
}
