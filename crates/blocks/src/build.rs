//! From a trace to a block trace, in one pass (BlockRace, algorithm 2).
//!
//! Accesses gather in the open block of their thread, one entry for all that differ in time only. A block ends where the
//! clock of its thread changes; `clocks` says what that is. Memory does not grow with the number of events: a
//! block that becomes too long is written in parts with the same clock, and what is kept is one record for each
//! place and each object through which threads synchronise.

use verdict_clocks::{HappensBefore, Rules};
use verdict_detect::{AccessKind, TraceSize};
use verdict_events::{Event, EventKind, ThreadId, TraceSource};

use crate::allocations::Allocations;
use crate::frame::{Entry, FrameWriter};
use crate::index::{FrameInfo, Index, PartInfo, ThreadInfo};
use crate::places::Places;
use crate::record::{SITES_MAX, What};
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
            frame_entries: 1 << 16,
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
/// A frame is complete when it has so many blocks, even of few entries.
const FRAME_BLOCKS: u64 = 1 << 14;

/// Reads a trace to its end and writes its blocks. `progress` is told how many events have been read.
pub fn build(
    source: &mut dyn TraceSource,
    sink: &mut dyn Sink,
    options: &BuildOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Built, BlocksError> {
    let mut builder = Builder::new(sink, *options);
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return builder.finish(source);
        }
        for event in &batch {
            builder.event(event)?;
        }
        progress(builder.position);
    }
}

struct Builder<'a> {
    sink: &'a mut dyn Sink,
    options: BuildOptions,
    order: HappensBefore,
    places: Places,
    allocations: Allocations,
    threads: Vec<Thread>,
    position: u64,
    synchronisations: u64,
    blocks: u32,
    entries: u64,
    sites: u32,
    /// Room for the clock that is looked at.
    clock: Vec<u32>,
}

#[derive(Default)]
struct Thread {
    open: Option<Open>,
    /// The clock of the open block, or of the last one.
    clock: Vec<u32>,
    /// Something happened since the last access that may have changed the clock.
    stale: bool,
    frame: FrameWriter,
    file: ThreadInfo,
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
/// How many entries for one place are looked through; duplicates merge when the block ends.
const SEARCHED: usize = 8;

impl<'a> Builder<'a> {
    fn new(sink: &'a mut dyn Sink, options: BuildOptions) -> Builder<'a> {
        Builder {
            sink,
            options,
            order: HappensBefore::new(Rules::All),
            places: Places::default(),
            allocations: Allocations::default(),
            threads: Vec::new(),
            position: 0,
            synchronisations: 0,
            blocks: 0,
            entries: 0,
            sites: 0,
            clock: Vec::new(),
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) -> Result<(), BlocksError> {
        match event.kind {
            EventKind::Read(access) => {
                let end = access.addr.0.saturating_add(u64::from(access.size));
                let posts = self.order.note_access(event.thread).count();
                self.access(event, posts, AccessKind::Read, access.addr.0, end)?;
            }
            EventKind::Write(access) => {
                let end = access.addr.0.saturating_add(u64::from(access.size));
                let posts = self.order.note_access(event.thread).count();
                self.access(event, posts, AccessKind::Write, access.addr.0, end)?;
            }
            _ => self.other(event)?,
        }
        self.position += 1;
        Ok(())
    }

    #[inline(never)]
    fn other(&mut self, event: &Event) -> Result<(), BlocksError> {
        // Listed, whatever it does: threads can be asked for by name.
        self.thread(event.thread);
        match event.kind {
            EventKind::AtomicLoad(access, _)
            | EventKind::AtomicStore(access, _)
            | EventKind::AtomicRmw(access, _) => {
                let kind = match event.kind {
                    EventKind::AtomicLoad(..) => AccessKind::AtomicRead,
                    _ => AccessKind::AtomicWrite,
                };
                self.order.receive(event);
                self.clock_may_change(event)?;
                let end = access.addr.0.saturating_add(u64::from(access.size));
                let posts = self.order.epoch(event.thread).count();
                self.access(event, posts, kind, access.addr.0, end)?;
                self.order.post(event);
                self.clock_may_change(event)?;
            }
            EventKind::Allocate { addr, size } => {
                self.order.note_access(event.thread);
                if !self
                    .allocations
                    .allocate(addr.0, addr.0.saturating_add(size))
                {
                    return Err(BlocksError::TooMany {
                        what: "allocations",
                        max: 1 << 31,
                    });
                }
            }
            EventKind::Free { addr, size } => {
                let end = addr.0.saturating_add(size);
                let posts = self.order.note_access(event.thread).count();
                self.access(event, posts, AccessKind::Free, addr.0, end)?;
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
        }
        &mut self.threads[index]
    }

    #[inline]
    fn access(
        &mut self,
        event: &Event,
        posts: u32,
        kind: AccessKind,
        start: u64,
        end: u64,
    ) -> Result<(), BlocksError> {
        if start >= end {
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
        let object = self.allocations.object(start, end);
        let number = self.places.number(start, end, object, event.thread.0);
        let number = number.ok_or(BlocksError::TooMany {
            what: "places",
            max: u64::from(u32::MAX) - 1,
        })?;
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
        if open.entries.len() as u32 >= self.open_entries_max() {
            self.end_block(event.thread)?;
        }
        Ok(())
    }

    fn open_entries_max(&self) -> u32 {
        let share = self.options.open_entries_max / self.threads.len() as u32;
        share.max(ENTRIES_MIN.min(self.options.open_entries_max))
    }

    /// Lets the open block be one with the thread's present clock: a new one, unless nothing has changed.
    #[inline(never)]
    fn begin_block(&mut self, id: ThreadId, posts: u32) -> Result<(), BlocksError> {
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
                return Err(BlocksError::TooMany {
                    what: "blocks",
                    max: u64::from(self.blocks),
                });
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

    fn end_block(&mut self, id: ThreadId) -> Result<(), BlocksError> {
        let thread = self.thread(id);
        let Some(open) = thread.open.take() else {
            return Ok(());
        };
        let mut entries: Vec<Entry> = open.entries.iter().map(|link| link.entry).collect();
        merge_duplicates(&mut entries);
        let clock = std::mem::take(&mut thread.clock);
        thread
            .frame
            .push(open.number, open.start, open.posts, &clock, &entries);
        thread.clock = clock;
        thread.spare = open.entries;
        thread.spare.clear();
        let full = thread.frame.blocks() >= FRAME_BLOCKS;
        let frame_entries = thread.frame.entries() as u32;
        self.entries += entries.len() as u64;
        for entry in &entries {
            let place = self.places.get_mut(entry.place);
            // Only balances work: a place with more entries than this is one of its own anyway.
            place.entries = place.entries.saturating_add(1);
        }
        let share = self.options.frame_entries.min(self.open_entries_max());
        if full || frame_entries >= share.max(ENTRIES_MIN.min(self.options.frame_entries)) {
            self.write_frame(id)?;
        }
        Ok(())
    }

    fn write_frame(&mut self, id: ThreadId) -> Result<(), BlocksError> {
        let thread = &mut self.threads[id.0 as usize];
        let (blocks, entries) = (thread.frame.blocks(), thread.frame.entries() as u64);
        if blocks == 0 {
            return Ok(());
        }
        let parts = thread.frame.finish();
        let name = index::file_name(id.0);
        if thread.file.length == 0 {
            self.sink.append(&name, &index::file_start(id.0))?;
            thread.file.length = index::file_start(id.0).len() as u64;
        }
        let mut infos = [PartInfo::default(); 2];
        let mut bytes = Vec::new();
        for (part, info) in parts.iter().zip(&mut infos) {
            let packed = lz4_flex::block::compress(part);
            *info = PartInfo {
                raw: part.len() as u64,
                packed: packed.len() as u64,
                checksum: crc32fast::hash(&packed),
            };
            bytes.extend_from_slice(&packed);
        }
        self.sink.append(&name, &bytes)?;
        thread.file.frames.push(FrameInfo {
            offset: thread.file.length,
            blocks,
            entries,
            parts: infos,
        });
        thread.file.length += bytes.len() as u64;
        Ok(())
    }

    fn finish(mut self, source: &dyn TraceSource) -> Result<Built, BlocksError> {
        if self.sites > SITES_MAX {
            return Err(BlocksError::TooMany {
                what: "sites",
                max: u64::from(SITES_MAX),
            });
        }
        for thread in 0..self.threads.len() as u32 {
            self.end_block(ThreadId(thread))?;
            self.write_frame(ThreadId(thread))?;
        }
        let places = self.places.into_all();
        let shared = Shared::of(&places, &self.allocations);
        let trace = TraceSize {
            events: self.position,
            threads: self.order.threads(),
            locations: shared.location_count,
            segments: self.order.segments(),
        };
        let threads: Vec<ThreadInfo> = self.threads.into_iter().map(|thread| thread.file).collect();
        let names = index::gather_names(source.names(), threads.len() as u32, self.sites, &shared);
        let index = Index {
            trace,
            blocks: self.blocks,
            entries: self.entries,
            place_count: places.len() as u64,
            sites: self.sites,
            threads,
            shared,
            names,
            checksum: 0,
        };
        let bytes = index.encode();
        self.sink.append(INDEX, &bytes)?;
        let files: u64 = index.threads.iter().map(|thread| thread.length).sum();
        Ok(Built {
            trace,
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

/// Sorts by place, and makes one entry of those that differ in time only.
fn merge_duplicates(entries: &mut Vec<Entry>) {
    entries.sort_unstable_by_key(|entry| {
        (
            u64::from(entry.place) << 32 | u64::from(entry.what.0),
            entry.offset,
        )
    });
    entries.dedup_by(|next, kept| {
        let sum = kept.count.checked_add(next.count);
        match sum {
            Some(sum) if (next.place, next.what) == (kept.place, kept.what) => kept.count = sum,
            _ => return false,
        }
        true
    });
}

/// Missing threads count 0.
fn is_same_clock(a: &[u32], b: &[u32]) -> bool {
    let common = a.len().min(b.len());
    let zero = |rest: &[u32]| rest.iter().all(|&count| count == 0);
    a[..common] == b[..common] && zero(&a[common..]) && zero(&b[common..])
}
