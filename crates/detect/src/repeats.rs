//! Which accesses of a trace matter: most repeat one that the same thread has just made.
//!
//! This needs nothing but the trace itself, so it can be done where the trace is read, while detectors work on what was read
//! before.

use verdict_events::{Access, Event, EventKind, ThreadId};

/// 1024 x 16 bytes: half of a first-level cache.
const PLACES_BITS: u32 = 10;
/// Sizes below 2^7 and addresses below 2^56 fit a key together with what the access does.
const SIZES: u32 = 1 << 7;
const ADDRESSES: u64 = 1 << 56;
/// 2^64 divided by the golden ratio: neighbouring addresses get places far from each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The last plain access that fell on each place of a table. Forgets at any time, but never remembers what was not.
pub(crate) struct Repeats {
    places: Box<[Place; 1 << PLACES_BITS]>,
    is_empty: bool,
    /// By thread: how many times it synchronised or did anything else that is no plain access, or was joined.
    ended: Vec<u32>,
    /// How many times memory was allocated or freed, by anyone.
    reuses: u32,
}

#[derive(Clone, Copy)]
struct Place {
    segment: Segment,
    /// First byte, size, and in the lowest bit whether it wrote.
    key: u64,
}

/// A thread, and a number that grows with each of its segments and whenever memory becomes something else. At least as fine as
/// an epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Segment(u64);

const NOTHING: Place = Place {
    segment: Segment(u64::MAX),
    key: 0,
};

impl Repeats {
    pub fn new() -> Repeats {
        Repeats {
            places: Box::new([NOTHING; 1 << PLACES_BITS]),
            is_empty: true,
            ended: Vec::new(),
            reuses: 0,
        }
    }

    /// Replaces the content of `fresh` by the indices of all events of a batch but plain accesses to bytes that the same
    /// thread has accessed in the same segment, by a write if it is one, and that have not become a fresh object since.
    pub fn find_fresh(&mut self, batch: &[Event], fresh: &mut Vec<u32>) {
        // What is left of an earlier batch is written over. One more than needed: each index is put down before it is known
        // whether it stays.
        fresh.resize(batch.len() + 1, 0);
        let mut count = 0;
        let mut segment = NOTHING.segment;
        let mut thread = None;
        for (index, event) in (0..).zip(batch) {
            fresh[count] = index;
            let (access, is_write) = match &event.kind {
                EventKind::Read(access) => (access, false),
                EventKind::Write(access) => (access, true),
                kind => {
                    self.end_segments(event.thread, kind);
                    thread = None;
                    count += 1;
                    continue;
                }
            };
            if thread != Some(event.thread) {
                thread = Some(event.thread);
                segment = self.segment(event.thread);
            }
            count += usize::from(!self.repeats(access, is_write, segment));
        }
        fresh.truncate(count);
        self.is_empty &= batch.is_empty();
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if !self.is_empty {
            self.places.fill(NOTHING);
            self.is_empty = true;
        }
    }

    /// Whether an access repeats another. Remembers it otherwise.
    #[inline(always)]
    fn repeats(&mut self, access: &Access, is_write: bool, segment: Segment) -> bool {
        let addr = access.addr.0;
        if (addr / ADDRESSES) | u64::from(access.size / SIZES) != 0 {
            return false;
        }
        let key = addr << 8 | u64::from(access.size) << 1 | u64::from(is_write);
        let place = &mut self.places[(addr.wrapping_mul(SPREAD) >> (64 - PLACES_BITS)) as usize];
        // To a read, it does not matter whether the other was one. No branches: half of the accesses repeat another,
        // and nothing foretells which.
        let any = u64::from(!is_write);
        let repeats = (place.segment == segment) & (place.key | any == key | any);
        place.segment = segment;
        place.key = if repeats { place.key } else { key };
        repeats
    }

    /// Each event adds at most one to the number of a thread's segment: in a trace that can be analysed, none comes back.
    #[inline(never)]
    fn end_segments(&mut self, thread: ThreadId, kind: &EventKind) {
        match *kind {
            EventKind::Allocate { .. } | EventKind::Free { .. } => {
                self.reuses = self.reuses.wrapping_add(1)
            }
            EventKind::Join(child) if child != thread => {
                self.end_segment(thread);
                // It posts too, and may go on if the trace is odd.
                self.end_segment(child);
            }
            _ => self.end_segment(thread),
        }
    }

    fn end_segment(&mut self, thread: ThreadId) {
        let ended = self.ended(thread);
        *ended = ended.wrapping_add(1);
    }

    fn segment(&mut self, thread: ThreadId) -> Segment {
        let number = self.ended(thread).wrapping_add(self.reuses);
        Segment(u64::from(thread.0) << 32 | u64::from(number))
    }

    fn ended(&mut self, thread: ThreadId) -> &mut u32 {
        let index = thread.0 as usize;
        if index >= self.ended.len() {
            self.ended.resize(index + 1, 0);
        }
        &mut self.ended[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_events::{Addr, LockMode, SiteId, SyncId};

    fn event(thread: u32, kind: EventKind) -> Event {
        Event {
            thread: ThreadId(thread),
            site: SiteId(0),
            kind,
        }
    }

    fn access(addr: u64, size: u32) -> Access {
        Access {
            addr: Addr(addr),
            size,
            value: None,
        }
    }

    fn read(thread: u32, addr: u64, size: u32) -> Event {
        event(thread, EventKind::Read(access(addr, size)))
    }

    fn write(thread: u32, addr: u64, size: u32) -> Event {
        event(thread, EventKind::Write(access(addr, size)))
    }

    fn fresh(batch: &[Event]) -> Vec<u32> {
        let mut fresh = vec![7; 3];
        Repeats::new().find_fresh(batch, &mut fresh);
        fresh
    }

    #[test]
    fn a_write_covers_reads_but_not_the_other_way_round() {
        let (read, write) = (read(1, 64, 8), write(1, 64, 8));
        assert_eq!(fresh(&[read, read, write, write, read]), [0, 2]);
    }

    #[test]
    fn other_bytes_and_other_threads_are_fresh() {
        let [whole, part, other] = [read(1, 64, 8), read(1, 64, 4), read(2, 64, 8)];
        assert_eq!(
            fresh(&[whole, part, whole, other]),
            [0, 1, 2, 3],
            "one for each place"
        );
        let odd = [read(1, 64, 128), read(1, 1 << 56, 8)];
        assert_eq!(fresh(&[odd[0], odd[0], odd[1], odd[1]]), [0, 1, 2, 3]);
    }

    #[test]
    fn segments_end_at_everything_else() {
        let read = read(1, 64, 8);
        let acquire = event(1, EventKind::Acquire(SyncId(0), LockMode::Exclusive));
        let elsewhere = event(2, acquire.kind);
        assert_eq!(fresh(&[read, acquire, read]), [0, 1, 2]);
        assert_eq!(fresh(&[read, elsewhere, read]), [0, 1]);
        let joined = event(2, EventKind::Join(ThreadId(1)));
        assert_eq!(fresh(&[read, joined, read]), [0, 1, 2]);
        let (addr, size) = (Addr(64), 8);
        let allocated = event(2, EventKind::Allocate { addr, size });
        assert_eq!(fresh(&[read, allocated, read]), [0, 1, 2]);
    }

    #[test]
    fn what_was_cleared_is_fresh() {
        let mut repeats = Repeats::new();
        let (batch, mut fresh) = ([read(1, 64, 8)], Vec::new());
        repeats.find_fresh(&batch, &mut fresh);
        assert_eq!(fresh, [0]);
        repeats.find_fresh(&batch, &mut fresh);
        assert_eq!(fresh, []);
        repeats.clear();
        repeats.find_fresh(&batch, &mut fresh);
        assert_eq!(fresh, [0]);
    }
}
