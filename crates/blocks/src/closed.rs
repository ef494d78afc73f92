//! Blocks that have ended, on their way to the files of their threads.
//!
//! What is left to do with them (sorting, packing, compressing, writing) needs nothing of what goes on in the trace, so a
//! thread of its own does it: blocks are handed over by the thousand, in few lists that are used again.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::BlocksError;
use crate::frame::{Entry, FrameWriter};
use crate::index::{self, FrameInfo, PartInfo, ThreadInfo};
use crate::store::Sink;

/// A frame is complete when it has so many blocks, even of few entries.
const FRAME_BLOCKS: u64 = 1 << 14;
/// A list is handed over when it has so many entries: 2^15 x 16 bytes still fit a second-level cache.
const LIST_ENTRIES: usize = 1 << 15;
/// Or so many blocks, each with a clock.
const LIST_BLOCKS: usize = 1 << 10;
/// Lists that may wait.
const LISTS_WAITING: usize = 2;

/// A block that has ended.
pub(crate) struct Closed {
    pub thread: u32,
    pub number: u32,
    pub start: u64,
    pub posts: u32,
    /// How many numbers its clock has, and how many entries it has.
    pub clock: usize,
    pub entries: usize,
    /// Entries after which a frame of its thread is complete.
    pub frame_entries: usize,
}

/// Some of them, with their clocks and entries one after the other.
#[derive(Default)]
pub(crate) struct ClosedList {
    pub blocks: Vec<Closed>,
    pub clocks: Vec<u32>,
    pub entries: Vec<Entry>,
}

impl ClosedList {
    fn clear(&mut self) {
        self.blocks.clear();
        self.clocks.clear();
        self.entries.clear();
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= LIST_ENTRIES || self.blocks.len() >= LIST_BLOCKS
    }
}

/// The end of the way where blocks come from.
pub(crate) struct Outlet {
    pub list: ClosedList,
    full: SyncSender<ClosedList>,
    used: Receiver<ClosedList>,
}

/// Whoever should write has stopped, and knows why.
pub(crate) struct WriterStopped;

/// Both ends.
pub(crate) fn way() -> (Outlet, Inlet) {
    let (full, lists) = sync_channel(LISTS_WAITING);
    let (back, used) = sync_channel(LISTS_WAITING + 1);
    let list = ClosedList::default();
    (Outlet { list, full, used }, Inlet { lists, back })
}

impl Outlet {
    /// Hands the list over if it is full.
    #[inline]
    pub fn flush_full(&mut self) -> Result<(), WriterStopped> {
        match self.list.is_full() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub fn flush(&mut self) -> Result<(), WriterStopped> {
        let fresh = self.used.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.list, fresh);
        self.full.send(full).map_err(|_| WriterStopped)
    }
}

/// The end where they are written.
pub(crate) struct Inlet {
    lists: Receiver<ClosedList>,
    back: SyncSender<ClosedList>,
}

/// What was written.
#[derive(Default)]
pub(crate) struct Written {
    /// By thread.
    pub threads: Vec<ThreadInfo>,
    pub entries: u64,
}

/// Writes whatever comes, until no more does.
pub(crate) fn write_all(inlet: &Inlet, sink: &mut dyn Sink) -> Result<Written, BlocksError> {
    let mut writer = Writer {
        sink,
        frames: Vec::new(),
        written: Written::default(),
    };
    while let Ok(mut list) = inlet.lists.recv() {
        writer.list(&mut list)?;
        list.clear();
        // With more lists back than fit, or nobody there any more, this one is dropped.
        let _ = inlet.back.try_send(list);
    }
    for thread in 0..writer.frames.len() {
        writer.frame(thread)?;
    }
    Ok(writer.written)
}

struct Writer<'a> {
    sink: &'a mut dyn Sink,
    /// By thread.
    frames: Vec<FrameWriter>,
    written: Written,
}

impl Writer<'_> {
    fn list(&mut self, list: &mut ClosedList) -> Result<(), BlocksError> {
        let (mut clocks, mut entries) = (&list.clocks[..], &mut list.entries[..]);
        for block in &list.blocks {
            let (clock, later_clocks) = clocks.split_at(block.clock);
            let (own, later_entries) = entries.split_at_mut(block.entries);
            (clocks, entries) = (later_clocks, later_entries);
            self.block(block, clock, own)?;
        }
        Ok(())
    }

    fn block(
        &mut self,
        block: &Closed,
        clock: &[u32],
        entries: &mut [Entry],
    ) -> Result<(), BlocksError> {
        let thread = block.thread as usize;
        if thread >= self.frames.len() {
            self.frames.resize_with(thread + 1, FrameWriter::default);
            self.written
                .threads
                .resize_with(thread + 1, ThreadInfo::default);
        }
        let entries = merge_duplicates(entries);
        self.written.entries += entries.len() as u64;
        let frame = &mut self.frames[thread];
        frame.push(block.number, block.start, block.posts, clock, entries);
        if frame.blocks() >= FRAME_BLOCKS || frame.entries() >= block.frame_entries {
            self.frame(thread)?;
        }
        Ok(())
    }

    fn frame(&mut self, thread: usize) -> Result<(), BlocksError> {
        let frame = &mut self.frames[thread];
        let (blocks, entries) = (frame.blocks(), frame.entries() as u64);
        if blocks == 0 {
            return Ok(());
        }
        let parts = frame.finish();
        let name = index::file_name(thread as u32);
        let file = &mut self.written.threads[thread];
        if file.length == 0 {
            let start = index::file_start(thread as u32);
            self.sink.append(&name, &start)?;
            file.length = start.len() as u64;
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
        file.frames.push(FrameInfo {
            offset: file.length,
            blocks,
            entries,
            parts: infos,
        });
        file.length += bytes.len() as u64;
        Ok(())
    }
}

/// Sorts by place, and makes one entry of those that differ in time only.
fn merge_duplicates(entries: &mut [Entry]) -> &[Entry] {
    entries.sort_unstable_by_key(|entry| {
        let what = u64::from(entry.place) << 32 | u64::from(entry.what.0);
        u128::from(what) << 32 | u128::from(entry.offset)
    });
    let mut kept = 0;
    for next in 1..entries.len() {
        let (entry, last) = (entries[next], &mut entries[kept]);
        let sum = last.count.checked_add(entry.count);
        match sum {
            Some(sum) if (entry.place, entry.what) == (last.place, last.what) => last.count = sum,
            _ => {
                kept += 1;
                entries[kept] = entry;
            }
        }
    }
    &entries[..entries.len().min(kept + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;

    #[test]
    fn entries_that_differ_in_time_only_become_one() {
        let entry = |place, what, count, offset| Entry {
            place,
            what: What(what),
            count,
            offset,
        };
        let mut entries = [
            entry(2, 1, 1, 5),
            entry(1, 9, 2, 6),
            entry(2, 1, 3, 2),
            entry(1, 1, u32::MAX, 1),
            entry(1, 1, 1, 4),
        ];
        let wanted = [
            entry(1, 1, u32::MAX, 1),
            entry(1, 1, 1, 4),
            entry(1, 9, 2, 6),
            entry(2, 1, 4, 2),
        ];
        assert_eq!(merge_duplicates(&mut entries), wanted);
        assert_eq!(merge_duplicates(&mut []), []);
    }
}
