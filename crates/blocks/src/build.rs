//! From a trace to a block trace, in one pass (BlockRace, algorithm 2).
//!
//! Accesses gather in the open block of their thread, one entry for all that differ in time only. A block ends where the
//! clock of its thread changes; `clocks` says what that is. Memory does not grow with the number of events: a
//! block that becomes too long is written in parts with the same clock, and what is kept is one record for each
//! place and each object through which threads synchronise.
//!
//! Three threads work one after the other: one reads the trace ahead, one gathers, one writes ([`crate::closed`]).

use std::thread;

use verdict_clocks::{HappensBefore, Rules};
use verdict_detect::{AccessKind, TraceSize, read_ahead};
use verdict_events::{Event, EventKind, ThreadId, TraceError, TraceSource};

use crate::allocations::Allocations;
use crate::closed::{Closed, Outlet, WriterStopped, Written, way, write_all};
use crate::frame::Entry;
use crate::index::{Index, ThreadInfo};
use crate::places::Places;
use crate::record::{NONE, SITES_MAX, What};
use crate::store::{INDEX, Sink};
use crate::units::Shared;
use crate::{BlocksError, index};

/// How much is gathered before it is written.
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// Entries that may be open, in all threads together; a thread gets its share.
    pub open_entries_max: u32,
    /// Entries after which a frame is complete.
    pub frame_entries: u32,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions {
            // 2^22 x 20 bytes.
            open_entries_max: 1 << 22,
            // A frame is unpacked and read where a second-level cache still has it.
            frame_entries: 1 << 14,
        }
    }
}

/// What was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Built {
    /// The trace.
    pub trace: TraceSize,
    /// Blocks of all threads.
    pub blocks: u64,
    /// Entries of all blocks.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Shares of threads and frames do not become smaller than this.
const ENTRIES_MIN: u32 = 256;

/// Reads a trace to its end and writes its blocks. `progress` is told how many events have been read.
pub fn build(
    source: &mut (dyn TraceSource + Send),
    sink: &mut (dyn Sink + Send),
    options: &BuildOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Built, BlocksError> {
    let (outlet, inlet) = way();
    let (gathered, written) = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            // Moved in, so that it is dropped with an error and whoever gathers stops as well.
            let inlet = inlet;
            write_all(&inlet, sink)
        });
        let gathered = gather(source, outlet, *options, progress);
        match writing.join() {
            Ok(written) => (gathered, written),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    match (gathered, written) {
        (Err(Stop::Problem(problem)), _) | (_, Err(problem)) => Err(problem),
        (Err(Stop::Writer), Ok(_)) => unreachable!("a writer stops early for an error only"),
        (Ok(gathered), Ok(written)) => gathered.finish(written, source, sink),
    }
}

/// Why gathering ended before the trace did.
enum Stop {
    Problem(BlocksError),
    /// The writer has stopped, and knows why.
    Writer,
}

impl From<BlocksError> for Stop {
    fn from(problem: BlocksError) -> Stop {
        Stop::Problem(problem)
    }
}

impl From<TraceError> for Stop {
    fn from(problem: TraceError) -> Stop {
        Stop::Problem(problem.into())
    }
}

impl From<WriterStopped> for Stop {
    fn from(_: WriterStopped) -> Stop {
        Stop::Writer
    }
}

fn gather(
    source: &mut (dyn TraceSource + Send),
    outlet: Outlet,
    options: BuildOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Gathered, Stop> {
    let mut builder = Builder::new(outlet, options);
    read_ahead(source, |batch| {
        builder.batch(batch)?;
        progress(builder.position);
        Ok::<(), Stop>(())
    })?;
    builder.finish()
}

struct Builder {
    outlet: Outlet,
    options: BuildOptions,
    order: HappensBefore,
    places: Places,
    allocations: Allocations,
    threads: Vec<Thread>,
    position: u64,
    synchronisations: u64,
    blocks: u32,
    sites: u32,
    /// Entries that a thread may have open.
    share: usize,
    /// Room for the clock that is looked at, and for the places of the events that are.
    clock: Vec<u32>,
    numbers: Vec<u32>,
}

#[derive(Default)]
struct Thread {
    open: Option<Open>,
    /// The clock of the open block, or of the last one.
    clock: Vec<u32>,
    /// Something happened since the last access that may have changed the clock.
    stale: bool,
    /// Room for the entries of the next block.
    spare: Vec<Link>,
}

struct Open {
    number: u32,
    start: u64,
    posts: u32,
    entries: Vec<Link>,
}

/// An entry, and the one before it for the same place in the same block.
struct Link {
    entry: Entry,
    older: u32,
}

const NO_LINK: u32 = u32::MAX;
/// How many entries for one place are looked through; duplicates merge when the block is written.
const SEARCHED: usize = 8;

/// The bytes that an event accesses.
#[inline]
fn bytes_of(event: &Event) -> Option<(u64, u64)> {
    let (start, size) = match event.kind {
        EventKind::Read(access)
        | EventKind::Write(access)
        | EventKind::AtomicLoad(access, _)
        | EventKind::AtomicStore(access, _)
        | EventKind::AtomicRmw(access, _) => (access.addr.0, u64::from(access.size)),
        EventKind::Free { addr, size } => (addr.0, size),
        _ => return None,
    };
    let end = start.saturating_add(size);
    (start < end).then_some((start, end))
}

impl Builder {
    fn new(outlet: Outlet, options: BuildOptions) -> Builder {
        Builder {
            outlet,
            options,
            order: HappensBefore::new(Rules::All),
            places: Places::default(),
            allocations: Allocations::default(),
            threads: Vec::new(),
            position: 0,
            synchronisations: 0,
            blocks: 0,
            sites: 0,
            share: 0,
            clock: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Up to each allocation, which changes what places are, first all places are found and then all events handled: one
    /// lookup does not wait for the other, so that the processor can have several of them on their way to memory.
    fn batch(&mut self, batch: &[Event]) -> Result<(), Stop> {
        let is_allocation = |event: &Event| matches!(event.kind, EventKind::Allocate { .. });
        let mut numbers = std::mem::take(&mut self.numbers);
        for events in batch.split_inclusive(is_allocation) {
            numbers.clear();
            for event in events {
                numbers.push(self.place_of(event)?);
            }
            for (event, &number) in events.iter().zip(&numbers) {
                self.event(event, number)?;
            }
        }
        self.numbers = numbers;
        Ok(())
    }

    #[inline]
    fn place_of(&mut self, event: &Event) -> Result<u32, BlocksError> {
        let Some((start, end)) = bytes_of(event) else {
            return Ok(NONE);
        };
        let object = self.allocations.object(start, end);
        let number = self.places.number(start, end, object, event.thread.0);
        number.ok_or(BlocksError::TooMany {
            what: "places",
            max: u64::from(u32::MAX) - 1,
        })
    }

    /// `number` is the place it accesses, or `NONE`.
    #[inline]
    fn event(&mut self, event: &Event, number: u32) -> Result<(), Stop> {
        match event.kind {
            EventKind::Read(_) => {
                let posts = self.order.note_access(event.thread).count();
                self.access(event, posts, AccessKind::Read, number)?;
            }
            EventKind::Write(_) => {
                let posts = self.order.note_access(event.thread).count();
                self.access(event, posts, AccessKind::Write, number)?;
            }
            _ => self.other(event, number)?,
        }
        self.position += 1;
        Ok(())
    }

    #[inline(never)]
    fn other(&mut self, event: &Event, number: u32) -> Result<(), Stop> {
        // Listed, whatever it does: threads can be asked for by name.
        self.thread(event.thread);
        match event.kind {
            EventKind::AtomicLoad(..) | EventKind::AtomicStore(..) | EventKind::AtomicRmw(..) => {
                let kind = match event.kind {
                    EventKind::AtomicLoad(..) => AccessKind::AtomicRead,
                    _ => AccessKind::AtomicWrite,
                };
                self.order.receive(event);
                self.clock_may_change(event)?;
                let posts = self.order.epoch(event.thread).count();
                self.access(event, posts, kind, number)?;
                self.order.post(event);
                self.clock_may_change(event)?;
            }
            EventKind::Allocate { addr, size } => {
                self.order.note_access(event.thread);
                if !self
                    .allocations
                    .allocate(addr.0, addr.0.saturating_add(size))
                {
                    return Err(Stop::Problem(BlocksError::TooMany {
                        what: "allocations",
                        max: 1 << 31,
                    }));
                }
            }
            EventKind::Free { .. } => {
                let posts = self.order.note_access(event.thread).count();
                self.access(event, posts, AccessKind::Free, number)?;
            }
            EventKind::Output { .. } => {
                self.order.note_access(event.thread);
            }
            _ => {
                self.order.receive(event);
                self.order.post(event);
                self.clock_may_change(event)?;
            }
        }
        Ok(())
    }

    /// Only a thread's own synchronisation changes its clock, but for fork and join, which also concern the other one.
    fn clock_may_change(&mut self, event: &Event) -> Result<(), BlocksError> {
        self.synchronisations += 1;
        let max = u64::from(u32::MAX) - 1;
        if self.synchronisations > max {
            return Err(BlocksError::TooMany {
                what: "synchronisation operations",
                max,
            });
        }
        self.thread(event.thread).stale = true;
        if let EventKind::Fork(other) | EventKind::Join(other) = event.kind {
            self.thread(other).stale = true;
        }
        Ok(())
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let index = thread.0 as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
            let share = self.options.open_entries_max / self.threads.len() as u32;
            self.share = share.max(ENTRIES_MIN.min(self.options.open_entries_max)) as usize;
        }
        &mut self.threads[index]
    }

    #[inline]
    fn access(
        &mut self,
        event: &Event,
        posts: u32,
        kind: AccessKind,
        number: u32,
    ) -> Result<(), Stop> {
        if number == NONE {
            return Ok(());
        }
        let position = self.position;
        let fits =
            |open: &Open| open.posts == posts && position - open.start <= u64::from(u32::MAX);
        let thread = self.thread(event.thread);
        if thread.stale || !thread.open.as_ref().is_some_and(fits) {
            self.begin_block(event.thread, posts)?;
        }
        self.sites = self.sites.max(event.site.0.saturating_add(1));
        let what = What::new(event.site, kind);
        let place = self.places.get_mut(number);
        place.note(event.thread.0, what);
        let thread = &mut self.threads[event.thread.0 as usize];
        let open = thread.open.as_mut().expect("a block was begun above");
        let newest = match place.last_block == open.number {
            true => place.last_entry,
            false => NO_LINK,
        };
        if count_up(&mut open.entries, newest, what) {
            return Ok(());
        }
        place.last_block = open.number;
        place.last_entry = open.entries.len() as u32;
        // Only balances work: a place with more entries than this is one of its own anyway.
        place.entries = place.entries.saturating_add(1);
        let offset = (position - open.start) as u32;
        open.entries.push(Link {
            entry: Entry {
                place: number,
                what,
                count: 1,
                offset,
            },
            older: newest,
        });
        if open.entries.len() >= self.share {
            self.end_block(event.thread)?;
        }
        Ok(())
    }

    /// Lets the open block be one with the thread's present clock: a new one, unless nothing has changed.
    #[inline(never)]
    fn begin_block(&mut self, id: ThreadId, posts: u32) -> Result<(), Stop> {
        let mut clock = std::mem::take(&mut self.clock);
        clock.clear();
        let known = self.order.clock(id);
        clock.extend(
            (0..self.threads.len() as u32).map(|other| match other == id.0 {
                true => 0,
                false => known.get(ThreadId(other)),
            }),
        );
        let position = self.position;
        let thread = self.thread(id);
        thread.stale = false;
        let same = |open: &Open| {
            open.posts == posts
                && position - open.start <= u64::from(u32::MAX)
                && is_same_clock(&thread.clock, &clock)
        };
        if !thread.open.as_ref().is_some_and(same) {
            self.end_block(id)?;
            if self.blocks == u32::MAX - 1 {
                return Err(Stop::Problem(BlocksError::TooMany {
                    what: "blocks",
                    max: u64::from(self.blocks),
                }));
            }
            let number = self.blocks;
            self.blocks += 1;
            let thread = self.thread(id);
            thread.clock.clone_from(&clock);
            thread.open = Some(Open {
                number,
                start: position,
                posts,
                entries: std::mem::take(&mut thread.spare),
            });
        }
        self.clock = clock;
        Ok(())
    }

    fn end_block(&mut self, id: ThreadId) -> Result<(), Stop> {
        let frame_entries = self.options.frame_entries.min(self.share as u32);
        let frame_entries = frame_entries.max(ENTRIES_MIN.min(self.options.frame_entries));
        let thread = &mut self.threads[id.0 as usize];
        let Some(mut open) = thread.open.take() else {
            return Ok(());
        };
        let list = &mut self.outlet.list;
        list.blocks.push(Closed {
            thread: id.0,
            number: open.number,
            start: open.start,
            posts: open.posts,
            clock: thread.clock.len(),
            entries: open.entries.len(),
            frame_entries: frame_entries as usize,
        });
        list.clocks.extend_from_slice(&thread.clock);
        list.entries
            .extend(open.entries.drain(..).map(|link| link.entry));
        thread.spare = open.entries;
        self.outlet.flush_full()?;
        Ok(())
    }

    /// Ends what is open.
    fn finish(mut self) -> Result<Gathered, Stop> {
        if self.sites > SITES_MAX {
            return Err(Stop::Problem(BlocksError::TooMany {
                what: "sites",
                max: u64::from(SITES_MAX),
            }));
        }
        for thread in 0..self.threads.len() as u32 {
            self.end_block(ThreadId(thread))?;
        }
        self.outlet.flush()?;
        // Whoever writes can come to an end meanwhile.
        drop(self.outlet);
        let places = self.places.into_all();
        let shared = Shared::of(&places, &self.allocations);
        Ok(Gathered {
            trace: TraceSize {
                events: self.position,
                threads: self.order.threads(),
                locations: shared.location_count,
                segments: self.order.segments(),
            },
            blocks: self.blocks,
            place_count: places.len() as u64,
            sites: self.sites,
            threads: self.threads.len(),
            shared,
        })
    }
}

/// What the index says besides what is in the files.
struct Gathered {
    trace: TraceSize,
    blocks: u32,
    place_count: u64,
    sites: u32,
    threads: usize,
    shared: Shared,
}

impl Gathered {
    /// Writes the index.
    fn finish(
        self,
        written: Written,
        source: &dyn TraceSource,
        sink: &mut dyn Sink,
    ) -> Result<Built, BlocksError> {
        let mut threads = written.threads;
        // Threads without blocks are listed as well.
        threads.resize_with(self.threads, ThreadInfo::default);
        let count = threads.len() as u32;
        let names = index::gather_names(source.names(), count, self.sites, &self.shared);
        let index = Index {
            trace: self.trace,
            blocks: self.blocks,
            entries: written.entries,
            place_count: self.place_count,
            sites: self.sites,
            threads,
            shared: self.shared,
            names,
            checksum: 0,
        };
        let bytes = index.encode();
        sink.append(INDEX, &bytes)?;
        let files: u64 = index.threads.iter().map(|thread| thread.length).sum();
        Ok(Built {
            trace: index.trace,
            blocks: u64::from(index.blocks),
            entries: index.entries,
            bytes: files + bytes.len() as u64,
        })
    }
}

/// Counts one more access in the entry for `what`, if there is one among the newest for its place.
#[inline]
fn count_up(entries: &mut [Link], newest: u32, what: What) -> bool {
    let mut at = newest;
    for _ in 0..SEARCHED {
        let Some(link) = entries.get_mut(at as usize) else {
            return false;
        };
        if link.entry.what == what && link.entry.count < u32::MAX {
            link.entry.count += 1;
            return true;
        }
        at = link.older;
    }
    false
}

/// Missing threads count 0.
fn is_same_clock(a: &[u32], b: &[u32]) -> bool {
    let common = a.len().min(b.len());
    let zero = |rest: &[u32]| rest.iter().all(|&count| count == 0);
    a[..common] == b[..common] && zero(&a[common..]) && zero(&b[common..])
}
