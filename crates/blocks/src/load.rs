//! Reads block files: all blocks with their clocks, then the entries that somebody wants.

use crate::BlocksError;
use crate::frame::{Blocks, for_each_entry};
use crate::index::{Buffers, Index, file_name};
use crate::order::Order;
use crate::parallel::Workers;
use crate::record::{NONE, Record};
use crate::store::Store;
use crate::units::Shared;

/// A frame of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameId {
    pub thread: u32,
    pub frame: u32,
}

/// All frames of some threads, in order.
pub(crate) fn frames_of(index: &Index, threads: &[u32]) -> Vec<FrameId> {
    let of = |&thread: &u32| {
        let count = index.threads[thread as usize].frames.len() as u32;
        (0..count).map(move |frame| FrameId { thread, frame })
    };
    threads.iter().flat_map(of).collect()
}

/// Reads the blocks of some threads, without their entries.
pub fn read_order(
    store: &dyn Store,
    index: &Index,
    threads: &[u32],
    workers: &Workers,
) -> Result<Order, BlocksError> {
    let frames = frames_of(index, threads);
    let read = |(list, buffers): &mut (Vec<(usize, Blocks)>, Buffers), job: usize| {
        list.push((job, read_blocks(store, index, frames[job], buffers)?));
        Ok(())
    };
    let start = <(Vec<(usize, Blocks)>, Buffers)>::default;
    let lists = workers.run(frames.len(), start, read)?;
    let mut read: Vec<(usize, Blocks)> = lists.into_iter().flat_map(|(list, _)| list).collect();
    read.sort_unstable_by_key(|&(job, _)| job);
    let read = read
        .into_iter()
        .map(|(job, blocks)| (frames[job], blocks))
        .collect();
    Order::new(index, read, workers).ok_or_else(|| BlocksError::Damaged {
        file: store.shown(&file_name(threads.first().copied().unwrap_or(0))),
        offset: 0,
        problem: "blocks are out of order".to_owned(),
    })
}

fn read_blocks(
    store: &dyn Store,
    index: &Index,
    id: FrameId,
    buffers: &mut Buffers,
) -> Result<Blocks, BlocksError> {
    let frame = &index.threads[id.thread as usize].frames[id.frame as usize];
    let bytes = index.read_part(store, id.thread, frame, 0, buffers)?;
    let decoded = Blocks::decode(bytes, index.threads.len() as u32);
    let damaged = |expected: &str| BlocksError::Damaged {
        file: store.shown(&file_name(id.thread)),
        offset: frame.offset,
        problem: format!("expected {expected}"),
    };
    let blocks = decoded.map_err(damaged)?;
    let entries: u64 = blocks
        .blocks
        .iter()
        .map(|block| u64::from(block.entries))
        .sum();
    if blocks.blocks.len() as u64 != frame.blocks || entries != frame.entries {
        return Err(damaged("the blocks that the index announces"));
    }
    Ok(blocks)
}

/// From places to the units they cover.
pub(crate) struct Covers {
    place_count: u64,
    /// By place, a bit each: whether it covers any. Most cover none, and this fits a second-level cache.
    any: Vec<u64>,
    /// By word of `any`: how many bits are set before it.
    ranks: Vec<u32>,
    /// By place that covers any: a unit, or [`LIST`] and an index into `lists`.
    units: Vec<u32>,
    /// Units, each with the one before it if that touches it.
    lists: Vec<Vec<(u32, u32)>>,
}

const LIST: u32 = 1 << 31;

impl Covers {
    /// Only of units that `wanted` says.
    pub fn new(shared: &Shared, place_count: u64, wanted: impl Fn(u32) -> bool) -> Covers {
        let words = place_count.div_ceil(64) as usize;
        let mut covers = Covers {
            place_count,
            any: vec![0; words],
            ranks: Vec::with_capacity(words),
            units: Vec::with_capacity(shared.covers.len()),
            lists: Vec::new(),
        };
        for of_place in shared.by_place() {
            let standing = match of_place {
                &[(_, unit)] if wanted(unit) => unit,
                [_] => continue,
                _ => {
                    let mut list = linked(shared, of_place);
                    list.retain(|&(unit, _)| wanted(unit));
                    if list.is_empty() {
                        continue;
                    }
                    covers.lists.push(list);
                    LIST | (covers.lists.len() - 1) as u32
                }
            };
            let place = of_place[0].0;
            covers.any[place as usize / 64] |= 1 << (place % 64);
            covers.units.push(standing);
        }
        let mut before = 0;
        for word in &covers.any {
            covers.ranks.push(before);
            before += word.count_ones();
        }
        covers
    }

    /// What stands for the units that a place covers, if there are any and the place is one of those that there are.
    #[inline(always)]
    fn get(&self, place: u32) -> Option<u32> {
        let word = place as usize / 64;
        let bits = *self.any.get(word)?;
        let own = 1 << (place % 64);
        if bits & own == 0 {
            return None;
        }
        let rank = self.ranks[word] + (bits & (own - 1)).count_ones();
        Some(self.units[rank as usize])
    }
}

fn linked(shared: &Shared, of_place: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut list: Vec<(u32, u32)> = Vec::with_capacity(of_place.len());
    for &(_, unit) in of_place {
        let touches = |previous: u32| {
            shared.units[previous as usize].end == shared.units[unit as usize].start
        };
        let previous = match list.last() {
            Some(&(previous, _)) if touches(previous) => previous,
            _ => NONE,
        };
        list.push((unit, previous));
    }
    list
}

/// Reads the entries of a frame and hands out what `covers` covers.
pub(crate) fn read_records(
    store: &dyn Store,
    index: &Index,
    order: &Order,
    id: FrameId,
    covers: &Covers,
    buffers: &mut Buffers,
    mut each: impl FnMut(Record),
) -> Result<(), BlocksError> {
    let frame = &index.threads[id.thread as usize].frames[id.frame as usize];
    let bytes = index.read_part(store, id.thread, frame, 1, buffers)?;
    let blocks = &order.frame(id).blocks;
    let places = covers.place_count;
    let mut outside = false;
    let wanted = |place: u32| {
        outside |= u64::from(place) >= places;
        covers.get(place)
    };
    let decoded = for_each_entry(bytes, blocks, wanted, |found, nth, entry| {
        let record = |unit: u32, previous: u32| Record {
            unit,
            block: blocks[nth].number,
            what: entry.what,
            count: entry.count,
            offset: entry.offset,
            previous,
        };
        if found & LIST == 0 {
            each(record(found, NONE));
        } else {
            for &(unit, previous) in &covers.lists[(found ^ LIST) as usize] {
                each(record(unit, previous));
            }
        }
    });
    let problem = match decoded {
        Ok(()) if !outside => return Ok(()),
        Ok(()) => format!("expected one of {places} places"),
        Err(expected) => format!("expected {expected}"),
    };
    Err(BlocksError::Damaged {
        file: store.shown(&file_name(id.thread)),
        offset: frame.offset,
        problem,
    })
}
