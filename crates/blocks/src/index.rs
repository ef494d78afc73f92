//! The index of a block trace: its size, where the frames of each thread lie, what several threads touch, and names.

use verdict_detect::TraceSize;
use verdict_events::{Addr, NameTable, Names, SiteId, ThreadId};

use crate::BlocksError;
use crate::bytes::{Cursor, Expected, count_of, put, put_text};
use crate::store::{INDEX, Store};
use crate::units::{Shared, Unit};

const MAGIC: &[u8; 8] = b"vblocks2";
const THREAD_MAGIC: &[u8; 8] = b"vblockt1";
/// Magic, raw and packed length, checksum.
const HEADER: u64 = 8 + 8 + 8 + 4;
/// LZ4 cannot make less of anything.
const RATIO_MAX: u64 = 255;

/// One compressed part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PartInfo {
    pub raw: u64,
    pub packed: u64,
    pub checksum: u32,
}

/// Where a frame lies in the file of its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameInfo {
    pub(crate) offset: u64,
    /// How many blocks it has.
    pub blocks: u64,
    /// How many entries they have.
    pub entries: u64,
    pub(crate) parts: [PartInfo; 2],
}

/// The file of a thread.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ThreadInfo {
    /// Its length in bytes; 0 if the thread accessed nothing and there is no file.
    pub length: u64,
    /// In order.
    pub frames: Vec<FrameInfo>,
}

/// What is known of a block trace without its blocks.
#[derive(Clone)]
pub struct Index {
    /// The size of the trace it was built from.
    pub trace: TraceSize,
    /// Blocks of all threads.
    pub blocks: u32,
    /// Entries of all blocks.
    pub entries: u64,
    /// Different places.
    pub place_count: u64,
    pub(crate) sites: u32,
    /// By number.
    pub threads: Vec<ThreadInfo>,
    pub(crate) shared: Shared,
    /// Names of threads, of sites and of what is shared.
    pub names: NameTable,
    /// Tells this block trace from others.
    pub checksum: u32,
}

/// Memory for reading parts of frames, used again for each: to get it and to give it back, page by page, stops all threads.
#[derive(Default)]
pub(crate) struct Buffers {
    packed: Vec<u8>,
    raw: Vec<u8>,
}

pub(crate) fn file_name(thread: u32) -> String {
    format!("thread-{thread}.vblocks")
}

/// The first bytes of a thread's file.
pub(crate) fn file_start(thread: u32) -> [u8; 12] {
    let mut start = [0; 12];
    start[..8].copy_from_slice(THREAD_MAGIC);
    start[8..].copy_from_slice(&thread.to_le_bytes());
    start
}

/// The names of everything that a report can speak of.
pub(crate) fn gather_names(
    names: &dyn Names,
    threads: u32,
    sites: u32,
    shared: &Shared,
) -> NameTable {
    let mut table = NameTable::new();
    for thread in 0..threads {
        table.push_thread(&names.thread(ThreadId(thread)));
    }
    for site in 0..sites {
        table.push_site(&names.site(SiteId(site)));
    }
    for addr in spoken_of(shared) {
        if let Some(name) = names.location_name(Addr(addr)) {
            table.name_location(Addr(addr), name);
        }
    }
    table
}

/// First bytes of locations and of units, ascending.
fn spoken_of(shared: &Shared) -> Vec<u64> {
    let locations = shared.locations.iter().map(|&(start, _)| start);
    let units = shared.units.iter().map(|unit| unit.start);
    let mut all: Vec<u64> = locations.chain(units).collect();
    // Both are in order, or nearly: the stable sort merges them, the other would begin from scratch.
    all.sort();
    all.dedup();
    all
}

impl Index {
    /// Reads the index of a block trace.
    pub fn read(store: &dyn Store) -> Result<Index, BlocksError> {
        let damaged = |offset: u64, problem: String| BlocksError::Damaged {
            file: store.shown(INDEX),
            offset,
            problem,
        };
        let length = store.length(INDEX)?;
        let header = store.read(INDEX, 0, HEADER.min(length))?;
        if header.len() < HEADER as usize || header[..8] != MAGIC[..] {
            return Err(damaged(0, "expected the index of a block trace".to_owned()));
        }
        let number =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let (raw, packed) = (number(8), number(16));
        let checksum = u32::from_le_bytes(header[24..28].try_into().expect("four bytes"));
        if length - HEADER != packed || raw / RATIO_MAX > packed {
            let problem = format!("expected {packed} bytes, found {}", length - HEADER);
            return Err(damaged(HEADER, problem));
        }
        let bytes = store.read(INDEX, HEADER, packed)?;
        if crc32fast::hash(&bytes) != checksum {
            return Err(damaged(HEADER, "the checksum does not match".to_owned()));
        }
        let raw = lz4_flex::block::decompress(&bytes, raw as usize)
            .map_err(|error| damaged(HEADER, error.to_string()))?;
        let mut index = Index::decode(&raw)
            .map_err(|expected| damaged(HEADER, format!("expected {expected}")))?;
        index.checksum = checksum;
        Ok(index)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let raw = self.encode_raw();
        let packed = lz4_flex::block::compress(&raw);
        let mut bytes = Vec::with_capacity(packed.len() + HEADER as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(raw.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(packed.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&packed).to_le_bytes());
        bytes.extend_from_slice(&packed);
        bytes
    }

    fn encode_raw(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let TraceSize {
            events,
            threads,
            locations,
            segments,
        } = self.trace;
        for number in [events, threads, locations, segments] {
            put(&mut out, number);
        }
        put(&mut out, u64::from(self.blocks));
        put(&mut out, self.entries);
        put(&mut out, self.place_count);
        put(&mut out, self.threads.len() as u64);
        for thread in &self.threads {
            put(&mut out, thread.length);
            put(&mut out, thread.frames.len() as u64);
            for frame in &thread.frames {
                put(&mut out, frame.offset);
                put(&mut out, frame.blocks);
                put(&mut out, frame.entries);
                for part in &frame.parts {
                    put(&mut out, part.raw);
                    put(&mut out, part.packed);
                    put(&mut out, u64::from(part.checksum));
                }
            }
        }
        encode_shared(&self.shared, &mut out);
        for thread in 0..self.threads.len() as u32 {
            put_text(&mut out, &self.names.thread(ThreadId(thread)));
        }
        put(&mut out, u64::from(self.sites));
        for site in 0..self.sites {
            put_text(&mut out, &self.names.site(SiteId(site)));
        }
        let named = spoken_of(&self.shared);
        let named = named
            .into_iter()
            .filter_map(|addr| Some((addr, self.names.location_name(Addr(addr))?)));
        let named: Vec<(u64, &str)> = named.collect();
        put(&mut out, named.len() as u64);
        let mut last = 0;
        for (addr, name) in named {
            put(&mut out, addr - last);
            put_text(&mut out, name);
            last = addr;
        }
        out
    }

    /// Decodes an index that has been decompressed. Bytes that make no sense are an error that says what was expected.
    pub fn decode(bytes: &[u8]) -> Result<Index, &'static str> {
        let cursor = &mut Cursor::new(bytes);
        let trace = TraceSize {
            events: cursor.varint()?,
            threads: cursor.varint()?,
            locations: cursor.varint()?,
            segments: cursor.varint()?,
        };
        let blocks = cursor.varint_u32()?;
        let entries = cursor.varint()?;
        let place_count = u64::from(cursor.varint_u32()?);
        let count = count_of(cursor, 2)?;
        let threads: Vec<ThreadInfo> = (0..count)
            .map(|_| decode_thread(cursor))
            .collect::<Result<_, _>>()?;
        check_sums(&threads, u64::from(blocks), entries, place_count)?;
        let shared = decode_shared(cursor, place_count)?;
        let mut names = NameTable::new();
        for _ in &threads {
            names.push_thread(cursor.text()?);
        }
        let sites = count_of(cursor, 1)? as u32;
        for _ in 0..sites {
            names.push_site(cursor.text()?);
        }
        let mut addr = 0u64;
        for _ in 0..count_of(cursor, 2)? {
            let step = cursor.varint()?;
            addr = addr.checked_add(step).ok_or("a location in memory")?;
            names.name_location(Addr(addr), cursor.text()?);
        }
        match cursor.remaining() {
            0 => Ok(Index {
                trace,
                blocks,
                entries,
                place_count,
                sites,
                threads,
                shared,
                names,
                checksum: 0,
            }),
            _ => Err("the end of the index"),
        }
    }

    /// Units that can race, by number.
    pub fn units(&self) -> &[Unit] {
        &self.shared.units
    }

    /// How many records detection has to look at.
    pub fn records(&self) -> u64 {
        self.shared.units.iter().map(|unit| unit.records).sum()
    }

    /// Reads a part of a frame: its blocks (0) or its entries (1).
    pub(crate) fn read_part<'a>(
        &self,
        store: &dyn Store,
        thread: u32,
        frame: &FrameInfo,
        part: usize,
        buffers: &'a mut Buffers,
    ) -> Result<&'a [u8], BlocksError> {
        let name = file_name(thread);
        let skipped: u64 = frame.parts[..part].iter().map(|part| part.packed).sum();
        let offset = frame.offset + skipped;
        let info = &frame.parts[part];
        let damaged = |problem: String| BlocksError::Damaged {
            file: store.shown(&name),
            offset,
            problem,
        };
        let Buffers { packed, raw } = buffers;
        store.read_into(&name, offset, info.packed, packed)?;
        if crc32fast::hash(packed) != info.checksum {
            return Err(damaged("the checksum does not match".to_owned()));
        }
        raw.resize(info.raw as usize, 0);
        let length = lz4_flex::block::decompress_into(packed, raw)
            .map_err(|error| damaged(error.to_string()))?;
        match length as u64 == info.raw {
            true => Ok(raw),
            false => Err(damaged(format!("expected {} bytes", info.raw))),
        }
    }

    /// Says that all files are there and as long as they should be, before hours are spent on them.
    pub fn check_files(&self, store: &dyn Store) -> Result<(), BlocksError> {
        for (thread, info) in self.threads.iter().enumerate() {
            if info.length == 0 {
                continue;
            }
            let name = file_name(thread as u32);
            let length = store.length(&name)?;
            if length != info.length {
                return Err(BlocksError::Damaged {
                    file: store.shown(&name),
                    offset: length.min(info.length),
                    problem: format!("expected {} bytes, found {length}", info.length),
                });
            }
            let start = file_start(thread as u32);
            if store.read(&name, 0, start.len() as u64)? != start {
                return Err(BlocksError::Damaged {
                    file: store.shown(&name),
                    offset: 0,
                    problem: format!("expected the blocks of thread {thread}"),
                });
            }
        }
        Ok(())
    }
}

fn decode_thread(cursor: &mut Cursor) -> Result<ThreadInfo, Expected> {
    let length = cursor.varint()?;
    let count = count_of(cursor, 9)?;
    let mut frames = Vec::with_capacity(count);
    for _ in 0..count {
        let (offset, blocks, entries) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
        let mut parts = [PartInfo::default(); 2];
        let mut end = offset;
        for part in &mut parts {
            *part = PartInfo {
                raw: cursor.varint()?,
                packed: cursor.varint()?,
                checksum: cursor.varint_u32()?,
            };
            if part.raw / RATIO_MAX > part.packed {
                return Err("a frame that can be decompressed");
            }
            end = end.checked_add(part.packed).ok_or("a frame in its file")?;
        }
        if blocks > parts[0].raw || entries > parts[1].raw {
            return Err("a frame that holds its blocks and entries");
        }
        if end > length {
            return Err("a frame in its file");
        }
        frames.push(FrameInfo {
            offset,
            blocks,
            entries,
            parts,
        });
    }
    Ok(ThreadInfo { length, frames })
}

/// What detection reserves memory by must be there: the frames that are announced bound it.
fn check_sums(
    threads: &[ThreadInfo],
    blocks: u64,
    entries: u64,
    place_count: u64,
) -> Result<(), Expected> {
    let frames = || threads.iter().flat_map(|thread| &thread.frames);
    let sum = |of: fn(&FrameInfo) -> u64| {
        let mut numbers = frames().map(of);
        numbers.try_fold(0u64, u64::checked_add)
    };
    if sum(|frame| frame.blocks) != Some(blocks) || sum(|frame| frame.entries) != Some(entries) {
        return Err("as many blocks and entries as all frames have");
    }
    match place_count <= entries {
        true => Ok(()),
        false => Err("an entry for every place"),
    }
}

fn encode_shared(shared: &Shared, out: &mut Vec<u8>) {
    put(out, shared.location_count);
    put(out, shared.units.len() as u64);
    let mut last = 0;
    for unit in &shared.units {
        // Units of one generation follow each other by address; those of the next begin anywhere.
        put(out, unit.start.wrapping_sub(last));
        put(out, unit.end - unit.start);
        put(out, unit.records);
        last = unit.end;
    }
    put(out, shared.by_place().count() as u64);
    let mut last = 0;
    for covers in shared.by_place() {
        let place = covers[0].0;
        put(out, u64::from(place - last));
        last = place;
        put(out, covers.len() as u64);
        let units = covers.iter().map(|&(_, unit)| u64::from(unit));
        units.for_each(|unit| put(out, unit));
    }
    put(out, shared.locations.len() as u64);
    let mut last = 0;
    for &(start, end) in &shared.locations {
        put(out, start - last);
        put(out, end - start);
        last = start;
    }
}

fn decode_shared(cursor: &mut Cursor, place_count: u64) -> Result<Shared, Expected> {
    let location_count = cursor.varint()?;
    let count = count_of(cursor, 3)?;
    let mut units = Vec::with_capacity(count);
    let mut last = 0u64;
    for _ in 0..count {
        let start = last.wrapping_add(cursor.varint()?);
        let end = start
            .checked_add(cursor.varint()?)
            .ok_or("a unit of memory")?;
        let records = cursor.varint()?;
        units.push(Unit {
            start,
            end,
            records,
        });
        last = end;
    }
    let count = count_of(cursor, 3)?;
    let mut covers: Vec<(u32, u32)> = Vec::with_capacity(count);
    let mut place = 0u64;
    for nth in 0..count {
        let step = cursor.varint_u32()?;
        if step == 0 && nth > 0 {
            return Err("places in order");
        }
        place += u64::from(step);
        if place >= place_count {
            return Err("a place of the trace");
        }
        let covered = count_of(cursor, 1)?;
        for _ in 0..covered {
            let unit = cursor.varint_u32()?;
            if unit as usize >= units.len() {
                return Err("a unit of the trace");
            }
            covers.push((place as u32, unit));
        }
    }
    let count = count_of(cursor, 2)?;
    let mut locations = Vec::with_capacity(count);
    let mut last = 0u64;
    for _ in 0..count {
        let start = last
            .checked_add(cursor.varint()?)
            .ok_or("a location in memory")?;
        let end = start
            .checked_add(cursor.varint()?)
            .ok_or("a location in memory")?;
        locations.push((start, end));
        last = start;
    }
    Ok(Shared {
        units,
        covers,
        locations,
        location_count,
    })
}
