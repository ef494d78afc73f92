//! Events in a third of their room, for whoever reads a trace on one core and uses it on another.
//!
//! What passes from core to core is most of what that costs. An [`Event`] takes 48 bytes. Nearly all are plain accesses
//! of a few bytes whose values nobody asks for, and come in runs of one thread: of those, a [`Step`] of 16 bytes says
//! everything. The others go as they are.

use crate::{Access, Addr, Event, EventKind, SiteId, ThreadId};

/// Sizes below 2^7 and addresses below 2^56 fit a key together with what the access does.
const SIZES: u32 = 1 << 7;
const ADDRESSES: u64 = 1 << 56;

/// A plain access; or, with a size that none has, something else that happens between accesses.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// First byte, size, and in the lowest bit whether it writes.
    key: u64,
    /// Where in the program, if it is an access.
    pub site: SiteId,
    /// The number of the event in the digest.
    pub index: u32,
}

/// What a step is if it is no access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The accesses that follow are of this thread.
    Thread(ThreadId),
    /// The event with this number among those that go as they are. The next access comes after a [`Between::Thread`].
    Other(usize),
}

/// The lowest bit of what is no access.
const THREAD: u64 = 0;
const OTHER: u64 = 1;

/// Stands where no step was put yet.
const UNUSED: Step = Step {
    key: THREAD,
    site: SiteId(0),
    index: 0,
};

impl Step {
    /// All that matters of an access but its thread and site, in one word: the first byte in the upper 56 bits, 7 bits of size, and
    /// in the lowest bit whether it writes.
    #[inline(always)]
    pub fn key(self) -> u64 {
        self.key
    }

    /// First byte of an access.
    #[inline(always)]
    pub fn start(self) -> u64 {
        self.key >> 8
    }

    /// Number of bytes of an access; 0 if it is none.
    #[inline(always)]
    pub fn size(self) -> u32 {
        (self.key >> 1) as u32 & (SIZES - 1)
    }

    /// Whether an access writes.
    #[inline(always)]
    pub fn is_write(self) -> bool {
        self.key & 1 == 1
    }

    /// What it is, if it is no access.
    #[inline]
    pub fn between(self) -> Between {
        let number = self.key >> 8;
        match self.key & 1 {
            THREAD => Between::Thread(ThreadId(number as u32)),
            _ => Between::Other(number as usize),
        }
    }
}

/// What a digest says of a kind of access besides its first byte, or 0 if it has no steps for such.
#[inline(always)]
pub(crate) fn low_bits(size: u32, is_write: bool) -> u8 {
    match size {
        0 | SIZES.. => 0,
        _ => (size << 1) as u8 | u8::from(is_write),
    }
}

/// Events in trace order. Of plain accesses it does not tell the values.
#[derive(Default, Debug)]
pub struct Digest {
    /// Only the first `count` are of this digest: what is left of an earlier one is written over, and not cleared before.
    steps: Vec<Step>,
    count: usize,
    others: Vec<Event>,
    events: u32,
    /// Whose the next access must be for no [`Between::Thread`] to stand before it.
    thread: Option<ThreadId>,
    /// For sources that deliver nothing but events.
    pub(crate) batch: Vec<Event>,
}

impl Digest {
    /// One of no events.
    pub fn new() -> Digest {
        Digest::default()
    }

    /// How many events it is of. Fewer than 2^32.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// Its steps in trace order.
    pub fn steps(&self) -> &[Step] {
        &self.steps[..self.count]
    }

    /// The event of a [`Between::Other`].
    pub fn other(&self, number: usize) -> &Event {
        &self.others[number]
    }

    /// Makes it one of no events.
    pub fn clear(&mut self) {
        self.count = 0;
        self.others.clear();
        self.events = 0;
        self.thread = None;
    }

    /// Appends events.
    pub fn extend(&mut self, batch: &[Event]) {
        let mut end = self.end(batch.len());
        for event in batch {
            end.event(event);
        }
    }

    /// Leaves out those accesses, from the step with number `first` on, that `leaves_out` is true of. It is called for every
    /// step, and what it says of one that is no access does not matter.
    #[inline(always)]
    pub fn leave_out(&mut self, first: usize, mut leaves_out: impl FnMut(Step, &[Event]) -> bool) {
        let mut kept = first;
        let steps = &mut self.steps[..self.count];
        for number in first..steps.len() {
            let step = steps[number];
            // Put down before it is known whether it stays: often half of all do, and nothing foretells which.
            steps[kept] = step;
            let leave = leaves_out(step, &self.others) & (step.size() != 0);
            kept += usize::from(!leave);
        }
        self.count = kept;
    }

    /// Where `events` more events can be appended.
    pub(crate) fn end(&mut self, events: usize) -> End<'_> {
        // Each makes a step, and perhaps one before it.
        let wanted = self.count + 2 * events;
        if self.steps.len() < wanted {
            self.steps.resize(wanted, UNUSED);
        }
        End {
            steps: &mut self.steps,
            count: self.count,
            index: self.events,
            thread: self.thread,
            others: &mut self.others,
            kept: Kept {
                count: &mut self.count,
                events: &mut self.events,
                thread: &mut self.thread,
            },
        }
    }
}

/// The end of a digest while it grows. What changes with each event is held here, and not in memory.
pub(crate) struct End<'a> {
    steps: &'a mut [Step],
    count: usize,
    index: u32,
    thread: Option<ThreadId>,
    others: &'a mut Vec<Event>,
    kept: Kept<'a>,
}

struct Kept<'a> {
    count: &'a mut usize,
    events: &'a mut u32,
    thread: &'a mut Option<ThreadId>,
}

impl End<'_> {
    /// Appends a plain access with [`low_bits`] that are not 0, if it fits.
    #[inline(always)]
    #[must_use]
    pub(crate) fn access(&mut self, thread: ThreadId, site: SiteId, addr: u64, low: u8) -> bool {
        if addr >= ADDRESSES {
            return false;
        }
        if self.thread != Some(thread) {
            self.thread = Some(thread);
            self.push(u64::from(thread.0) << 8 | THREAD, SiteId(0));
        }
        self.push(addr << 8 | u64::from(low), site);
        self.index += 1;
        true
    }

    /// Appends any event.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event) {
        let (Access { addr, size, .. }, is_write) = match event.kind {
            EventKind::Read(access) => (access, false),
            EventKind::Write(access) => (access, true),
            _ => return self.other(event),
        };
        let low = low_bits(size, is_write);
        if low == 0 || !self.access(event.thread, event.site, addr.0, low) {
            self.other(event);
        }
    }

    #[inline(never)]
    fn other(&mut self, event: &Event) {
        let number = self.others.len() as u64;
        self.others.push(*event);
        self.push(number << 8 | OTHER, SiteId(0));
        self.thread = None;
        self.index += 1;
    }

    #[inline(always)]
    fn push(&mut self, key: u64, site: SiteId) {
        self.steps[self.count] = Step {
            key,
            site,
            index: self.index,
        };
        self.count += 1;
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.kept.count = self.count;
        *self.kept.events = self.index;
        *self.kept.thread = self.thread;
    }
}

impl Digest {
    /// The events it tells of, with their numbers; plain accesses without values.
    pub fn told(&self) -> impl Iterator<Item = (u32, Event)> {
        let mut thread = ThreadId(0);
        self.steps().iter().filter_map(move |&step| {
            if step.size() == 0 {
                match step.between() {
                    Between::Thread(next) => thread = next,
                    Between::Other(number) => return Some((step.index, *self.other(number))),
                }
                return None;
            }
            let access = Access {
                addr: Addr(step.start()),
                size: step.size(),
                value: None,
            };
            let kind = match step.is_write() {
                false => EventKind::Read(access),
                true => EventKind::Write(access),
            };
            let site = step.site;
            Some((step.index, Event { thread, site, kind }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(thread: u32, kind: EventKind) -> Event {
        Event {
            thread: ThreadId(thread),
            site: SiteId(7 + thread),
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

    #[test]
    fn a_digest_tells_all_events() {
        let batches = [
            vec![
                read(1, 64, 8),
                write(1, 72, 1),
                write(0, (1 << 56) - 1, 127),
            ],
            vec![
                event(0, EventKind::Begin),
                write(0, 5, 4),
                read(0, 1 << 56, 8),
            ],
            vec![
                write(0, 64, 128),
                read(9, 0, 1),
                read(0, 8, 0),
                read(0, 9, 1),
            ],
        ];
        let mut digest = Digest::new();
        for _ in 0..2 {
            digest.clear();
            for batch in &batches {
                digest.extend(batch);
            }
            let events: Vec<(u32, Event)> = (0..).zip(batches.concat()).collect();
            assert_eq!(digest.told().collect::<Vec<_>>(), events);
            assert_eq!(digest.events(), 10);
        }
    }

    #[test]
    fn what_is_left_out_is_not_told_but_counted() {
        let mut digest = Digest::new();
        digest.extend(&[read(1, 64, 8), write(1, 72, 1)]);
        let first = digest.steps().len();
        digest.extend(&[
            read(1, 64, 8),
            event(1, EventKind::End),
            read(2, 80, 8),
            read(2, 64, 8),
        ]);
        digest.leave_out(first, |step, _| step.start() == 64);
        let told: Vec<u32> = digest.told().map(|(index, _)| index).collect();
        assert_eq!(told, [0, 1, 3, 4]);
        assert_eq!(digest.events(), 6);
    }
}
