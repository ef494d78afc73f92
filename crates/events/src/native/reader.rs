//! Reads the native format as a stream, up to the last whole frame.

use std::io::{self, Read, Seek, SeekFrom};

use super::codec::Decompressor;
use super::decode::{FrameEvents, Known};
use super::frame::{
    FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FrameHeader, FrameKind, check_file_header,
};
use super::index::{End, read_threads};
use super::names_frame;
use super::part::{Part, in_the_frame};
use super::varint::Cursor;
use crate::{Digest, Event, NameTable, Names, ThreadId, TraceError, TraceSource};

/// Events in one batch: few enough to stay in the second-level cache.
pub(crate) const BATCH_EVENTS: usize = 2048;

/// Reads a native trace from any stream of bytes.
///
/// [`TraceError::Incomplete`] means that all whole frames have been delivered. Where the bytes come from a file that
/// is still being written, `next_batch` may be called again later and goes on from there.
pub struct NativeReader<R> {
    frames: Frames<R>,
    decompressor: Decompressor,
    body: Vec<u8>,
    names: NameTable,
    pub(super) current: FrameEvents,
    /// Events in the frames read so far.
    events: u64,
    /// Names frames read so far.
    pub(super) names_frames: usize,
    /// Names frames that start before this have been read: going back must not read them again.
    names_read_to: u64,
    ended: bool,
}

impl<R: Read> NativeReader<R> {
    /// Reads from `bytes`, which errors call `file`.
    pub fn new(file: String, bytes: R) -> Result<Self, TraceError> {
        let decompressor = match Decompressor::new() {
            Ok(decompressor) => decompressor,
            Err(source) => return Err(TraceError::Io { file, source }),
        };
        Ok(Self {
            frames: Frames::new(file, bytes),
            decompressor,
            body: Vec::new(),
            names: NameTable::new(),
            current: FrameEvents::new(),
            events: 0,
            names_frames: 0,
            names_read_to: 0,
            ended: false,
        })
    }

    pub(super) fn frames_mut(&mut self) -> &mut Frames<R> {
        &mut self.frames
    }

    /// Goes on at another frame, `events` being the position of its first event.
    pub(super) fn resume_at(&mut self, offset: u64, events: u64) {
        self.frames.forget(offset);
        self.current.body_mut();
        self.events = events;
        self.ended = false;
    }

    /// Position of the next event to be delivered.
    pub(super) fn position(&self) -> u64 {
        self.events - self.current.remaining() as u64
    }

    /// Reads frames until one has events. False at the end of the trace.
    pub(super) fn next_events_frame(&mut self) -> Result<bool, TraceError> {
        while !self.ended {
            if self.read_frame()? == FrameKind::Events {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the next frame whole in memory.
    fn next_header(&mut self) -> Result<FrameHeader, TraceError> {
        self.frames.next()?.ok_or_else(|| TraceError::Incomplete {
            file: self.frames.file.clone(),
            offset: self.frames.offset,
            events: self.events,
        })
    }

    /// The next event frame as it is stored, in the memory of `used`, and all that is needed to decode it. `None` at the end
    /// of the trace.
    fn next_stored(&mut self, used: Option<Part>) -> Result<Option<Part>, TraceError> {
        while !self.ended {
            let header = self.next_header()?;
            if header.kind != FrameKind::Events {
                self.do_frame(header)?;
                continue;
            }
            self.check_events_frame(header)
                .map_err(|expected| self.frames.expected(expected))?;
            let known = self.known();
            self.events += u64::from(header.events);
            let offset = self.frames.offset;
            let frame = self
                .frames
                .pass_whole(used.map_or_else(Vec::new, |used| used.frame));
            return Ok(Some(Part {
                file: self.frames.file.clone(),
                offset,
                frame,
                header,
                known,
            }));
        }
        Ok(None)
    }

    fn check_events_frame(&self, header: FrameHeader) -> Result<(), &'static str> {
        self.check_continues(header)?;
        let threads = &self.frames.payload()[..header.threads_bytes as usize];
        check_threads(threads)
    }

    fn check_continues(&self, header: FrameHeader) -> Result<(), &'static str> {
        match header.first == self.events || header.kind == FrameKind::Index {
            true => Ok(()),
            false => Err("a frame that continues the one before"),
        }
    }

    fn known(&self) -> Known {
        Known {
            threads: self.names.threads(),
            sites: self.names.sites(),
        }
    }

    /// Reads one frame and does what it says.
    pub(super) fn read_frame(&mut self) -> Result<FrameKind, TraceError> {
        let header = self.next_header()?;
        self.do_frame(header)
    }

    /// Does what the frame in memory says.
    fn do_frame(&mut self, header: FrameHeader) -> Result<FrameKind, TraceError> {
        self.take_frame(header)
            .map_err(|expected| self.frames.expected(expected))?;
        self.frames.pass();
        if header.kind == FrameKind::End {
            self.frames.expect_end()?;
            self.ended = true;
        }
        Ok(header.kind)
    }

    fn take_frame(&mut self, header: FrameHeader) -> Result<(), &'static str> {
        self.check_continues(header)?;
        let (threads, stored) = self
            .frames
            .payload()
            .split_at(header.threads_bytes as usize);
        let body = match header.kind {
            FrameKind::Events => self.current.body_mut(),
            _ => &mut self.body,
        };
        let body_bytes = header.body_bytes as usize;
        self.decompressor
            .decompress(header.compression, stored, body_bytes, body)?;
        match header.kind {
            FrameKind::Names if self.frames.offset < self.names_read_to => {}
            FrameKind::Names => {
                names_frame::read(&self.body, &mut self.names)?;
                self.names_frames += 1;
                self.names_read_to = self.frames.offset + 1;
            }
            FrameKind::Events => {
                check_threads(threads)?;
                let known = self.known();
                self.current.start(header.events as usize, known)?;
                self.events += u64::from(header.events);
            }
            FrameKind::Index => {}
            FrameKind::End => {
                if End::from_bytes(&self.body)?.events != self.events {
                    return Err("an end mark that counts the events before it");
                }
            }
        }
        Ok(())
    }

    /// The body of the index frame at `offset`, if there is a sound one.
    pub(super) fn index_body(&mut self, offset: u64) -> Result<Option<Vec<u8>>, TraceError>
    where
        R: Seek,
    {
        if let Err(source) = self.frames.bytes.seek(SeekFrom::Start(offset)) {
            return Err(self.frames.io_error(source));
        }
        self.frames.forget(offset);
        let Ok(Some(header)) = self.frames.next() else {
            return Ok(None);
        };
        let stored = self.frames.payload();
        let (compression, bytes) = (header.compression, header.body_bytes as usize);
        let decompressed = self
            .decompressor
            .decompress(compression, stored, bytes, &mut self.body);
        self.frames.pass();
        let sound = decompressed.is_ok() && header.kind == FrameKind::Index;
        Ok(sound.then(|| self.body.clone()))
    }

    pub(super) fn problem(&self, expected: &str) -> TraceError {
        self.frames
            .error(self.frames.offset, in_the_frame(expected))
    }
}

fn check_threads(bytes: &[u8]) -> Result<(), &'static str> {
    let mut cursor = Cursor::new(bytes);
    let threads: Vec<ThreadId> = read_threads(&mut cursor)?;
    match cursor.is_empty() && !threads.is_empty() {
        true => Ok(()),
        false => Err("the list of the threads of the frame"),
    }
}

impl<R: Read> NativeReader<R> {
    fn take_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        if self.current.remaining() == 0 && !self.next_events_frame()? {
            batch.clear();
            return Ok(());
        }
        let taken = self.current.take(BATCH_EVENTS, batch);
        taken.map_err(|expected| self.problem(expected))
    }
}

impl<R: Read> TraceSource for NativeReader<R> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        let taken = self.take_batch(batch);
        if taken.is_err() {
            batch.clear();
        }
        taken
    }

    fn next_digest(&mut self, digest: &mut Digest) -> Result<(), TraceError> {
        if self.current.remaining() == 0 && !self.next_events_frame()? {
            return Ok(());
        }
        let taken = self.current.take_digest(BATCH_EVENTS, digest);
        taken.map_err(|expected| self.problem(expected))
    }

    fn has_parts(&self) -> bool {
        self.current.remaining() == 0
    }

    fn next_part(&mut self, used: Option<Part>) -> Result<Option<Part>, TraceError> {
        self.next_stored(used)
    }

    fn names(&self) -> &dyn Names {
        &self.names
    }
}

/// Whole frames out of a stream of bytes.
pub(super) struct Frames<R> {
    pub(super) file: String,
    bytes: R,
    /// Where the frame that is being read starts: everything before it is whole.
    pub(super) offset: u64,
    /// The bytes of that frame read so far.
    pending: Vec<u8>,
}

impl<R: Read> Frames<R> {
    fn new(file: String, bytes: R) -> Self {
        Self {
            file,
            bytes,
            offset: 0,
            pending: Vec::new(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut R {
        &mut self.bytes
    }

    /// Starts anew at `offset`, to which the caller has moved the stream.
    pub(super) fn forget(&mut self, offset: u64) {
        self.offset = offset;
        self.pending.clear();
    }

    /// Makes the next frame whole in memory. `None` if the bytes end before it does.
    pub(super) fn next(&mut self) -> Result<Option<FrameHeader>, TraceError> {
        if self.offset == 0 && !self.pass_file_header()? {
            return Ok(None);
        }
        let Some(header) = self.fill(FRAME_HEADER_BYTES)? else {
            return Ok(None);
        };
        let header = header.first_chunk().expect("filled");
        let header =
            FrameHeader::from_bytes(header).map_err(|problem| self.error(self.offset, problem))?;
        let whole = FRAME_HEADER_BYTES + header.payload_bytes as usize;
        if self.fill(whole)?.is_none() {
            return Ok(None);
        }
        if crc32fast::hash(self.payload()) != header.payload_sum {
            return Err(self.error(
                self.offset,
                "the frame is damaged: its checksum does not match",
            ));
        }
        Ok(Some(header))
    }

    fn pass_file_header(&mut self) -> Result<bool, TraceError> {
        let Some(header) = self.fill(FILE_HEADER_BYTES)? else {
            return Ok(false);
        };
        let header = header.first_chunk().expect("filled");
        check_file_header(header).map_err(|problem| self.error(0, problem))?;
        self.pass();
        Ok(true)
    }

    /// The payload of the whole frame in memory.
    pub(super) fn payload(&self) -> &[u8] {
        &self.pending[FRAME_HEADER_BYTES..]
    }

    /// Leaves the whole frame in memory behind.
    fn pass(&mut self) {
        self.offset += self.pending.len() as u64;
        self.pending.clear();
    }

    /// Leaves the whole frame in memory behind, and gives it away for other memory.
    fn pass_whole(&mut self, mut empty: Vec<u8>) -> Vec<u8> {
        empty.clear();
        let frame = std::mem::replace(&mut self.pending, empty);
        self.offset += frame.len() as u64;
        frame
    }

    /// Has `count` bytes of the frame in memory, or `None` if there are no more for now.
    fn fill(&mut self, count: usize) -> Result<Option<&[u8]>, TraceError> {
        let missing = count.saturating_sub(self.pending.len());
        let mut more = (&mut self.bytes).take(missing as u64);
        if let Err(source) = more.read_to_end(&mut self.pending) {
            return Err(self.io_error(source));
        }
        Ok((self.pending.len() >= count).then_some(&self.pending))
    }

    fn expect_end(&mut self) -> Result<(), TraceError> {
        match self.fill(1)? {
            None => Ok(()),
            Some(_) => Err(self.error(
                self.offset,
                "expected the end of the file after the end mark",
            )),
        }
    }

    /// What is wrong with the frame that is being read.
    fn expected(&self, expected: &str) -> TraceError {
        self.error(self.offset, format!("expected {expected}"))
    }

    pub(super) fn error(&self, offset: u64, problem: impl Into<String>) -> TraceError {
        TraceError::Binary {
            file: self.file.clone(),
            offset,
            problem: problem.into(),
        }
    }

    pub(super) fn io_error(&self, source: io::Error) -> TraceError {
        TraceError::Io {
            file: self.file.clone(),
            source,
        }
    }
}
