//! Events in a third of their room, for whoever reads a trace on one core and uses it on another.
//!
//! What passes from core to core is most of what that costs. An [`Event`] takes 48 bytes. Nearly all are plain accesses
//! of a few bytes whose values nobody asks for, and come in runs of one thread: of those, a [`Step`] of 16 bytes says
//! everything. The others go as they are, and [`Mark`]s say where.
//!
//! Accesses that repeat others can be left out, so that they need not even pass ([`Digest::leave_out`]).

use std::convert::Infallible;

use crate::repeats::Repeats;
use crate::{Access, Addr, Event, EventKind, SiteId, ThreadId};

/// Sizes below 2^7 and addresses below 2^56 fit a key together with what the access does.
const SIZES: u32 = 1 << 7;
const ADDRESSES: u64 = 1 << 56;
const KEY_ADDRESS_SHIFT: u32 = 8;

/// A plain access.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// First byte, size, and in the lowest bit whether it writes.
    key: u64,
    /// Where in the program.
    pub site: SiteId,
    /// The number of the event in the digest.
    pub index: u32,
}

/// Something else than a plain access, which happens between them.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// How many steps come before it.
    pub at: u32,
    /// What it is.
    pub what: Between,
}

/// What happens between plain accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The accesses that follow are of this thread.
    Thread(ThreadId),
    /// The event with this number among those that go as they are. The next access comes after a [`Between::Thread`].
    Other(u32),
}

/// Stands where no step was put yet.
const UNUSED: Step = Step {
    key: 0,
    site: SiteId(0),
    index: 0,
};

impl Step {
    /// First byte.
    #[inline(always)]
    pub fn start(self) -> u64 {
        self.key >> KEY_ADDRESS_SHIFT
    }

    /// Number of bytes.
    #[inline(always)]
    pub fn size(self) -> u32 {
        (self.key >> 1) as u32 & (SIZES - 1)
    }

    /// Whether it writes.
    #[inline(always)]
    pub fn is_write(self) -> bool {
        self.key & 1 == 1
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

/// The size of an access with such [`low_bits`].
#[inline(always)]
pub(crate) fn low_size(low: u8) -> u32 {
    u32::from(low >> 1)
}

/// Whether an access with such [`low_bits`] writes.
#[inline(always)]
pub(crate) fn low_is_write(low: u8) -> bool {
    low & 1 == 1
}

/// All that matters of a plain access but its thread and site, in one word.
#[inline(always)]
pub(crate) fn key(addr: u64, low: u8) -> u64 {
    addr << KEY_ADDRESS_SHIFT | u64::from(low)
}

/// Whether a digest has a step for accesses at an address.
#[inline(always)]
pub(crate) fn has_room(addr: u64) -> bool {
    addr < ADDRESSES
}

/// Events in trace order. Of plain accesses it does not tell the values.
#[derive(Default, Debug)]
pub struct Digest {
    /// Only the first `count` are of this digest: what is left of an earlier one is written over, and not cleared before.
    steps: Vec<Step>,
    count: usize,
    /// In order.
    marks: Vec<Mark>,
    /// With their numbers in the digest.
    others: Vec<(u32, Event)>,
    events: u32,
    /// Whose the next access must be for no [`Between::Thread`] to stand before it.
    thread: Option<ThreadId>,
    /// What finds accesses that need not be told.
    repeats: Option<Repeats>,
    /// For sources that deliver nothing but events.
    pub(crate) batch: Vec<Event>,
}

impl Digest {
    /// One of no events.
    pub fn new() -> Digest {
        Digest::default()
    }

    /// Makes room for so many events in all, which is cheaper at once than bit by bit.
    pub fn reserve(&mut self, events: usize) {
        self.steps
            .reserve_exact(events.saturating_sub(self.steps.len()));
    }

    /// How many events it is of. Fewer than 2^32.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// Its plain accesses in trace order.
    pub fn steps(&self) -> &[Step] {
        &self.steps[..self.count]
    }

    /// What happens between them, in trace order.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The event of a [`Between::Other`], and its number in the digest.
    pub fn other(&self, number: u32) -> (u32, &Event) {
        let (index, event) = &self.others[number as usize];
        (*index, event)
    }

    /// Makes it one of no events.
    pub fn clear(&mut self) {
        self.count = 0;
        self.marks.clear();
        self.others.clear();
        self.events = 0;
        self.thread = None;
    }

    /// From now on, accesses that `repeats` knows to repeat others are left out. They are counted as events all the same.
    pub fn leave_out(&mut self, repeats: Option<Repeats>) {
        self.repeats = repeats;
        self.thread = None;
    }

    /// What [`Digest::leave_out`] was given, for the digest of what comes next. Nothing is left out any more.
    pub fn take_repeats(&mut self) -> Option<Repeats> {
        self.repeats.take()
    }

    /// Appends events.
    pub fn extend(&mut self, batch: &[Event]) {
        self.append(batch.len(), Events(batch))
            .unwrap_or_else(|never| match never {});
    }

    /// Lets `source` append at most `events` events.
    #[inline]
    pub(crate) fn append<S: Append>(&mut self, events: usize, source: S) -> Result<(), S::Error> {
        let wanted = self.count + events;
        if self.steps.len() < wanted {
            self.steps.resize(wanted, UNUSED);
        }
        let end = End {
            steps: &mut self.steps,
            count: self.count,
            index: self.events,
            thread: self.thread,
            marks: &mut self.marks,
            others: &mut self.others,
            filter: TellAll,
        };
        // One loop for each: whether anything is left out is not asked for every event.
        let (appended, done) = match &mut self.repeats {
            Some(repeats) => end.leaving_out(repeats).append(source),
            None => end.append(source),
        };
        (self.count, self.events, self.thread) = appended;
        done
    }

    /// The events it tells of, with their numbers; plain accesses without values.
    pub fn told(&self) -> impl Iterator<Item = (u32, Event)> {
        let mut marks = self.marks.iter().peekable();
        let mut steps = (0u32..).zip(self.steps());
        let mut thread = ThreadId(0);
        std::iter::from_fn(move || {
            let next = steps.clone().next().map_or(u32::MAX, |(number, _)| number);
            while let Some(mark) = marks.next_if(|mark| mark.at <= next) {
                match mark.what {
                    Between::Thread(next) => thread = next,
                    Between::Other(number) => {
                        let (index, event) = self.other(number);
                        return Some((index, *event));
                    }
                }
            }
            let (_, step) = steps.next()?;
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

/// Whatever can append events to a digest.
pub(crate) trait Append {
    /// Why it could not.
    type Error;

    fn append_to(self, end: &mut End<'_, impl Filter>) -> Result<(), Self::Error>;
}

struct Events<'a>(&'a [Event]);

impl Append for Events<'_> {
    type Error = Infallible;

    fn append_to(self, end: &mut End<'_, impl Filter>) -> Result<(), Infallible> {
        self.0.iter().for_each(|event| end.event(event));
        Ok(())
    }
}

/// Which accesses a digest need not tell.
pub(crate) trait Filter {
    /// The accesses that follow are of this thread.
    fn begin(&mut self, thread: ThreadId);

    /// For some accesses in a row, of the thread that began last.
    fn run(&mut self) -> impl FilterRun;

    /// Something else than a plain access happened.
    fn pass(&mut self, event: &Event);
}

/// A [`Filter`] for some accesses in a row.
pub(crate) trait FilterRun {
    /// Whether an access need not be told. The address is that of the key.
    fn leaves_out(&mut self, addr: u64, key: u64) -> bool;
}

/// Leaves nothing out.
pub(crate) struct TellAll;

impl Filter for TellAll {
    #[inline(always)]
    fn begin(&mut self, _thread: ThreadId) {}

    #[inline(always)]
    fn run(&mut self) -> impl FilterRun {
        TellAll
    }

    #[inline(always)]
    fn pass(&mut self, _event: &Event) {}
}

impl FilterRun for TellAll {
    #[inline(always)]
    fn leaves_out(&mut self, _addr: u64, _key: u64) -> bool {
        false
    }
}

/// How many steps and events a digest has, and whose its last access is.
type Appended = (usize, u32, Option<ThreadId>);

/// The end of a digest while it grows. What changes with each event is held here, and not in memory.
pub(crate) struct End<'a, F> {
    steps: &'a mut [Step],
    count: usize,
    index: u32,
    thread: Option<ThreadId>,
    marks: &'a mut Vec<Mark>,
    others: &'a mut Vec<(u32, Event)>,
    filter: F,
}

impl<'a> End<'a, TellAll> {
    fn leaving_out<F>(self, filter: F) -> End<'a, F> {
        End {
            steps: self.steps,
            count: self.count,
            index: self.index,
            thread: self.thread,
            marks: self.marks,
            others: self.others,
            filter,
        }
    }
}

/// A plain access with [`low_bits`] that are not 0, at an address that there is [room](has_room) for.
pub(crate) struct Plain {
    pub(crate) thread: ThreadId,
    pub(crate) site: SiteId,
    pub(crate) addr: u64,
    pub(crate) low: u8,
}

impl<F: Filter> End<'_, F> {
    #[inline]
    fn append<S: Append>(mut self, source: S) -> (Appended, Result<(), S::Error>) {
        let done = source.append_to(&mut self);
        ((self.count, self.index, self.thread), done)
    }

    /// Appends accesses of the thread that [began](End::begin) last, up to the first of another, and says how many.
    #[inline(always)]
    pub(crate) fn accesses(&mut self, accesses: impl Iterator<Item = Plain>) -> usize {
        let Some(thread) = self.thread else {
            return 0;
        };
        let (mut count, mut index) = (self.count, self.index);
        let mut filter = self.filter.run();
        for access in accesses.take_while(|access| access.thread == thread) {
            let key = key(access.addr, access.low);
            // Put down before it is known whether it stays: often half of all do, and nothing foretells which.
            self.steps[count] = Step {
                key,
                site: access.site,
                index,
            };
            count += usize::from(!filter.leaves_out(access.addr, key));
            // At most as many as there are events.
            index = index.wrapping_add(1);
        }
        drop(filter);
        let appended = index - self.index;
        (self.count, self.index) = (count, index);
        appended as usize
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
        if low != 0 && has_room(addr.0) {
            if self.thread != Some(event.thread) {
                self.begin(event.thread);
            }
            self.accesses(std::iter::once(Plain {
                thread: event.thread,
                site: event.site,
                addr: addr.0,
                low,
            }));
        } else {
            self.other(event);
        }
    }

    /// The accesses that follow are of this thread.
    #[inline(never)]
    pub(crate) fn begin(&mut self, thread: ThreadId) {
        self.thread = Some(thread);
        self.mark(Between::Thread(thread));
        self.filter.begin(thread);
    }

    #[inline(never)]
    fn other(&mut self, event: &Event) {
        self.mark(Between::Other(self.others.len() as u32));
        self.others.push((self.index, *event));
        self.filter.pass(event);
        self.thread = None;
        self.index += 1;
    }

    fn mark(&mut self, what: Between) {
        let at = self.count as u32;
        self.marks.push(Mark { at, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::{event, read, write};

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
        digest.leave_out(Some(Repeats::new()));
        digest.extend(&[read(1, 64, 8), write(1, 72, 1)]);
        digest.extend(&[
            read(1, 64, 8),
            event(1, EventKind::End),
            read(2, 80, 8),
            read(2, 80, 8),
            read(2, 64, 8),
        ]);
        let told: Vec<u32> = digest.told().map(|(index, _)| index).collect();
        assert_eq!(told, [0, 1, 3, 4, 6]);
        assert_eq!(digest.events(), 7);
    }
}
