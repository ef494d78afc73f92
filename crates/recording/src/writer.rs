//! Writes a recording, frame by frame.

use std::fmt;
use std::io::{self, Write};

use zstd::bulk::Compressor;

use crate::codec::Codec;
use crate::frame::{self, FRAME_HEADER, PREFIX};
use crate::{End, Entry, Header, Position, WriteError};

/// A frame with this much in it is written without being asked to. More would compress better, and more would be lost.
const FRAME_ENOUGH: usize = 256 << 10;
/// What a frame's header can count.
const FRAME_MAX: usize = u32::MAX as usize - FRAME_ENOUGH;
/// zstd's fastest ordinary level: journals are repetitive, and higher ones find little more.
const LEVEL: i32 = 1;
/// Kept free under `max_size` for the end: its frame header, its outcome and outputs. Threads are counted apart.
const END_RESERVE: u64 = 512;
/// Of one thread's count in the end, at most.
const END_RESERVE_PER_THREAD: u64 = 10;

/// How to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriterOptions {
    /// The size the file may have.
    pub max_size: Option<u64>,
}

/// Whether there is room for more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Room {
    /// The entry was taken.
    Left,
    /// The entry was *not* taken: with it the recording might be larger than it may. [`Writer::finish`] it.
    None,
}

/// Writes a recording to anything that takes bytes. What has been flushed can be read, whatever happens after;
/// the rest is lost with the writer.
pub struct Writer<W> {
    sink: W,
    compressor: Compressor<'static>,
    options: WriterOptions,
    /// Entries of the frame that is being filled.
    raw: Vec<u8>,
    stored: Vec<u8>,
    /// Where that frame will be.
    position: Position,
    /// The last entry's stamp.
    at: u64,
    /// The end's list of threads has at most this many.
    threads: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a recording: the header is in the file when this returns.
    pub fn new(sink: W, header: &Header, options: WriterOptions) -> Result<Self, WriteError> {
        let mut writer = Self::resume(sink, Position::default(), options)?;
        header.encode(&mut writer.raw);
        let needed = PREFIX as u64 + writer.frame_bound() + writer.end_reserve();
        if let Some(max_size) = options.max_size
            && needed > max_size
        {
            return Err(WriteError::NoRoom { max_size, needed });
        }
        let prefix = frame::prefix();
        let written = writer.sink.write_all(&prefix);
        written.map_err(|error| writer.failed(error))?;
        writer.position.byte = PREFIX as u64;
        writer.flush()?;
        Ok(writer)
    }

    /// Goes on with a recording that [`Self::position`] was asked of. `sink` writes behind what is there.
    pub fn resume(sink: W, position: Position, options: WriterOptions) -> Result<Self, WriteError> {
        let at = position.at;
        let compressor = Compressor::new(LEVEL).map_err(|error| WriteError::Io { at, error })?;
        Ok(Self {
            sink,
            compressor,
            options,
            raw: Vec::with_capacity(FRAME_ENOUGH),
            stored: Vec::new(),
            position,
            at,
            threads: 1,
        })
    }

    /// Adds an entry that happened when all threads together had retired `at` instructions.
    ///
    /// # Panics
    /// If that was before the last entry, or if the entry is an end: [`Self::finish`] writes that.
    pub fn append(&mut self, at: u64, entry: &Entry) -> Result<Room, WriteError> {
        assert!(at >= self.at, "entry at {at} after one at {}", self.at);
        assert!(
            !matches!(entry, Entry::End { .. }),
            "only `finish` ends a recording"
        );
        let before = (self.raw.len(), self.threads);
        self.encode(at, entry)?;
        if !self.fits() {
            self.undo(before);
            // What is there may take less than it could: then there is room after all.
            self.flush()?;
            let before = (0, self.threads);
            self.encode(at, entry)?;
            if !self.fits() {
                self.undo(before);
                return Ok(Room::None);
            }
        }
        self.at = at;
        if self.raw.len() >= FRAME_ENOUGH || matches!(entry, Entry::Exec { .. }) {
            self.flush()?;
        }
        Ok(Room::Left)
    }

    /// Writes what was added since the last frame.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.raw.is_empty() {
            return Ok(());
        }
        self.stored.clear();
        self.stored
            .reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        let compressed = self
            .compressor
            .compress_to_buffer(&self.raw, &mut self.stored);
        compressed.map_err(|error| self.failed(error))?;
        let raw_len = u32::try_from(self.raw.len()).expect("at most FRAME_MAX");
        let header = frame::frame_header(self.position, &self.stored, raw_len);
        let written = self
            .sink
            .write_all(&header)
            .and_then(|()| self.sink.write_all(&self.stored))
            .and_then(|()| self.sink.flush());
        written.map_err(|error| self.failed(error))?;
        self.raw.clear();
        self.position = Position {
            frame: self.position.frame + 1,
            byte: self.position.byte + (header.len() + self.stored.len()) as u64,
            at: self.at,
        };
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Panics
    /// If the end is before the last entry.
    pub fn finish(mut self, end: End) -> Result<W, WriteError> {
        let at = end.instructions;
        assert!(at >= self.at, "end at {at} after an entry at {}", self.at);
        self.encode(at, &Entry::End { end: Box::new(end) })?;
        self.at = at;
        self.flush()?;
        Ok(self.sink)
    }

    /// Flushes, and says from where another writer could go on.
    pub fn position(&mut self) -> Result<Position, WriteError> {
        self.flush()?;
        Ok(self.position)
    }

    /// Where it was written to, without what was not flushed.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.sink
    }

    /// Where it writes to.
    #[must_use]
    pub fn sink(&self) -> &W {
        &self.sink
    }

    /// Size of the whole frames.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.position.byte
    }

    /// Whether anything would be lost with the writer.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.raw.is_empty()
    }

    fn encode(&mut self, at: u64, entry: &Entry) -> Result<(), WriteError> {
        let before = self.raw.len();
        (at - self.at).encode(&mut self.raw);
        entry.encode(&mut self.raw);
        if self.raw.len() > FRAME_MAX {
            let len = (self.raw.len() - before) as u64;
            self.raw.truncate(before);
            return Err(WriteError::EntryTooLarge { len });
        }
        if let Entry::Switch { thread, .. } = entry {
            self.threads = self.threads.max(u64::from(*thread) + 1);
        }
        Ok(())
    }

    fn undo(&mut self, (len, threads): (usize, u64)) {
        self.raw.truncate(len);
        self.threads = threads;
    }

    fn fits(&self) -> bool {
        let worst = self.position.byte + self.frame_bound() + self.end_reserve();
        self.options.max_size.is_none_or(|max| worst <= max)
    }

    /// What the frame takes at most.
    fn frame_bound(&self) -> u64 {
        (FRAME_HEADER + zstd::zstd_safe::compress_bound(self.raw.len())) as u64
    }

    fn end_reserve(&self) -> u64 {
        END_RESERVE + END_RESERVE_PER_THREAD * self.threads
    }

    fn failed(&self, error: io::Error) -> WriteError {
        let at = self.position.at;
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => WriteError::DiskFull {
                at,
                bytes: self.position.byte,
                error,
            },
            _ => WriteError::Io { at, error },
        }
    }
}

impl<W> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Writer")
            .field("position", &self.position)
            .field("at", &self.at)
            .field("waiting_bytes", &self.raw.len())
            .finish_non_exhaustive()
    }
}
