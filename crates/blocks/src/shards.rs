//! Tasks by location: records are put where their units belong while files are read, then looked at unit by unit.

use std::ops::Range;

use crate::BlocksError;
use crate::index::Buffers;
use crate::kernel::Kernel;
use crate::load::{Covers, frames_of, read_records};
use crate::plan::{Task, Work};
use crate::record::{NONE, Record};
use crate::run::{Runner, TaskResult};

/// Records per chunk: growing a list copies nothing, and an almost empty one wastes little.
const CHUNK: usize = 2048;

/// Records for one task, as they come.
#[derive(Default, Clone)]
struct Bucket {
    open: Vec<Record>,
    full: Vec<Vec<Record>>,
}

impl Bucket {
    #[inline]
    fn push(&mut self, record: Record) {
        if self.open.len() == self.open.capacity() {
            self.next_chunk();
        }
        self.open.push(record);
    }

    #[cold]
    fn next_chunk(&mut self) {
        let open = std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK));
        self.full.push(open);
    }

    fn take(&mut self) -> impl Iterator<Item = Vec<Record>> + use<> {
        let Bucket { open, full } = std::mem::take(self);
        full.into_iter().chain([open])
    }
}

/// Which shard of a round a unit is in.
///
/// A table of all units would not fit a cache beside everything else that reading looks up. Shards are ranges, so one of some units
/// says where to look on.
struct ShardOf {
    /// By group of units: the first shard that ends after the first of them.
    first: Vec<u32>,
    /// By shard: where it begins and ends.
    ranges: Vec<Range<u32>>,
}

/// Units of a group: often accessed ones lie together and are tasks of their own.
const GROUP: u32 = 8;

impl ShardOf {
    /// Of ascending shards.
    fn new(shards: &[Shard], units: usize) -> ShardOf {
        let ranges: Vec<Range<u32>> = shards.iter().map(|shard| shard.from..shard.to).collect();
        let groups = (0..units as u32).step_by(GROUP as usize);
        let first = |start: u32| ranges.partition_point(|range| range.end <= start) as u32;
        let first = groups.map(first).collect();
        ShardOf { first, ranges }
    }

    #[inline(always)]
    fn get(&self, unit: u32) -> Option<usize> {
        let mut nth = self.first[(unit / GROUP) as usize] as usize;
        while self.ranges.get(nth)?.end <= unit {
            nth += 1;
        }
        (self.ranges[nth].start <= unit).then_some(nth)
    }
}

struct Shard<'a> {
    task: &'a Task,
    threads: &'a [u32],
    from: u32,
    to: u32,
    records: u64,
}

pub(crate) fn run(runner: &Runner, tasks: &[&Task]) -> Result<(), BlocksError> {
    let mut shards: Vec<Shard> = tasks.iter().map(|task| shard(runner, task)).collect();
    shards.sort_by_key(|shard| (shard.threads, shard.from, shard.to));
    // Tasks may come in any order, and more than once.
    let apart = |a: &Shard, b: &Shard| a.threads == b.threads && a.to <= b.from;
    for together in shards.chunk_by(apart) {
        run_rounds(runner, together)?;
    }
    Ok(())
}

fn shard<'a>(runner: &Runner, task: &'a Task) -> Shard<'a> {
    let Work::Locations {
        from,
        to,
        ref threads,
    } = task.work
    else {
        unreachable!("only tasks by location come here")
    };
    let units = &runner.index.units()[from as usize..to as usize];
    Shard {
        task,
        threads,
        from,
        to,
        records: units.iter().map(|unit| unit.records).sum(),
    }
}

/// `shards` are of the same threads and ascend, none in another.
fn run_rounds(runner: &Runner, shards: &[Shard]) -> Result<(), BlocksError> {
    let largest = shards.iter().map(|shard| shard.records).max().unwrap_or(0);
    let records_max = runner.records_max(largest)?;
    let mut rest = shards;
    while !rest.is_empty() {
        let mut held = 0;
        let fits = |shard: &&Shard| {
            held += shard.records;
            held <= records_max
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (round, later) = rest.split_at(count);
        run_round(runner, round)?;
        rest = later;
    }
    Ok(())
}

fn run_round(runner: &Runner, shards: &[Shard]) -> Result<(), BlocksError> {
    let index = runner.index;
    let shard_of = ShardOf::new(shards, index.units().len());
    let covers = Covers::new(&index.shared, index.place_count, |unit| {
        shard_of.get(unit).is_some()
    });
    let frames = frames_of(index, shards[0].threads);
    let read = |(buckets, buffers): &mut (Vec<Bucket>, Buffers), job: usize| {
        read_records(
            runner.store,
            index,
            runner.order,
            frames[job],
            &covers,
            buffers,
            |record| {
                let shard = shard_of.get(record.unit).expect("covers say so");
                buckets[shard].push(record);
            },
        )
    };
    let empty = || (vec![Bucket::default(); shards.len()], Buffers::default());
    let mut read = runner.options.workers.run(frames.len(), empty, read)?;
    // One list of chunks for each shard, which whoever works on the shard takes.
    let gathered: Vec<std::sync::Mutex<Vec<Vec<Record>>>> = (0..shards.len())
        .map(|nth| {
            let chunks = read.iter_mut().flat_map(|(buckets, _)| buckets[nth].take());
            std::sync::Mutex::new(chunks.collect())
        })
        .collect();
    drop(read);
    let mut largest_first: Vec<usize> = (0..shards.len()).collect();
    largest_first.sort_by_key(|&nth| std::cmp::Reverse(shards[nth].records));
    let start = || {
        let kernel = Kernel::new(runner.order, runner.order.threads());
        (kernel, ByUnit::default())
    };
    let work = |(kernel, by_unit): &mut (Kernel, ByUnit), job: usize| {
        let nth = largest_first[job];
        let chunks = std::mem::take(&mut *gathered[nth].lock().expect("nobody panics with it"));
        by_unit.fill(&shards[nth], &chunks);
        drop(chunks);
        let result = look(runner, &shards[nth], by_unit, kernel);
        (runner.done)(shards[nth].task, result)
    };
    runner.options.workers.run(shards.len(), start, work)?;
    Ok(())
}

fn look(runner: &Runner, shard: &Shard, by_unit: &mut ByUnit, kernel: &mut Kernel) -> TaskResult {
    let mut result = TaskResult::new(runner.options.by);
    let mut start = 0;
    for (unit, &end) in (shard.from..shard.to).zip(&by_unit.ends) {
        let of_unit = &mut by_unit.records[start..end];
        start = end;
        let key = |record: &Record| u64::from(record.block) << 32 | u64::from(record.offset);
        of_unit.sort_unstable_by_key(key);
        let bytes = &runner.index.units()[unit as usize];
        if kernel.unit(of_unit, bytes.start, &mut result.races) {
            result.racy.push(unit);
        }
    }
    result
}

/// The records of one shard after the other. Keeps its memory, as [`Buffers`] do.
#[derive(Default)]
struct ByUnit {
    records: Vec<Record>,
    /// Where those of each unit end.
    ends: Vec<usize>,
}

impl ByUnit {
    /// Puts the records of a shard in order of their units.
    fn fill(&mut self, shard: &Shard, chunks: &[Vec<Record>]) {
        let ByUnit { records, ends } = self;
        ends.clear();
        ends.resize((shard.to - shard.from) as usize, 0);
        for record in chunks.iter().flatten() {
            ends[(record.unit - shard.from) as usize] += 1;
        }
        let mut total = 0;
        for end in ends.iter_mut() {
            let count = *end;
            *end = total;
            total += count;
        }
        let nothing = Record {
            unit: NONE,
            block: 0,
            what: crate::record::What(0),
            count: 0,
            offset: 0,
            previous: NONE,
        };
        // What is left from before is written over: only what is longer than that is made.
        records.resize(total, nothing);
        // What is a start now has moved on to the end when all are placed.
        for record in chunks.iter().flatten() {
            let at = &mut ends[(record.unit - shard.from) as usize];
            records[*at] = *record;
            *at += 1;
        }
    }
}
