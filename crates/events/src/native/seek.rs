//! Reads a native trace file from any position, or the events of one thread.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::frame::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use super::index::{self, END_BODY_BYTES, End, Entry, read_threads};
use super::reader::{BATCH_EVENTS, NativeReader};
use super::varint::Cursor;
use crate::{Event, Names, Position, ThreadId, TraceError, TraceSource};

/// A native trace file that can be entered anywhere.
///
/// Where its frames are is read from the index, or, if the file is still being written or was cut, found by going
/// from frame to frame.
pub struct NativeFile {
    reader: NativeReader<File>,
    entries: Vec<Entry>,
    /// Whether the file has its end mark.
    finished: bool,
}

impl NativeFile {
    /// Opens a file (not compressed as a whole).
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        let bytes = File::open(path).map_err(|source| TraceError::Io {
            file: file.clone(),
            source,
        })?;
        Self::new(file, bytes)
    }

    /// Uses an open file, which errors call `file`.
    pub fn new(file: String, bytes: File) -> Result<Self, TraceError> {
        let mut reader = NativeReader::new(file, bytes)?;
        let indexed = read_index(&mut reader)?;
        let finished = indexed.is_some();
        let entries = match indexed {
            Some(entries) => entries,
            None => scan(&mut reader)?,
        };
        let mut native = Self {
            reader,
            entries,
            finished,
        };
        native.seek(Position(0))?;
        Ok(native)
    }

    /// Whether the trace was written to its end.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Number of events in whole frames.
    pub fn events(&self) -> u64 {
        self.entries
            .last()
            .map_or(0, |last| last.first.0 + u64::from(last.events))
    }

    /// Number of event frames.
    pub fn frames(&self) -> usize {
        self.entries.iter().filter(|entry| entry.events > 0).count()
    }

    /// Number of event frames in which a thread occurs.
    pub fn frames_of(&self, thread: ThreadId) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.has(thread))
            .count()
    }

    /// Makes the event at `position` the next one. At or beyond the last event, nothing follows.
    pub fn seek(&mut self, position: Position) -> Result<(), TraceError> {
        let frame = self
            .entries
            .iter()
            .position(|entry| entry.first.0 + u64::from(entry.events) > position.0);
        match frame {
            Some(frame) => {
                self.enter(frame)?;
                let before = position.0.saturating_sub(self.reader.position());
                self.reader
                    .current
                    .skip(before as usize)
                    .map_err(|expected| self.reader.problem(expected))
            }
            None => self.enter_end(),
        }
    }

    /// The events of one thread with their positions, from the start. Frames without it are not read.
    pub fn events_of(&mut self, thread: ThreadId) -> ThreadEvents<'_> {
        ThreadEvents {
            file: self,
            thread,
            frame: 0,
        }
    }

    /// Reads the frame of an entry, after the names frames before it.
    fn enter(&mut self, frame: usize) -> Result<(), TraceError> {
        self.read_names_before(frame)?;
        let entry = &self.entries[frame];
        self.reader.resume_at(entry.offset, entry.first.0);
        let offset = entry.offset;
        self.move_to(offset)?;
        match self.reader.read_frame()? {
            FrameKind::Events => Ok(()),
            _ => Err(self
                .reader
                .frames_mut()
                .error(offset, "expected the event frame of the index")),
        }
    }

    /// Makes the end of the last frame the next thing to be read.
    fn enter_end(&mut self) -> Result<(), TraceError> {
        let last = self.entries.iter().rposition(|entry| entry.events > 0);
        let Some(last) = last else {
            self.reader.resume_at(0, 0);
            return self.move_to(0);
        };
        self.enter(last)?;
        let all = self.reader.current.remaining();
        let skipped = self.reader.current.skip(all);
        skipped.map_err(|expected| self.reader.problem(expected))
    }

    fn read_names_before(&mut self, frame: usize) -> Result<(), TraceError> {
        let names = self.entries[..frame]
            .iter()
            .filter(|entry| entry.events == 0);
        let unread: Vec<(u64, u64)> = names
            .skip(self.reader.names_frames)
            .map(|entry| (entry.offset, entry.first.0))
            .collect();
        for (offset, first) in unread {
            self.reader.resume_at(offset, first);
            self.move_to(offset)?;
            if self.reader.read_frame()? != FrameKind::Names {
                let frames = self.reader.frames_mut();
                return Err(frames.error(offset, "expected the names frame of the index"));
            }
        }
        Ok(())
    }

    fn move_to(&mut self, offset: u64) -> Result<(), TraceError> {
        let frames = self.reader.frames_mut();
        match frames.bytes_mut().seek(SeekFrom::Start(offset)) {
            Ok(_) => Ok(()),
            Err(source) => Err(frames.io_error(source)),
        }
    }
}

impl TraceSource for NativeFile {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        self.reader.next_batch(batch)
    }

    fn names(&self) -> &dyn Names {
        self.reader.names()
    }
}

impl Entry {
    fn has(&self, thread: ThreadId) -> bool {
        self.threads.binary_search(&thread).is_ok()
    }
}

/// The events of one thread.
pub struct ThreadEvents<'a> {
    file: &'a mut NativeFile,
    thread: ThreadId,
    /// The entry to look at next.
    frame: usize,
}

impl ThreadEvents<'_> {
    /// Replaces the content of `batch` by the next events of the thread. Empty at the end.
    pub fn next_batch(&mut self, batch: &mut Vec<(Position, Event)>) -> Result<(), TraceError> {
        batch.clear();
        let mut events = Vec::new();
        while batch.is_empty() {
            let entries = &self.file.entries;
            let Some(found) = entries[self.frame..]
                .iter()
                .position(|entry| entry.has(self.thread))
            else {
                return Ok(());
            };
            self.frame += found;
            self.file.enter(self.frame)?;
            self.frame += 1;
            self.take_frame(&mut events, batch)?;
        }
        Ok(())
    }

    fn take_frame(
        &mut self,
        events: &mut Vec<Event>,
        batch: &mut Vec<(Position, Event)>,
    ) -> Result<(), TraceError> {
        let reader = &mut self.file.reader;
        while reader.current.remaining() > 0 {
            let first = reader.position();
            let taken = reader.current.take(BATCH_EVENTS, events);
            taken.map_err(|expected| reader.problem(expected))?;
            let numbered = (first..).zip(events.iter());
            let wanted = numbered.filter(|(_, event)| event.thread == self.thread);
            batch.extend(wanted.map(|(position, &event)| (Position(position), event)));
        }
        Ok(())
    }

    /// Names of what has been delivered so far.
    pub fn names(&self) -> &dyn Names {
        self.file.names()
    }
}

/// The entries of the index, if the file has its end mark and the index is sound. Anything else leads to a
/// scan, which then says what is wrong.
fn read_index(reader: &mut NativeReader<File>) -> Result<Option<Vec<Entry>>, TraceError> {
    let frames = reader.frames_mut();
    let end_bytes = (FRAME_HEADER_BYTES + END_BODY_BYTES) as i64;
    let Ok(end_offset) = frames.bytes_mut().seek(SeekFrom::End(-end_bytes)) else {
        return Ok(None);
    };
    if end_offset < FILE_HEADER_BYTES as u64 {
        return Ok(None);
    }
    frames.forget(end_offset);
    let Ok(Some(header)) = frames.next() else {
        return Ok(None);
    };
    let Ok(end) = End::from_bytes(frames.payload()) else {
        return Ok(None);
    };
    if header.kind != FrameKind::End
        || !(FILE_HEADER_BYTES as u64..=end_offset).contains(&end.index_offset)
    {
        return Ok(None);
    }
    let entries = read_entries(reader, end.index_offset, end_offset)?;
    Ok(entries.filter(|entries| is_sound(entries, end)))
}

fn read_entries(
    reader: &mut NativeReader<File>,
    mut offset: u64,
    end_offset: u64,
) -> Result<Option<Vec<Entry>>, TraceError> {
    let mut entries = Vec::new();
    while offset < end_offset {
        let Some(body) = reader.index_body(offset)? else {
            return Ok(None);
        };
        if index::read(&body, &mut entries).is_err() {
            return Ok(None);
        }
        offset = reader.frames_mut().offset;
    }
    Ok(Some(entries))
}

/// Whether entries are in order and within the file. What they say of each frame is checked when it is read.
fn is_sound(entries: &[Entry], end: End) -> bool {
    let total: u64 = entries.iter().map(|entry| u64::from(entry.events)).sum();
    let first = entries
        .first()
        .is_none_or(|entry| entry.offset == FILE_HEADER_BYTES as u64);
    let rising = entries
        .windows(2)
        .all(|pair| pair[0].offset < pair[1].offset);
    let inside = entries
        .last()
        .is_none_or(|entry| entry.offset < end.index_offset);
    total == end.events && first && rising && inside
}

/// Finds the frames by going from one to the next, up to the last whole one. Reads headers and thread lists only.
fn scan(reader: &mut NativeReader<File>) -> Result<Vec<Entry>, TraceError> {
    let mut entries = Vec::new();
    let frames = reader.frames_mut();
    let length = frames.bytes_mut().seek(SeekFrom::End(0));
    let length = length.map_err(|source| frames.io_error(source))?;
    let mut offset = FILE_HEADER_BYTES as u64;
    let mut position = 0;
    while let Some((header, threads)) = read_head(frames.bytes_mut(), offset) {
        let next = offset + (FRAME_HEADER_BYTES as u64) + u64::from(header.payload_bytes);
        let wanted = matches!(header.kind, FrameKind::Names | FrameKind::Events);
        if next > length || !wanted || header.first != position {
            break;
        }
        entries.push(Entry {
            offset,
            first: Position(position),
            events: header.events,
            threads,
        });
        position += u64::from(header.events);
        offset = next;
    }
    Ok(entries)
}

/// Header and thread list of the frame at `offset`, if they are there and sound.
fn read_head(bytes: &mut File, offset: u64) -> Option<(FrameHeader, Vec<ThreadId>)> {
    bytes.seek(SeekFrom::Start(offset)).ok()?;
    let mut header = [0; FRAME_HEADER_BYTES];
    bytes.read_exact(&mut header).ok()?;
    let header = FrameHeader::from_bytes(&header).ok()?;
    let mut threads = vec![0; header.threads_bytes as usize];
    bytes.read_exact(&mut threads).ok()?;
    let threads = match header.kind {
        FrameKind::Events => read_threads(&mut Cursor::new(&threads)).ok()?,
        _ => Vec::new(),
    };
    Some((header, threads))
}
