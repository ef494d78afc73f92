//! Which accesses of a trace matter: most repeat one that the same thread has just made.
//!
//! This needs nothing but the trace itself, so it can be done where the trace is read, while detectors work on what was read
//! before.

use verdict_events::{Between, Digest, Event, EventKind, ThreadId};

/// 512 x 16 bytes: a quarter of a first-level cache. Twice as many would find one more of a hundred.
const PLACES_BITS: u32 = 9;
/// 2^64 divided by the golden ratio: neighbouring addresses get places far from each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The last plain access that fell on each place of a table. Forgets at any time, but never remembers what was not.
pub(crate) struct Repeats {
    places: Box<[Place; 1 << PLACES_BITS]>,
    /// By thread: how many times it synchronised or did anything else that is no plain access, or was joined.
    ended: Vec<u32>,
    /// How many times memory was allocated or freed, by anyone.
    reuses: u32,
    /// The one that accesses are in now.
    segment: Segment,
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

impl Default for Segment {
    /// None that there is.
    fn default() -> Segment {
        Segment(u64::MAX)
    }
}

impl Repeats {
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

    /// Leaves out of a digest, from the step with number `first` on, accesses to bytes that the same thread has accessed in the
    /// same segment, by a write if it is one, and that have not become a fresh object since. Not all of them: that would take
    /// too long. What comes before is what it was given last, or nothing.
    pub fn leave_out(&mut self, digest: &mut Digest, first: usize) {
        let mut segment = self.segment;
        digest.leave_out(first, |step, others| {
            if step.size() != 0 {
                return self.repeats(step.key(), segment);
            }
            match step.between() {
                Between::Thread(thread) => segment = self.segment_of(thread),
                Between::Other(number) => self.pass(&others[number]),
            }
            false
        });
        self.segment = segment;
    }

    /// Whether an access, in the segment in which its thread is, repeats another. Remembers it otherwise.
    #[inline(always)]
    fn repeats(&mut self, key: u64, segment: Segment) -> bool {
        let place = (key >> 8).wrapping_mul(SPREAD) >> (64 - PLACES_BITS);
        let place = &mut self.places[place as usize];
        // To a read, it does not matter whether the other was one. No branches: half of the accesses repeat another,
        // and nothing foretells which.
        let any = !key & 1;
        let repeats = (place.segment == segment) & (place.key | any == key | any);
        place.segment = segment;
        place.key = if repeats { place.key } else { key };
        repeats
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

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_events::{Access, Addr, LockMode, SiteId, SyncId};

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

    /// Also if the digest grows event by event.
    fn fresh(batch: &[Event]) -> Vec<u32> {
        let fresh_of = |parts: usize| {
            let (mut digest, mut repeats) = (Digest::new(), Repeats::new());
            for part in batch.chunks(parts) {
                let first = digest.steps().len();
                digest.extend(part);
                repeats.leave_out(&mut digest, first);
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
        let (mut digest, mut repeats) = (Digest::new(), Repeats::new());
        let mut told = || {
            digest.clear();
            digest.extend(&[read(1, 64, 8)]);
            repeats.leave_out(&mut digest, 0);
            digest.told().count()
        };
        assert_eq!([told(), told()], [1, 0]);
    }
}
