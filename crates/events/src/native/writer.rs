//! Writes the native format as a stream.

use hashbrown::HashSet;
use std::io::{self, Write};

use super::codec::{Compression, compress};
use super::encode::{Contents, Encoder};
use super::frame::{BODY_BYTES_MAX, FRAME_EVENTS_MAX, FrameHeader, FrameKind, file_header};
use super::index::{End, IndexWriter, put_threads};
use super::names_frame::NewNames;
use super::shape::OperandKind;
use crate::{Addr, Event, Names, SiteId, SyncId, ThreadId, WriteError};

/// Size at which a names frame is full.
const NAMES_BODY_BYTES: usize = 1 << 20;

/// How far ahead of the ids seen so far an id may be. Ids are dense, so a larger gap is a mistake that would
/// fill the disk with names.
const ID_GAP_MAX: u64 = 1 << 20;

/// Writes a trace in the native format. Keeps one frame of events in memory, and what has been named.
///
/// What was written can be read at any time up to the last whole frame. A trace that is not
/// [finished](NativeWriter::finish) reads as one that is still growing.
pub struct NativeWriter<W> {
    out: W,
    offset: u64,
    compression: Compression,
    encoder: Encoder,
    waiting: Vec<Event>,
    /// Position of the first waiting event.
    position: u64,
    new_names: NewNames,
    named_locations: HashSet<u64>,
    named_syncs: HashSet<u64>,
    index: IndexWriter,
}

impl<W: Write> NativeWriter<W> {
    /// Starts a trace by writing the file header.
    pub fn new(out: W) -> Result<Self, WriteError> {
        Self::with_compression(out, Compression::Lz4)
    }

    /// Starts a trace whose frames are compressed in the given way.
    pub fn with_compression(mut out: W, compression: Compression) -> Result<Self, WriteError> {
        let header = file_header();
        out.write_all(&header)?;
        Ok(Self {
            out,
            offset: header.len() as u64,
            compression,
            encoder: Encoder::default(),
            waiting: Vec::with_capacity(FRAME_EVENTS_MAX),
            position: 0,
            new_names: NewNames::default(),
            named_locations: HashSet::new(),
            named_syncs: HashSet::new(),
            index: IndexWriter::new(),
        })
    }

    /// Appends events, whose ids `names` names.
    pub fn write(&mut self, mut events: &[Event], names: &dyn Names) -> Result<(), WriteError> {
        while !events.is_empty() {
            let room = FRAME_EVENTS_MAX - self.waiting.len();
            let (now, later) = events.split_at(room.min(events.len()));
            self.waiting.extend_from_slice(now);
            events = later;
            if self.waiting.len() == FRAME_EVENTS_MAX {
                self.end_frame(names)?;
            }
        }
        Ok(())
    }

    /// Makes a frame of the events that wait for one to be full, so that a reader can see them.
    pub fn flush(&mut self, names: &dyn Names) -> Result<(), WriteError> {
        self.end_frame(names)?;
        Ok(self.out.flush()?)
    }

    /// Writes what is left, the index and the end mark.
    pub fn finish(mut self, names: &dyn Names) -> Result<W, WriteError> {
        self.end_frame(names)?;
        let index_offset = self.offset;
        let index = std::mem::replace(&mut self.index, IndexWriter::new());
        for body in index.into_bodies() {
            self.put_frame(FrameKind::Index, &body, 0, &[])?;
        }
        let end = End {
            events: self.position,
            index_offset,
        };
        self.compression = Compression::None;
        self.put_frame(FrameKind::End, &end.to_bytes(), 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn end_frame(&mut self, names: &dyn Names) -> Result<(), WriteError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut body = Vec::new();
        let contents = self.encoder.encode(&waiting, &mut body);
        self.gather_names(&contents, names)?;
        if self.new_names.bytes() > 0 {
            self.put_names()?;
        }
        let mut threads = Vec::new();
        put_threads(&mut threads, &contents.threads);
        let events = waiting.len() as u32;
        self.index.push(self.offset, events, &contents.threads);
        self.put_frame(FrameKind::Events, &body, events, &threads)?;
        self.position += u64::from(events);
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }

    fn gather_names(&mut self, contents: &Contents, names: &dyn Names) -> Result<(), WriteError> {
        let targets = contents
            .operands
            .iter()
            .filter(|(_, kind)| *kind == OperandKind::Thread);
        let targets = targets.map(|&(operand, _)| operand);
        let threads = contents.threads.iter().map(|thread| u64::from(thread.0));
        let thread_max = threads.chain(targets).max().unwrap_or(0);
        self.check_gap("thread", thread_max, self.new_names.threads())?;
        while self.new_names.threads() <= thread_max {
            let id = ThreadId(self.new_names.threads() as u32);
            self.new_names.push_thread(short(&names.thread(id))?);
            self.put_full_names()?;
        }
        let site_max = u64::from(contents.site_max);
        self.check_gap("site", site_max, self.new_names.sites())?;
        while self.new_names.sites() <= site_max {
            let id = SiteId(self.new_names.sites() as u32);
            self.new_names.push_site(short(&names.site(id))?);
            self.put_full_names()?;
        }
        for &(operand, kind) in &contents.operands {
            match kind {
                OperandKind::Location => self.gather_location(Addr(operand), names)?,
                OperandKind::Sync => self.gather_sync(SyncId(operand), names)?,
                OperandKind::Thread | OperandKind::None => {}
            }
        }
        Ok(())
    }

    fn gather_location(&mut self, addr: Addr, names: &dyn Names) -> Result<(), WriteError> {
        if let Some(name) = names.location_name(addr)
            && self.named_locations.insert(addr.0)
        {
            self.new_names.name_location(addr, short(name)?);
            self.put_full_names()?;
        }
        Ok(())
    }

    fn gather_sync(&mut self, id: SyncId, names: &dyn Names) -> Result<(), WriteError> {
        if let Some(name) = names.sync_name(id)
            && self.named_syncs.insert(id.0)
        {
            self.new_names.name_sync(id, short(name)?);
            self.put_full_names()?;
        }
        Ok(())
    }

    fn check_gap(&self, what: &str, id: u64, named: u64) -> Result<(), WriteError> {
        if id <= named.saturating_add(ID_GAP_MAX) {
            return Ok(());
        }
        let problem = format!("{what} {id} follows {named} known ones, but ids must be dense");
        Err(io::Error::new(io::ErrorKind::InvalidInput, problem).into())
    }

    fn put_full_names(&mut self) -> Result<(), WriteError> {
        match self.new_names.bytes() > NAMES_BODY_BYTES {
            true => self.put_names(),
            false => Ok(()),
        }
    }

    fn put_names(&mut self) -> Result<(), WriteError> {
        let body = self.new_names.take_body();
        self.index.push(self.offset, 0, &[]);
        // Names are read once where events are read by the million, so size counts more than speed.
        let events_compression = self.compression;
        if events_compression != Compression::None {
            self.compression = Compression::Zstd;
        }
        let put = self.put_frame(FrameKind::Names, &body, 0, &[]);
        self.compression = events_compression;
        put
    }

    fn put_frame(
        &mut self,
        kind: FrameKind,
        body: &[u8],
        events: u32,
        threads: &[u8],
    ) -> Result<(), WriteError> {
        assert!(
            body.len() <= BODY_BYTES_MAX as usize,
            "every frame has room"
        );
        let mut payload = threads.to_vec();
        let compression = compress(self.compression, body, &mut payload)?;
        let header = FrameHeader {
            kind,
            compression,
            payload_bytes: payload.len() as u32,
            body_bytes: body.len() as u32,
            events,
            first: self.position,
            threads_bytes: threads.len() as u32,
            payload_sum: crc32fast::hash(&payload),
        };
        let header = header.to_bytes();
        self.out.write_all(&header)?;
        self.out.write_all(&payload)?;
        self.offset += (header.len() + payload.len()) as u64;
        Ok(())
    }
}

/// Refuses names that no frame has room for.
fn short(name: &str) -> Result<&str, WriteError> {
    const NAME_BYTES_MAX: usize = 1 << 20;
    if name.len() <= NAME_BYTES_MAX {
        return Ok(name);
    }
    let problem = format!(
        "a name has {} bytes, more than {NAME_BYTES_MAX}",
        name.len()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem).into())
}
