//! Frames: some blocks of one thread, as they lie in its file.
//!
//! A frame has two parts, each compressed (LZ4) and checksummed by itself, so that planning reads only the first:
//! - *blocks*: per block its number, first position, count of posts, clock (what changed since the block before) and
//!   number of entries;
//! - *entries*: four columns over all blocks: place (ascending within a block, as differences), site and kind, how
//!   many accesses, and the offset of the first from the start of the block. The last three have a fixed width each, so
//!   that what concerns nobody else is skipped without being decoded.
//!
//! A frame can be read without the frames before it.

use crate::bytes::{Column, Cursor, Expected, count_of, put, put_column};
use crate::record::What;

/// A segment of a thread, or a part of one that became too long: parts have the same clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Blocks of all threads are numbered as they begin.
    pub number: u32,
    /// Position of its first access.
    pub start: u64,
    /// How many posts its thread had made.
    pub posts: u32,
    /// Which clock of [`Blocks::clocks`] it has.
    pub clock: u32,
    /// How many entries it has.
    pub entries: u32,
}

/// One entry of a block: accesses that differ in time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub place: u32,
    pub what: What,
    pub count: u32,
    pub offset: u32,
}

/// The clocks of consecutive blocks, as changes.
#[derive(Default, Clone, Debug)]
pub(crate) struct FrameWriter {
    blocks: Vec<u8>,
    block_count: u64,
    places: Vec<u8>,
    entries: Vec<Entry>,
    last_number: u32,
    last_start: u64,
    last_posts: u32,
    /// Of the last block; missing ones are 0.
    clock: Vec<u32>,
}

impl FrameWriter {
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    pub fn blocks(&self) -> u64 {
        self.block_count
    }

    /// Adds a block; its entries are in order of place. `clock` leaves the own thread out.
    pub fn push(&mut self, number: u32, start: u64, posts: u32, clock: &[u32], entries: &[Entry]) {
        let out = &mut self.blocks;
        put(out, u64::from(number - self.last_number));
        put(out, start - self.last_start);
        put(out, u64::from(posts - self.last_posts));
        put(out, entries.len() as u64);
        (self.last_number, self.last_start, self.last_posts) = (number, start, posts);
        self.clock.resize(self.clock.len().max(clock.len()), 0);
        let changed = |(&old, &new): (&u32, &u32)| old != new;
        let changes = self
            .clock
            .iter()
            .zip(clock)
            .filter(|&pair| changed(pair))
            .count();
        put(out, changes as u64);
        let mut last = 0;
        for (thread, (old, &new)) in self.clock.iter_mut().zip(clock).enumerate() {
            if *old != new {
                put(out, (thread - last) as u64);
                put(out, u64::from(new - *old));
                (last, *old) = (thread, new);
            }
        }
        self.block_count += 1;
        let mut place = 0;
        for entry in entries {
            put(&mut self.places, u64::from(entry.place - place));
            place = entry.place;
        }
        self.entries.extend_from_slice(entries);
    }

    /// The two parts, not yet compressed. The writer is empty afterwards.
    pub fn finish(&mut self) -> [Vec<u8>; 2] {
        let frame = std::mem::take(self);
        let mut blocks = Vec::with_capacity(frame.blocks.len() + 10);
        put(&mut blocks, frame.block_count);
        blocks.extend_from_slice(&frame.blocks);
        let mut entries = Vec::with_capacity(frame.places.len() + 8 * frame.entries.len());
        put(&mut entries, frame.places.len() as u64);
        entries.extend_from_slice(&frame.places);
        put_column(&mut entries, frame.entries.iter().map(|entry| entry.what.0));
        put_column(&mut entries, frame.entries.iter().map(|entry| entry.count));
        put_column(&mut entries, frame.entries.iter().map(|entry| entry.offset));
        [blocks, entries]
    }
}

/// Numbers that there is room for from the start, at most.
const RESERVED_MAX: usize = 1 << 20;

/// Threads per shared piece of a clock, at most. Traces of fewer threads have smaller pieces: what is compared most often should fit a
/// cache.
const PIECE_MAX: u32 = 16;

/// The blocks of a frame with their clocks. Clocks share the pieces in which they do not differ from the one before.
#[derive(Default, Clone, Debug)]
pub struct Blocks {
    /// In order.
    pub blocks: Vec<Block>,
    /// Counts, as many a piece as `piece_bits` bits tell apart.
    counts: Vec<u32>,
    piece_bits: u32,
    pieces_each: usize,
    /// By clock and piece: the number of the piece. Nothing if clocks have one piece each, which then has the number of its clock.
    clocks: Vec<u32>,
    clock_count: usize,
}

impl Blocks {
    /// Decodes the first part of a frame of a trace with `threads` threads. Bytes that make no sense are an error
    /// that says what was expected.
    pub fn decode(bytes: &[u8], threads: u32) -> Result<Blocks, &'static str> {
        let mut cursor = Cursor::new(bytes);
        let piece = threads.next_power_of_two().min(PIECE_MAX);
        let mut decoded = Blocks {
            piece_bits: piece.trailing_zeros(),
            pieces_each: threads.div_ceil(piece) as usize,
            clock_count: 1,
            ..Blocks::default()
        };
        let count = count_of(&mut cursor, 5)?;
        // At most one clock a block, and few change in more than one piece. What is not used costs nothing, but to grow bit by
        // bit does. What is announced may be a lie.
        decoded.blocks.reserve_exact(count);
        decoded.counts.reserve_exact((count + 1) * piece as usize);
        decoded.counts.resize(piece as usize, 0);
        if decoded.pieces_each > 1 {
            let clocks = (count + 1).saturating_mul(decoded.pieces_each);
            decoded.clocks.reserve_exact(clocks.min(RESERVED_MAX));
            decoded.clocks.resize(decoded.pieces_each, 0);
        }
        let (mut number, mut start, mut posts) = (0u32, 0u64, 0u32);
        for _ in 0..count {
            let step = cursor.varint_u32()?;
            if step == 0 && !decoded.blocks.is_empty() {
                return Err("blocks in order");
            }
            number = number
                .checked_add(step)
                .ok_or("a block number of 32 bits")?;
            start = start
                .checked_add(cursor.varint()?)
                .ok_or("a position of 64 bits")?;
            posts = posts
                .checked_add(cursor.varint_u32()?)
                .ok_or("a count of 32 bits")?;
            let entries = cursor.varint_u32()?;
            decoded.clock_changes(&mut cursor, threads)?;
            decoded.blocks.push(Block {
                number,
                start,
                posts,
                clock: decoded.clock_count as u32 - 1,
                entries,
            });
        }
        match cursor.remaining() {
            0 => Ok(decoded),
            _ => Err("the end of the blocks"),
        }
    }

    fn clock_changes(&mut self, cursor: &mut Cursor, threads: u32) -> Result<(), Expected> {
        let changes = count_of(cursor, 2)?;
        if changes == 0 {
            return Ok(());
        }
        let own = self.clocks.len();
        if self.pieces_each > 1 {
            self.clocks.extend_from_within(own - self.pieces_each..);
        }
        self.clock_count += 1;
        let width = 1 << self.piece_bits;
        let (mut thread, mut fresh) = (0u64, usize::MAX);
        for _ in 0..changes {
            thread = thread
                .checked_add(cursor.varint()?)
                .ok_or("a thread number")?;
            if thread >= u64::from(threads) {
                return Err("a thread of the trace");
            }
            let (piece, slot) = (thread as usize / width, thread as usize % width);
            if piece != fresh {
                let new = self.counts.len();
                let old = match self.clocks.get_mut(own + piece) {
                    Some(number) => {
                        std::mem::replace(number, (new / width) as u32) as usize * width
                    }
                    None => new - width,
                };
                self.counts.extend_from_within(old..old + width);
                fresh = piece;
            }
            let last = self.counts.len() - width;
            let count = &mut self.counts[last + slot];
            *count = count
                .checked_add(cursor.varint_u32()?)
                .ok_or("a count of 32 bits")?;
        }
        Ok(())
    }

    /// How many posts of `thread` precede the blocks with this clock.
    #[inline]
    pub fn clock(&self, clock: u32, thread: u32) -> u32 {
        self.in_piece(self.piece(clock, thread), thread)
    }

    /// Where [`Blocks::clock`] finds its answer.
    #[inline]
    pub fn piece(&self, clock: u32, thread: u32) -> u32 {
        match self.pieces_each {
            1 => clock,
            each => self.clocks[clock as usize * each + (thread >> self.piece_bits) as usize],
        }
    }

    /// The count of a thread in a piece.
    #[inline]
    pub fn in_piece(&self, piece: u32, thread: u32) -> u32 {
        let slot = thread & ((1 << self.piece_bits) - 1);
        self.counts[((piece as usize) << self.piece_bits) + slot as usize]
    }

    /// All counts of a clock, by thread, piece after piece. The last piece may go on after the last thread, with zeros.
    #[inline]
    pub fn pieces(&self, clock: u32) -> impl Iterator<Item = &[u32]> {
        let width = 1 << self.piece_bits;
        (0..self.pieces_each).map(move |nth| {
            let piece = self.piece(clock, (nth * width) as u32);
            &self.counts[piece as usize * width..][..width]
        })
    }

    /// How many bytes it takes in memory, about.
    pub fn bytes(&self) -> u64 {
        (self.blocks.len() * size_of::<Block>() + self.counts.len() * 4 + self.clocks.len() * 4)
            as u64
    }
}

/// Goes through the second part of a frame. `wanted` is asked for every place, in order; where it answers something,
/// `each` is given that answer with the index of the block and the entry.
pub(crate) fn for_each_entry<W>(
    bytes: &[u8],
    blocks: &[Block],
    mut wanted: impl FnMut(u32) -> Option<W>,
    mut each: impl FnMut(W, usize, Entry),
) -> Result<(), Expected> {
    let mut cursor = Cursor::new(bytes);
    let length = cursor.count()?;
    let mut places = Cursor::new(cursor.bytes(length)?);
    let total: u64 = blocks.iter().map(|block| u64::from(block.entries)).sum();
    let total = usize::try_from(total).map_err(|_| "fewer entries")?;
    let columns = [
        Column::read(&mut cursor, total)?,
        Column::read(&mut cursor, total)?,
        Column::read(&mut cursor, total)?,
    ];
    if cursor.remaining() != 0 {
        return Err("the end of the entries");
    }
    let mut index = 0;
    for (nth, block) in blocks.iter().enumerate() {
        let mut place = 0u32;
        for _ in 0..block.entries {
            place = place
                .checked_add(places.varint_u32()?)
                .ok_or("a place of 32 bits")?;
            if let Some(want) = wanted(place) {
                each(want, nth, entry_at(&columns, place, index)?);
            }
            index += 1;
        }
    }
    match places.remaining() {
        0 => Ok(()),
        _ => Err("the end of the places"),
    }
}

#[inline(always)]
fn entry_at(
    [whats, counts, offsets]: &[Column; 3],
    place: u32,
    index: usize,
) -> Result<Entry, Expected> {
    let what = What(whats.get(index));
    if !what.is_valid() {
        return Err("a kind of access");
    }
    Ok(Entry {
        place,
        what,
        count: counts.get(index),
        offset: offsets.get(index),
    })
}

/// Decodes both parts of a frame to the end and answers with the number of accesses, for tests of the decoder: any bytes
/// give an answer.
pub fn check(blocks: &[u8], entries: &[u8], threads: u32) -> Result<u64, &'static str> {
    let decoded = Blocks::decode(blocks, threads)?;
    let mut accesses = 0u64;
    for block in &decoded.blocks {
        for thread in 0..threads.min(64) {
            std::hint::black_box(decoded.clock(block.clock, thread));
        }
    }
    for_each_entry(entries, &decoded.blocks, Some, |_, _, entry| {
        accesses = accesses.wrapping_add(u64::from(entry.count));
    })?;
    Ok(accesses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_detect::AccessKind;
    use verdict_events::SiteId;

    #[test]
    fn what_is_written_is_read() {
        let entry = |place, site, count, offset| Entry {
            place,
            what: What::new(SiteId(site), AccessKind::Write),
            count,
            offset,
        };
        let blocks = [
            (
                3,
                10,
                0,
                vec![0, 0, 2],
                vec![entry(1, 7, 1, 0), entry(1, 9, 300, 2)],
            ),
            (4, 700, 2, vec![0, 0, 2], vec![]),
            (
                90,
                1 << 40,
                3,
                vec![5, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8],
                vec![entry(70_000, 1 << 20, 2, 1 << 30)],
            ),
        ];
        let mut writer = FrameWriter::default();
        for (number, start, posts, clock, entries) in &blocks {
            writer.push(*number, *start, *posts, clock, entries);
        }
        let [first, second] = writer.finish();
        let decoded = Blocks::decode(&first, 18).unwrap();
        for (block, (number, start, posts, clock, entries)) in decoded.blocks.iter().zip(&blocks) {
            assert_eq!(
                (block.number, block.start, block.posts),
                (*number, *start, *posts)
            );
            assert_eq!(block.entries as usize, entries.len());
            for thread in 0..18 {
                let want = clock.get(thread as usize).copied().unwrap_or(0);
                assert_eq!(decoded.clock(block.clock, thread), want, "thread {thread}");
            }
        }
        let mut read = Vec::new();
        for_each_entry(&second, &decoded.blocks, Some, |_, block, entry| {
            read.push((block, entry));
        })
        .unwrap();
        let written: Vec<(usize, Entry)> = (blocks.iter().enumerate())
            .flat_map(|(nth, block)| block.4.iter().map(move |&entry| (nth, entry)))
            .collect();
        assert_eq!(read, written);
    }

    #[test]
    fn any_cut_is_an_error() {
        let mut writer = FrameWriter::default();
        let entry = Entry {
            place: 500,
            what: What(9),
            count: 1,
            offset: 0,
        };
        writer.push(1, 1, 0, &[0, 3], &[entry; 3]);
        let [first, second] = writer.finish();
        assert_eq!(check(&first, &second, 2), Ok(3));
        for length in 0..first.len() {
            assert!(check(&first[..length], &second, 2).is_err());
        }
        for length in 0..second.len() {
            assert!(check(&first, &second[..length], 2).is_err());
        }
    }
}
