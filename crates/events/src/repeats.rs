//! Which accesses of a trace matter: most repeat one that the same thread has just made.
//!
//! This needs nothing but the trace itself, so it can be done where the trace is read, while detectors work on what was read
//! before.

use crate::digest::{Filter, FilterRun};
use crate::{Event, EventKind, ThreadId};

/// 512 x 16 bytes: a quarter of a first-level cache. Twice as many would find one more of a hundred.
const PLACES_BITS: u32 = 9;
/// 2^64 divided by the golden ratio: neighbouring addresses get places far from each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finds accesses to bytes that the same thread has accessed in the same segment, by a write if it is one, and that have
/// not become a fresh object since. Not all of them: that would take too long.
///
/// The last plain access that fell on each place of a table. Forgets at any time, but never remembers what was not.
#[derive(Debug)]
pub struct Repeats {
    places: Box<[Place; 1 << PLACES_BITS]>,
    /// By thread: how many times it synchronised or did anything else that is no plain access, or was joined.
    ended: Vec<u32>,
    /// How many times memory was allocated or freed, by anyone.
    reuses: u32,
    /// The one that accesses are in now.
    segment: Segment,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    segment: Segment,
    /// First byte, size, and in the lowest bit whether it wrote.
    key: u64,
}

/// A thread, and a number that grows with each of its segments and whenever memory becomes something else. At least as fine as
/// an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Segment(u64);

impl Default for Segment {
    /// None that there is.
    fn default() -> Segment {
        Segment(u64::MAX)
    }
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats::new()
    }
}

impl Repeats {
    /// Nothing has been accessed yet.
    #[must_use]
    pub fn new() -> Repeats {
        let nothing = Place {
            segment: Segment::default(),
            key: 0,
        };
        Repeats {
            places: Box::new([nothing; 1 << PLACES_BITS]),
            ended: Vec::new(),
            reuses: 0,
            segment: Segment::default(),
        }
    }

    /// The segment in which a thread is.
    fn segment_of(&mut self, thread: ThreadId) -> Segment {
        let number = self.ended(thread).wrapping_add(self.reuses);
        Segment(u64::from(thread.0) << 32 | u64::from(number))
    }

    fn end_segment(&mut self, thread: ThreadId) {
        let ended = self.ended(thread);
        *ended = ended.wrapping_add(1);
    }

    fn ended(&mut self, thread: ThreadId) -> &mut u32 {
        let index = thread.0 as usize;
        if index >= self.ended.len() {
            self.ended.resize(index + 1, 0);
        }
        &mut self.ended[index]
    }
}

impl Filter for &mut Repeats {
    fn begin(&mut self, thread: ThreadId) {
        self.segment = self.segment_of(thread);
    }

    #[inline(always)]
    fn run(&mut self) -> impl FilterRun {
        Run {
            places: &mut self.places,
            segment: self.segment,
        }
    }

    /// Passes what goes into a digest as it is. Each event adds at most one to the number of a
    /// thread's segment: in a trace that can be analysed, none comes back.
    #[inline(never)]
    fn pass(&mut self, event: &Event) {
        let thread = event.thread;
        match event.kind {
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
}

/// Some accesses in a row, in one segment.
struct Run<'a> {
    places: &'a mut [Place; 1 << PLACES_BITS],
    segment: Segment,
}

impl FilterRun for Run<'_> {
    /// Whether an access repeats another. Remembers it otherwise.
    #[inline(always)]
    fn leaves_out(&mut self, addr: u64, key: u64) -> bool {
        let place = addr.wrapping_mul(SPREAD) >> (64 - PLACES_BITS);
        let place = &mut self.places[place as usize];
        // To a read, it does not matter whether the other was one. No branches: half of the accesses repeat another,
        // and nothing foretells which.
        let any = !key & 1;
        let repeats = (place.segment == self.segment) & (place.key | any == key | any);
        place.segment = self.segment;
        place.key = if repeats { place.key } else { key };
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::{event, read, write};
    use crate::{Addr, Digest, LockMode, SyncId};

    /// Also if the digest grows event by event.
    fn fresh(batch: &[Event]) -> Vec<u32> {
        let fresh_of = |parts: usize| {
            let mut digest = Digest::new();
            digest.leave_out(Some(Repeats::new()));
            for part in batch.chunks(parts) {
                digest.extend(part);
            }
            digest.told().map(|(index, _)| index).collect()
        };
        let fresh = fresh_of(batch.len());
        assert_eq!(fresh, fresh_of(1));
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
    fn repeated_accesses_are_found_across_digests() {
        let mut repeats = Some(Repeats::new());
        let mut told = || {
            let mut digest = Digest::new();
            digest.leave_out(repeats.take());
            digest.extend(&[read(1, 64, 8)]);
            repeats = digest.take_repeats();
            digest.told().count()
        };
        assert_eq!([told(), told()], [1, 0]);
    }
}
