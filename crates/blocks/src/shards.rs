//! Tasks by location: records are put where their units belong while files are read, then looked at unit by unit.

use crate::BlocksError;
use crate::index::Buffers;
use crate::kernel::Kernel;
use crate::load::{Covers, frames_of, read_records};
use crate::parallel::in_parallel;
use crate::plan::{Task, Work};
use crate::record::{NONE, Record};
use crate::run::{Runner, TaskResult};

/// Records per chunk: growing a list copies nothing, and an almost empty one wastes little.
const CHUNK: usize = 512;

/// Records for one task, as they come.
#[derive(Default, Clone)]
struct Bucket {
    chunks: Vec<Vec<Record>>,
}

impl Bucket {
    #[inline]
    fn push(&mut self, record: Record) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(record),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(record);
                self.chunks.push(chunk);
            }
        }
    }
}

struct Shard<'a> {
    task: &'a Task,
    from: u32,
    to: u32,
    records: u64,
}

pub(crate) fn run(runner: &Runner, tasks: &[&Task]) -> Result<(), BlocksError> {
    let mut tasks = tasks;
    while let Some(first) = tasks.first() {
        let Work::Locations { threads, .. } = &first.work else {
            unreachable!("only tasks by location come here")
        };
        let same = |task: &&&Task| matches!(&task.work, Work::Locations { threads: others, .. } if others == threads);
        let together = tasks.iter().take_while(same).count();
        let shards: Vec<Shard> = tasks[..together]
            .iter()
            .map(|task| shard(runner, task))
            .collect();
        run_rounds(runner, &shards, threads)?;
        tasks = &tasks[together..];
    }
    Ok(())
}

fn shard<'a>(runner: &Runner, task: &'a Task) -> Shard<'a> {
    let Work::Locations { from, to, .. } = task.work else {
        unreachable!("only tasks by location come here")
    };
    let units = &runner.index.units()[from as usize..to as usize];
    Shard {
        task,
        from,
        to,
        records: units.iter().map(|unit| unit.records).sum(),
    }
}

fn run_rounds(runner: &Runner, shards: &[Shard], threads: &[u32]) -> Result<(), BlocksError> {
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
        run_round(runner, round, threads)?;
        rest = later;
    }
    Ok(())
}

fn run_round(runner: &Runner, shards: &[Shard], threads: &[u32]) -> Result<(), BlocksError> {
    let index = runner.index;
    let mut shard_of = vec![NONE; index.units().len()];
    for (nth, shard) in shards.iter().enumerate() {
        shard_of[shard.from as usize..shard.to as usize].fill(nth as u32);
    }
    let covers = Covers::new(&index.shared, index.place_count, |unit| {
        shard_of[unit as usize] != NONE
    });
    let frames = frames_of(index, threads);
    let read = |(buckets, buffers): &mut (Vec<Bucket>, Buffers), job: usize| {
        read_records(
            runner.store,
            index,
            runner.order,
            frames[job],
            &covers,
            buffers,
            |record| buckets[shard_of[record.unit as usize] as usize].push(record),
        )
    };
    let empty = || (vec![Bucket::default(); shards.len()], Buffers::default());
    let mut read = in_parallel(runner.options.workers, frames.len(), empty, read)?;
    // One list of chunks for each shard, which whoever works on the shard takes.
    let gathered: Vec<std::sync::Mutex<Vec<Vec<Record>>>> = (0..shards.len())
        .map(|nth| {
            let chunks = read
                .iter_mut()
                .flat_map(|(buckets, _)| std::mem::take(&mut buckets[nth].chunks));
            std::sync::Mutex::new(chunks.collect())
        })
        .collect();
    drop(read);
    let mut largest_first: Vec<usize> = (0..shards.len()).collect();
    largest_first.sort_by_key(|&nth| std::cmp::Reverse(shards[nth].records));
    let start = || Kernel::new(runner.order, runner.order.threads());
    let work = |kernel: &mut Kernel, job: usize| {
        let nth = largest_first[job];
        let chunks = std::mem::take(&mut *gathered[nth].lock().expect("nobody panics with it"));
        let result = look(runner, &shards[nth], &chunks, kernel);
        (runner.done)(shards[nth].task, result)
    };
    in_parallel(runner.options.workers, shards.len(), start, work)?;
    Ok(())
}

fn look(runner: &Runner, shard: &Shard, chunks: &[Vec<Record>], kernel: &mut Kernel) -> TaskResult {
    let mut result = TaskResult::new(runner.options.by);
    let (mut records, ends) = by_unit(shard, chunks);
    let mut start = 0;
    for (unit, &end) in (shard.from..shard.to).zip(&ends) {
        let of_unit = &mut records[start..end];
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

/// All records, by unit, and where those of each unit end.
fn by_unit(shard: &Shard, chunks: &[Vec<Record>]) -> (Vec<Record>, Vec<usize>) {
    let mut ends = vec![0usize; (shard.to - shard.from) as usize];
    for record in chunks.iter().flatten() {
        ends[(record.unit - shard.from) as usize] += 1;
    }
    let mut total = 0;
    for end in &mut ends {
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
    let mut records = vec![nothing; total];
    // What is a start now has moved on to the end when all are placed.
    for record in chunks.iter().flatten() {
        let at = &mut ends[(record.unit - shard.from) as usize];
        records[*at] = *record;
        *at += 1;
    }
    (records, ends)
}
