//! Which bytes may race: all that do, and few others. A first look that costs little, so that detectors need to read only what
//! happens to these bytes.
//!
//! FastTrack (Flanagan & Freund 2009) on granules of eight bytes, without remembering sites. In: plain accesses, and all
//! other events. Out: [`SuspectBytes`].
//!
//! Misses nothing: every byte of every race instance of `hb` is among the suspects. Suspects too much where two bytes of a granule
//! are accessed by different threads in an order that holds for one of them only, and where more than a million sets
//! of readers are there at once.
//! Departs from the paper: sets of readers are shared by granules; what a thread does while no other one is running that it
//! has not waited for is not looked at, since it is ordered with everything else. Where threads come from nowhere, or there are
//! millions of them, everything is suspected.

mod bytes;
mod cell;
mod hints;
mod places;
mod present;
mod ranges;
mod readers;
mod recent;

pub use bytes::SuspectBytes;
pub use present::Present;

use std::ops::Range;

use rustc_hash::FxHashMap;
use verdict_clocks::{HappensBefore, Rules};
use verdict_events::{Access as Bytes, Event, EventKind, ThreadId};

use bytes::GRANULE;
use cell::{ATOMIC, Access, BYTES, Cell, SPECIAL, Touched, against, word_of};
use places::{PAGE, Places};
use ranges::Ranges;
use readers::Readers;
use recent::{Key, Recent};

/// What became of a plain access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Looked {
    /// It is done with.
    Done,
    /// It touches memory that is accessed by atomic operations, or that was marked as such: if the caller is sure that it is
    /// plain, [`Suspects::access_plain`] takes it.
    PerhapsAtomic,
}

/// What to do with a plain access to memory that is accessed by atomic operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doubt {
    Ask,
    Plain,
}

/// Looks for bytes that may race.
#[derive(Debug)]
pub struct Suspects {
    order: HappensBefore,
    places: Places,
    readers: Readers,
    atomics: FxHashMap<u64, AtomicUse>,
    /// Granules whose bytes are told apart.
    split: Vec<[Cell; GRANULE as usize]>,
    found: SuspectBytes,
    ranges: Ranges,
    recent: Recent,
    threads: Vec<Thread>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Thread {
    /// Its epoch.
    word: u64,
    /// Stands for thread and epoch.
    key: Key,
    /// Plain accesses that were announced in this epoch, see [`Suspects::present`].
    announced: u32,
    life: Life,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Life {
    /// Nothing is known of it.
    #[default]
    Unborn,
    Running,
    /// It is running and need not be looked at: nobody else is, and it follows all that others have done.
    Alone,
    /// It has ended, or was joined.
    Over,
}

/// Atomic operations on a granule.
#[derive(Clone, Copy, Default, Debug)]
struct AtomicUse {
    writes: u64,
    reads: u64,
}

impl Default for Suspects {
    fn default() -> Self {
        Self::new()
    }
}

impl Suspects {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Suspects {
        Suspects::ordered_by(Rules::All)
    }

    /// For what is predicted: every byte of every instance of `hybrid` is among the suspects. Its instances are not ordered by these
    /// rules, so that locks, which are for `hybrid` to know of, can only make them fewer.
    #[must_use]
    pub fn of_predictions() -> Suspects {
        Suspects::ordered_by(Rules::Messages)
    }

    fn ordered_by(rules: Rules) -> Suspects {
        Suspects {
            order: HappensBefore::new(rules),
            places: Places::default(),
            readers: Readers::default(),
            atomics: FxHashMap::default(),
            split: Vec::new(),
            found: SuspectBytes::default(),
            ranges: Ranges::default(),
            recent: Recent::default(),
            threads: Vec::new(),
        }
    }

    /// All that may race.
    #[must_use]
    pub fn finish(self) -> SuspectBytes {
        self.found
    }

    /// True if what the thread does now need not be told.
    #[inline(always)]
    #[must_use]
    pub fn is_alone(&self, thread: ThreadId) -> bool {
        self.threads
            .get(thread.0 as usize)
            .is_some_and(|thread| thread.life == Life::Alone)
    }

    fn is_running(&self, thread: ThreadId) -> bool {
        self.threads
            .get(thread.0 as usize)
            .is_some_and(|thread| matches!(thread.life, Life::Running | Life::Alone))
    }

    /// A plain access.
    #[inline(always)]
    pub fn access(&mut self, thread: ThreadId, address: u64, size: u32, is_write: bool) -> Looked {
        let Some(state) = self.threads.get(thread.0 as usize) else {
            return self.first_access(thread, address, size, is_write);
        };
        match state.life {
            Life::Running => {}
            Life::Alone => return Looked::Done,
            Life::Unborn | Life::Over => {
                return self.first_access(thread, address, size, is_write);
            }
        }
        match self.present(thread, 1) {
            Some(present) if size > 0 => self.access_in(present, address, size, is_write),
            _ => Looked::Done,
        }
    }

    /// A plain access, whatever else happens to its memory.
    pub fn access_plain(&mut self, thread: ThreadId, address: u64, size: u32, is_write: bool) {
        if self.access(thread, address, size, is_write) == Looked::PerhapsAtomic {
            self.access_whole(thread, address, u64::from(size), is_write, Doubt::Plain);
        }
    }

    /// Plain accesses that come by all these bytes, in any order, with nothing else between.
    pub fn access_range(
        &mut self,
        thread: ThreadId,
        address: u64,
        size: u64,
        is_write: bool,
    ) -> Looked {
        if self.is_alone(thread) {
            return Looked::Done;
        }
        if !self.is_running(thread) {
            self.refresh(thread);
        }
        let key = self.thread(thread).key;
        let end = address.saturating_add(size);
        // Granules that are in the range as a whole, and what is left at its ends.
        let first = address.checked_next_multiple_of(GRANULE).unwrap_or(end);
        let mut rest = first..end / GRANULE * GRANULE;
        if rest.is_empty() {
            return self.access_whole(thread, address, size, is_write, Doubt::Ask);
        }
        let mut all = Looked::Done;
        let mut access = |suspects: &mut Self, part: &Range<u64>| {
            let size = part.end - part.start;
            let looked = suspects.access_whole(thread, part.start, size, is_write, Doubt::Ask);
            if looked != Looked::Done {
                all = looked;
            }
            looked
        };
        for edge in [address..rest.start, rest.end..end] {
            if !edge.is_empty() {
                access(self, &edge);
            }
        }
        while let Some(part) = self.ranges.next_new(key, rest.clone(), is_write) {
            rest.start = part.end;
            if self.recent.repeats_all(key, part.start, part.end, is_write)
                || access(self, &part) == Looked::Done
            {
                self.ranges.remember(key, part, is_write);
            }
        }
        all
    }

    /// The granule of an address is atomic from now on: [`Looked::PerhapsAtomic`] is answered for plain accesses to it.
    pub fn mark_atomic(&mut self, address: u64) {
        self.places.cell(address).write |= ATOMIC;
        let end = address.saturating_add(1);
        self.recent.forget(address, end);
        self.ranges.forget(address, end);
    }

    /// Any event that is no plain access.
    pub fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Read(access) | EventKind::Write(access) => {
                let is_write = matches!(event.kind, EventKind::Write(_));
                self.access_plain(event.thread, access.addr.0, access.size, is_write);
            }
            EventKind::AtomicLoad(access, _) => self.atomic(event, access, false),
            EventKind::AtomicStore(access, _) | EventKind::AtomicRmw(access, _) => {
                self.atomic(event, access, true);
            }
            EventKind::Allocate { addr, size } => {
                let end = addr.0.saturating_add(size);
                self.ranges.forget(addr.0, end);
                self.recent.forget(addr.0, end);
                self.places.forget(addr.0, end);
                self.atomics_forget(addr.0, end);
            }
            EventKind::Free { addr, size } => self.free(event.thread, addr.0, size),
            _ => {
                self.order.receive(event);
                self.order.post(event);
                if event.kind != EventKind::End {
                    self.refresh(event.thread);
                }
                self.note_life(event);
            }
        }
    }

    #[inline(never)]
    fn first_access(
        &mut self,
        thread: ThreadId,
        address: u64,
        size: u32,
        is_write: bool,
    ) -> Looked {
        self.refresh(thread);
        self.access(thread, address, size, is_write)
    }

    #[inline(never)]
    fn access_granule(&mut self, address: u64, access: Access, doubt: Doubt) -> Looked {
        let cell = self.places.cell(address);
        if doubt == Doubt::Ask && cell.write & ATOMIC != 0 {
            return Looked::PerhapsAtomic;
        }
        if cell.write & (SPECIAL | ATOMIC) != 0 {
            self.access_special(address, access);
            return Looked::Done;
        }
        match cell.touch(access, &self.order, &mut self.readers) {
            Touched::Ordered => {}
            Touched::MayRace => self.suspect(address),
            Touched::Apart => {
                self.tell_apart(address);
                self.access_special(address, access);
            }
        }
        Looked::Done
    }

    /// An access to a granule of which more is known than a cell has room for.
    fn access_special(&mut self, address: u64, access: Access) {
        let cell = *self.places.cell(address);
        let granule = address / GRANULE;
        if is_suspect(cell) {
            return;
        }
        if cell.write & ATOMIC != 0
            && let Some(atomic) = self.atomics.get(&granule).copied()
            && self.races_with_atomics(access, atomic)
        {
            self.suspect(address);
            return;
        }
        let touched = match split_number(cell) {
            Some(number) => self.touch_bytes(number, access),
            None => {
                let cell = self.places.cell(address);
                cell.touch(access, &self.order, &mut self.readers)
            }
        };
        match touched {
            Touched::Ordered => {}
            Touched::MayRace => self.suspect(address),
            Touched::Apart => {
                self.tell_apart(address);
                self.access_special(address, access);
            }
        }
    }

    fn races_with_atomics(&self, access: Access, atomic: AtomicUse) -> bool {
        let reads = if access.is_write { atomic.reads } else { 0 };
        [atomic.writes, reads]
            .iter()
            .any(|word| self.races_with(access.word, *word))
    }

    /// Whether an access may race with one of those that a word stands for.
    fn races_with(&self, now: u64, word: u64) -> bool {
        let races = |earlier: u64| against(earlier, now, &self.order) == Touched::MayRace;
        if word & SPECIAL == 0 {
            races(word)
        } else {
            self.readers.of(word).iter().any(|earlier| races(*earlier))
        }
    }

    fn touch_bytes(&mut self, number: usize, access: Access) -> Touched {
        let mut all = Touched::Ordered;
        for (at, cell) in self.split[number].iter_mut().enumerate() {
            let bit = access.word & (1 << at);
            if bit == 0 {
                continue;
            }
            let one = Access {
                word: access.word & !BYTES | bit,
                ..access
            };
            if cell.repeats(one) {
                continue;
            }
            if cell.touch(one, &self.order, &mut self.readers) == Touched::MayRace {
                all = Touched::MayRace;
            }
        }
        all
    }

    /// From now on each byte of a granule has a history of its own.
    fn tell_apart(&mut self, address: u64) {
        let number = self.split.len() as u64;
        let cell = self.places.cell(address);
        cell.read = self.readers.shared(cell.read);
        let mut bytes = [Cell::default(); GRANULE as usize];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let only = |word: u64| match word & (1 << at) {
                0 => 0,
                _ if word & SPECIAL != 0 => word,
                bit => word & !(BYTES | ATOMIC) | bit,
            };
            *byte = Cell {
                write: only(cell.write),
                read: only(cell.read),
            };
        }
        cell.write = SPECIAL | cell.write & ATOMIC | number << 8;
        cell.read = 0;
        self.split.push(bytes);
    }

    /// [`Suspects::access_many`] of what is worth to be remembered.
    fn access_whole(
        &mut self,
        thread: ThreadId,
        address: u64,
        size: u64,
        is_write: bool,
        doubt: Doubt,
    ) -> Looked {
        let Thread { word, key, .. } = self.threads[thread.0 as usize];
        let present = Present {
            word,
            key,
            is_long: true,
        };
        self.access_many(present, address, size, is_write, doubt)
    }

    #[inline(never)]
    fn access_many(
        &mut self,
        present: Present,
        address: u64,
        size: u64,
        is_write: bool,
        doubt: Doubt,
    ) -> Looked {
        let Present { word, key, is_long } = present;
        let end = address.saturating_add(size);
        let mut at = address;
        let mut all = Looked::Done;
        while at < end {
            if at.is_multiple_of(GRANULE) {
                let whole = Access {
                    word: word | BYTES,
                    is_write,
                };
                if at.is_multiple_of(PAGE) && end - at >= PAGE && self.touch_page(at, whole) {
                    at += PAGE;
                    continue;
                }
                let touched = self.touch_many(at, end, whole);
                at += GRANULE * touched;
                if touched > 0 {
                    continue;
                }
            }
            let next = (at / GRANULE + 1) * GRANULE;
            let access = Access {
                word: word | bytes_between(at, end.min(next)),
                is_write,
            };
            if !self.places.cell(at).repeats(access)
                && self.access_granule(at, access, doubt) == Looked::PerhapsAtomic
            {
                all = Looked::PerhapsAtomic;
            }
            at = next;
        }
        if is_long && all == Looked::Done && doubt == Doubt::Ask {
            self.recent.remember(key, address, end, is_write);
        }
        all
    }

    /// Accesses a whole page, if that is ordered after all that was done to it, and all its granules are alike.
    fn touch_page(&mut self, start: u64, access: Access) -> bool {
        let Some(cell) = self.places.page(start) else {
            return false;
        };
        if cell.repeats(access) {
            return true;
        }
        let touched = cell.touch(access, &self.order, &mut self.readers);
        // Each granule may get it.
        cell.read = self.readers.shared(cell.read);
        touched == Touched::Ordered
    }

    /// Accesses whole granules for as long as that is simple, at most to the end of the page: answers with how many.
    #[inline]
    fn touch_many(&mut self, start: u64, end: u64, access: Access) -> u64 {
        let mut count = 0;
        for cell in self.places.cells(start, end) {
            if !cell.repeats(access) && !touch_own(cell, access, &self.order, &mut self.readers) {
                break;
            }
            count += 1;
        }
        count
    }

    fn atomic(&mut self, event: &Event, access: Bytes, is_write: bool) {
        self.order.receive(event);
        self.refresh(event.thread);
        if !self.is_alone(event.thread) {
            self.atomic_access(event.thread, access, is_write);
        }
        self.order.post(event);
        self.refresh(event.thread);
    }

    fn atomic_access(&mut self, thread: ThreadId, access: Bytes, is_write: bool) {
        let word = self.threads[thread.0 as usize].word;
        let (start, end) = (
            access.addr.0,
            access.addr.0.saturating_add(u64::from(access.size)),
        );
        let mut at = start;
        while at < end {
            let next = (at / GRANULE + 1) * GRANULE;
            let now = word | bytes_between(at, end.min(next));
            self.atomic_granule(at, now, is_write);
            at = next;
        }
    }

    fn atomic_granule(&mut self, address: u64, now: u64, is_write: bool) {
        let end = address.saturating_add(1);
        self.recent.forget(address, end);
        self.ranges.forget(address, end);
        let cell = self.places.cell(address);
        cell.write |= ATOMIC;
        let cell = *cell;
        if is_suspect(cell) {
            return;
        }
        let cells: &[Cell] = match split_number(cell) {
            Some(number) => &self.split[number],
            None => &[cell],
        };
        let races = cells.iter().any(|cell| {
            self.races_with(now, cell.write & !ATOMIC)
                || is_write && self.races_with(now, cell.read)
        });
        let used = self.atomics.entry(address / GRANULE).or_default();
        let kept = if is_write {
            &mut used.writes
        } else {
            &mut used.reads
        };
        *kept = self.readers.add(*kept, now, &self.order);
        if races {
            self.suspect(address);
        }
    }

    fn free(&mut self, thread: ThreadId, start: u64, size: u64) {
        self.refresh(thread);
        let state = self.threads[thread.0 as usize];
        let end = start.saturating_add(size);
        if state.life == Life::Alone {
            return;
        }
        for (start, end) in self.places.freed(start, end, state.word) {
            self.access_whole(thread, start, end - start, true, Doubt::Plain);
        }
    }

    fn atomics_forget(&mut self, start: u64, end: u64) {
        if self.atomics.is_empty() {
            return;
        }
        let (first, last) = (start / GRANULE, end.div_ceil(GRANULE));
        if last - first < self.atomics.len() as u64 {
            for granule in first..last {
                self.atomics.remove(&granule);
            }
        } else {
            self.atomics
                .retain(|granule, _| !(first..last).contains(granule));
        }
    }

    fn suspect(&mut self, address: u64) {
        self.found.add(address);
        let cell = self.places.cell(address);
        cell.write = SUSPECT | cell.write & ATOMIC;
        cell.read = 0;
    }

    // ---- threads ----

    fn note_life(&mut self, event: &Event) {
        match event.kind {
            EventKind::Fork(child) => {
                self.thread(child).life = Life::Running;
                self.refresh(child);
            }
            EventKind::End => self.thread(event.thread).life = Life::Over,
            EventKind::Join(child) => self.thread(child).life = Life::Over,
            _ => return,
        }
        self.look_who_is_alone();
    }

    fn look_who_is_alone(&mut self) {
        let mut only = None;
        let mut running = 0;
        for (index, thread) in (0..).zip(&mut self.threads) {
            if matches!(thread.life, Life::Running | Life::Alone) {
                thread.life = Life::Running;
                only = Some(ThreadId(index));
                running += 1;
            }
        }
        if let (Some(only), 1) = (only, running)
            && self.follows_all(only)
        {
            self.thread(only).life = Life::Alone;
        }
    }

    fn follows_all(&self, viewer: ThreadId) -> bool {
        let known = self.order.clock(viewer);
        (0..self.threads.len() as u32)
            .map(ThreadId)
            .all(|other| other == viewer || known.get(other) >= self.order.epoch(other).count())
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let index = thread.0 as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// The thread does something now.
    fn refresh(&mut self, thread: ThreadId) {
        let epoch = self.order.note_access(thread);
        let is_first = self.threads.is_empty();
        let state = self.thread(thread);
        let word = word_of(epoch);
        let is_new = state.key == Key::default() || state.word != word.unwrap_or(0);
        state.word = word.unwrap_or(0);
        let announced = matches!(state.life, Life::Running | Life::Alone);
        if !announced {
            state.life = Life::Running;
            self.look_who_is_alone();
        }
        // Threads that nobody has forked were there all the time.
        if word.is_none() || !announced && !is_first {
            self.found.add_all();
        }
        if is_new {
            self.renew_key(thread);
        }
    }

    fn renew_key(&mut self, thread: ThreadId) {
        if let Some(key) = self.recent.new_key(thread.0) {
            let state = self.thread(thread);
            (state.key, state.announced) = (key, 0);
            return;
        }
        self.recent.clear();
        self.ranges.forget_all();
        for (number, thread) in (0..).zip(&mut self.threads) {
            thread.key = self.recent.new_key(number).unwrap_or_default();
        }
    }
}

/// [`Cell::touch_own`], which does what [`Cell::touch`] does wherever it does anything.
#[inline(always)]
fn touch_own(
    cell: &mut Cell,
    access: Access,
    order: &HappensBefore,
    readers: &mut Readers,
) -> bool {
    let mut twin = *cell;
    let touched = cell.touch_own(access);
    if cfg!(debug_assertions) && touched {
        assert_eq!(twin.touch(access, order, readers), Touched::Ordered);
        assert_eq!(twin, *cell);
    }
    touched
}

/// Stands for the write of a granule that is among the suspects. No split granule has this number.
const SUSPECT: u64 = SPECIAL | (u32::MAX as u64) << 8;

fn is_suspect(cell: Cell) -> bool {
    cell.write & !ATOMIC == SUSPECT
}

fn split_number(cell: Cell) -> Option<usize> {
    (cell.write & SPECIAL != 0).then_some(((cell.write & !(SPECIAL | ATOMIC)) >> 8) as usize)
}

/// The bits of the bytes from `start` to `end`, within one granule.
fn bytes_between(start: u64, end: u64) -> u64 {
    let len = (end - start) as u32;
    (BYTES >> (GRANULE as u32 - len)) << (start % GRANULE)
}
