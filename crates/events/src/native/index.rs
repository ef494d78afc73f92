//! Where frames are: the body of index frames and of the end frame.
//!
//! ```text
//! index body = entry*
//! entry      = bytes since the frame before started, events, threads of an event frame
//! threads    = count, (id - id before)*
//! end body   = number of events u64, offset of the first index frame u64
//! ```
//!
//! An entry without events is a names frame.

use super::varint::{Cursor, Expected, put};
use crate::{Position, ThreadId};

/// One frame of events or names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Where it starts in the file.
    pub(crate) offset: u64,
    /// Position of its first event, or of the next event for a names frame.
    pub(crate) first: Position,
    /// Number of events; 0 for a names frame.
    pub(crate) events: u32,
    /// Threads that occur, in rising order.
    pub(crate) threads: Vec<ThreadId>,
}

/// Encodes a rising list of threads.
pub(crate) fn put_threads(out: &mut Vec<u8>, threads: &[ThreadId]) {
    put(out, threads.len() as u64);
    let mut before = 0;
    for thread in threads {
        put(out, u64::from(thread.0 - before));
        before = thread.0;
    }
}

pub(crate) fn read_threads(cursor: &mut Cursor<'_>) -> Result<Vec<ThreadId>, Expected> {
    let count = cursor.count()?;
    let mut threads = Vec::with_capacity(count);
    let mut before = 0u32;
    for _ in 0..count {
        before = before
            .checked_add(cursor.varint_u32()?)
            .ok_or("a thread number")?;
        threads.push(ThreadId(before));
    }
    Ok(threads)
}

/// Index frames in the making: entries are encoded at once, so that an index of very many frames is small.
pub(crate) struct IndexWriter {
    bodies: Vec<Vec<u8>>,
    offset_before: u64,
}

/// Size at which an index frame is full. An entry, with at most 65536 threads, fits into what a frame may have more.
const INDEX_BODY_BYTES: usize = 1 << 20;

impl IndexWriter {
    pub(crate) fn new() -> Self {
        Self {
            bodies: Vec::new(),
            offset_before: 0,
        }
    }

    pub(crate) fn push(&mut self, offset: u64, events: u32, threads: &[ThreadId]) {
        if self
            .bodies
            .last()
            .is_none_or(|body| body.len() > INDEX_BODY_BYTES)
        {
            self.bodies.push(Vec::new());
        }
        let body = self.bodies.last_mut().expect("one has been pushed");
        put(body, offset - self.offset_before);
        put(body, events.into());
        if events > 0 {
            put_threads(body, threads);
        }
        self.offset_before = offset;
    }

    pub(crate) fn into_bodies(self) -> Vec<Vec<u8>> {
        self.bodies
    }
}

/// Appends the entries of an index body.
pub(crate) fn read(body: &[u8], entries: &mut Vec<Entry>) -> Result<(), Expected> {
    let mut cursor = Cursor::new(body);
    while !cursor.is_empty() {
        let (offset_before, first) = match entries.last() {
            Some(last) => (last.offset, last.first.0 + u64::from(last.events)),
            None => (0, 0),
        };
        let offset = offset_before
            .checked_add(cursor.varint()?)
            .ok_or("an offset in the file")?;
        let events = cursor.varint_u32()?;
        let threads = match events {
            0 => Vec::new(),
            _ => read_threads(&mut cursor)?,
        };
        entries.push(Entry {
            offset,
            first: Position(first),
            events,
            threads,
        });
    }
    Ok(())
}

/// What the end frame says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) events: u64,
    pub(crate) index_offset: u64,
}

pub(crate) const END_BODY_BYTES: usize = 16;

impl End {
    pub(crate) fn to_bytes(self) -> [u8; END_BODY_BYTES] {
        let mut bytes = [0; END_BODY_BYTES];
        bytes[..8].copy_from_slice(&self.events.to_le_bytes());
        bytes[8..].copy_from_slice(&self.index_offset.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(body: &[u8]) -> Result<Self, Expected> {
        let body: [u8; END_BODY_BYTES] = body.try_into().map_err(|_| "an end frame of 16 bytes")?;
        let (events, index_offset) = body.split_at(8);
        Ok(Self {
            events: u64::from_le_bytes(events.try_into().expect("8 bytes")),
            index_offset: u64::from_le_bytes(index_offset.try_into().expect("8 bytes")),
        })
    }
}
