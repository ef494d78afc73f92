//! Tasks by pairs of threads (BlockRace, algorithms 3 and 4).
//!
//! Both threads' records are brought into order of their units, and the units that both have are found by intersecting
//! the two lists: bit by bit over all units before anything is sorted, then in step, and where one list is much
//! shorter than the other, by leaps that double.

use std::ops::Range;

use crate::BlocksError;
use crate::index::Buffers;
use crate::kernel::Kernel;
use crate::load::{Covers, frames_of, read_records};
use crate::order::Order;
use crate::plan::{Task, Work};
use crate::record::Record;
use crate::run::{Runner, TaskResult};

pub(crate) fn run(runner: &Runner, tasks: &[&Task]) -> Result<(), BlocksError> {
    if tasks.is_empty() {
        return Ok(());
    }
    let mut threads: Vec<u32> = tasks.iter().flat_map(|task| pair(task)).collect();
    threads.sort_unstable();
    threads.dedup();
    let rounds = rounds(runner)?;
    let results: Vec<std::sync::Mutex<TaskResult>> = tasks
        .iter()
        .map(|_| std::sync::Mutex::new(TaskResult::new(runner.options.by)))
        .collect();
    let last = rounds.len() - 1;
    for (nth, units) in rounds.into_iter().enumerate() {
        let loaded = load(runner, &threads, units)?;
        let start = || Kernel::new(runner.order, runner.order.threads());
        let work = |kernel: &mut Kernel, job: usize| {
            let mut result = results[job].lock().expect("nobody panics with it");
            look(runner, tasks[job], &loaded, kernel, &mut result);
            if nth < last {
                return Ok(());
            }
            let result = std::mem::replace(&mut *result, TaskResult::new(runner.options.by));
            (runner.done)(tasks[job], result)
        };
        runner.options.workers.run(tasks.len(), start, work)?;
    }
    Ok(())
}

fn pair(task: &Task) -> [u32; 2] {
    match task.work {
        Work::Pair { one, other, .. } => [one, other],
        Work::Locations { .. } => unreachable!("only tasks by pairs come here"),
    }
}

/// Ranges of units whose records fit the memory that is allowed. At least one.
fn rounds(runner: &Runner) -> Result<Vec<Range<u32>>, BlocksError> {
    let units = runner.index.units();
    let largest = units.iter().map(|unit| unit.records).max().unwrap_or(0);
    let records_max = runner.records_max(largest)?;
    let mut rounds = Vec::new();
    let (mut from, mut held) = (0, 0);
    for (number, unit) in units.iter().enumerate() {
        if held > 0 && held + unit.records > records_max {
            rounds.push(from..number as u32);
            (from, held) = (number as u32, 0);
        }
        held += unit.records;
    }
    rounds.push(from..units.len() as u32);
    Ok(rounds)
}

/// The records of one thread in a round, in order of blocks.
#[derive(Default)]
struct Loaded {
    records: Vec<Record>,
    /// A bit per unit of the round: touched, written.
    touched: Vec<u64>,
    written: Vec<u64>,
}

/// What a round has loaded, by thread.
struct Round {
    first_unit: u32,
    threads: Vec<Loaded>,
}

fn load(runner: &Runner, threads: &[u32], units: Range<u32>) -> Result<Round, BlocksError> {
    let index = runner.index;
    let covers = Covers::new(&index.shared, index.place_count, |unit| {
        units.contains(&unit)
    });
    let frames = frames_of(index, threads);
    let read = |(lists, buffers): &mut (Vec<(usize, Vec<Record>)>, Buffers), job: usize| {
        let mut records = Vec::new();
        let each = |record| records.push(record);
        read_records(
            runner.store,
            index,
            runner.order,
            frames[job],
            &covers,
            buffers,
            each,
        )?;
        lists.push((job, records));
        Ok(())
    };
    let start = <(Vec<(usize, Vec<Record>)>, Buffers)>::default;
    let lists = runner.options.workers.run(frames.len(), start, read)?;
    let lists = lists.into_iter().flat_map(|(lists, _)| lists);
    let mut lists: Vec<(usize, Vec<Record>)> = lists.collect();
    lists.sort_unstable_by_key(|&(job, _)| job);
    let mut round = Round {
        first_unit: units.start,
        threads: Vec::new(),
    };
    round
        .threads
        .resize_with(index.threads.len(), Loaded::default);
    let words = units.len().div_ceil(64);
    for &thread in threads {
        let loaded = &mut round.threads[thread as usize];
        loaded.touched = vec![0; words];
        loaded.written = vec![0; words];
    }
    for (job, records) in lists {
        let loaded = &mut round.threads[frames[job].thread as usize];
        for record in &records {
            let bit = (record.unit - units.start) as usize;
            loaded.touched[bit / 64] |= 1 << (bit % 64);
            if record.what.kind().is_write() {
                loaded.written[bit / 64] |= 1 << (bit % 64);
            }
        }
        loaded.records.extend(records);
    }
    Ok(round)
}

fn look(runner: &Runner, task: &Task, round: &Round, kernel: &mut Kernel, result: &mut TaskResult) {
    let Work::Pair {
        one,
        other,
        from,
        to,
    } = task.work
    else {
        unreachable!("only tasks by pairs come here")
    };
    let [a, b] = [one, other].map(|thread| &round.threads[thread as usize]);
    let common = common_units(a, b);
    if common.iter().all(|&word| word == 0) {
        return;
    }
    let wanted = |record: &&Record| {
        let bit = (record.unit - round.first_unit) as usize;
        common[bit / 64] >> (bit % 64) & 1 == 1
    };
    let [own, theirs] = ranges(runner.order, [one, other], [from, to], [a, b]);
    let mut own: Vec<Record> = a.records[own].iter().filter(wanted).copied().collect();
    let mut theirs: Vec<Record> = b.records[theirs].iter().filter(wanted).copied().collect();
    for records in [&mut own, &mut theirs] {
        records.sort_unstable_by_key(|record| (record.unit, record.block, record.offset));
    }
    for_each_common(&own, &theirs, |own, theirs| {
        let unit = own[0].unit;
        let start = runner.index.units()[unit as usize].start;
        if kernel.pair(own, theirs, start, &mut result.races) {
            result.racy.push(unit);
        }
    });
    result.racy.sort_unstable();
    result.racy.dedup();
}

/// Units that both touch and one writes, as bits.
fn common_units(a: &Loaded, b: &Loaded) -> Vec<u64> {
    let touched = a.touched.iter().zip(&b.touched);
    let written = a.written.iter().zip(&b.written);
    touched
        .zip(written)
        .map(|((a, b), (c, d))| a & b & (c | d))
        .collect()
}

/// The records of a range of blocks of the one thread, and those of the other that may be unordered with them.
fn ranges(
    order: &Order,
    [one, other]: [u32; 2],
    [from, to]: [u32; 2],
    [a, b]: [&Loaded; 2],
) -> [Range<usize>; 2] {
    let blocks = &order.blocks_of(one)[from as usize..to as usize];
    let (Some(&(first, _)), Some(&(last, _))) = (blocks.first(), blocks.last()) else {
        return [0..0, 0..0];
    };
    let own = a.records.partition_point(|record| record.block < first)
        ..a.records.partition_point(|record| record.block <= last);
    let (known, posts) = (order.known(first, other), order.posts(last));
    let low = b
        .records
        .partition_point(|record| order.posts(record.block) < known);
    let high = b
        .records
        .partition_point(|record| order.known(record.block, one) <= posts);
    [own, low..high.max(low)]
}

/// Where one list is this many times longer than the other, it is searched by leaps.
const LEAP_FROM: usize = 16;

/// Calls `each` with the records of every unit that both lists have. Both are sorted by unit.
fn for_each_common(one: &[Record], other: &[Record], mut each: impl FnMut(&[Record], &[Record])) {
    let (mut one, mut other) = (one, other);
    while let (Some(a), Some(b)) = (one.first(), other.first()) {
        if a.unit < b.unit {
            one = &one[skip(one, b.unit, other.len())..];
        } else if b.unit < a.unit {
            other = &other[skip(other, a.unit, one.len())..];
        } else {
            let unit = a.unit;
            let same = |records: &[Record]| {
                let differs = |record: &Record| record.unit != unit;
                records.iter().position(differs).unwrap_or(records.len())
            };
            let (own, own_rest) = one.split_at(same(one));
            let (theirs, their_rest) = other.split_at(same(other));
            each(own, theirs);
            (one, other) = (own_rest, their_rest);
        }
    }
}

/// How many of the first records have units below `unit`.
fn skip(records: &[Record], unit: u32, others: usize) -> usize {
    if records.len() / LEAP_FROM <= others {
        let at = records.iter().position(|record| record.unit >= unit);
        return at.unwrap_or(records.len());
    }
    let mut leap = 1;
    while leap < records.len() && records[leap].unit < unit {
        leap *= 2;
    }
    let end = (leap + 1).min(records.len());
    leap / 2 + records[leap / 2..end].partition_point(|record| record.unit < unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{NONE, What};

    fn list(units: &[u32]) -> Vec<Record> {
        let record = |&unit: &u32| Record {
            unit,
            block: 0,
            what: What(1),
            count: 1,
            offset: 0,
            previous: NONE,
        };
        units.iter().map(record).collect()
    }

    fn common(one: &[u32], other: &[u32]) -> Vec<(u32, usize, usize)> {
        let mut found = Vec::new();
        for_each_common(&list(one), &list(other), |own, theirs| {
            found.push((own[0].unit, own.len(), theirs.len()));
        });
        found
    }

    #[test]
    fn common_units_are_found_in_step_and_by_leaps() {
        let long: Vec<u32> = (0..1000).flat_map(|n| [3 * n, 3 * n]).collect();
        assert_eq!(
            common(&[1, 3, 3, 4, 9], &[3, 9, 9, 10]),
            [(3, 2, 1), (9, 1, 2)]
        );
        let expected = [(0, 1, 2), (300, 1, 2), (2997, 1, 2)];
        assert_eq!(common(&[0, 1, 300, 2997, 5000], &long), expected);
        let swapped = expected.map(|(unit, a, b)| (unit, b, a));
        assert_eq!(common(&long, &[0, 1, 300, 2997, 5000]), swapped);
        assert_eq!(common(&[], &long), []);
    }
}
