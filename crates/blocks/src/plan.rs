//! Cuts the detection into tasks that depend on nothing but the block files.
//!
//! By *locations*: a task is a range of units, all threads. By *pairs* (the paper's V-partition): a task is two threads
//! and, where one pair is much of the work, a range of the blocks of the first (H-partition). The blocks of the
//! second that are unordered with such a range are an interval, which the task finds by itself; so any cut is
//! right, and a good one lies where few blocks are unordered with both sides of it: between two adjacent round relations.

use serde::{Deserialize, Serialize};

use crate::index::Index;
use crate::order::Order;

/// How the work is cut.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Strategy {
    /// As is estimated to be quicker.
    #[default]
    Auto,
    /// By pairs of threads.
    Pairs,
    /// By locations.
    Locations,
}

/// Where the cuts are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Cuts {
    /// So that tasks take about as long as each other.
    #[default]
    Balanced,
    /// Anywhere, at most so many: whatever the cuts, the answer is the same.
    Random {
        /// Decides where.
        seed: u64,
        /// How many parts at most.
        parts_max: u64,
    },
}

/// What to plan for.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// How many work at the same time; at least 1.
    pub workers: usize,
    /// How to cut.
    pub strategy: Strategy,
    /// Which threads, ascending; all if there are none.
    pub threads: Vec<u32>,
    /// Where to cut.
    pub cuts: Cuts,
}

/// A task of detection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// From 0.
    pub number: u64,
    /// What to look at.
    pub work: Work,
    /// How long it will take, in entries looked at.
    pub cost: u64,
}

/// What a task looks at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// All accesses of some threads to units in a range.
    Locations {
        /// First unit.
        from: u32,
        /// The unit after the last.
        to: u32,
        /// Which threads, ascending.
        threads: Vec<u32>,
    },
    /// All accesses of two threads to anything.
    Pair {
        /// One thread.
        one: u32,
        /// The other.
        other: u32,
        /// Which of the blocks of `one`, counted along that thread, is the first.
        from: u32,
        /// The block after the last.
        to: u32,
    },
}

/// So many tasks for each worker: few enough to cost nothing, enough that none is waited for long.
const TASKS_PER_WORKER: u64 = 16;
/// By locations there are more if they would have more records than this: 2^13 x 24 bytes are put in order within a second-level
/// cache, and one with races, which takes longer than is estimated, is not waited for.
const RECORDS_PER_TASK: u64 = 1 << 13;
/// Unless they become so many that what has been read so far of each would not fit it.
const TASKS_FOR_RECORDS: u64 = 1 << 10;
/// A record costs about so many times as much by location, where it is first put where it belongs, as in one pair.
const LOCATION_COST: u64 = 2;
/// How many places near the wanted one are tried for a cut.
const CUTS_TRIED: usize = 15;

/// The threads that are looked at.
pub(crate) fn threads_of(index: &Index, wanted: &[u32]) -> Vec<u32> {
    match wanted {
        [] => (0..index.threads.len() as u32).collect(),
        _ => wanted.to_vec(),
    }
}

/// Makes the tasks, in no particular order of cost.
pub fn plan(index: &Index, order: &Order, options: &PlanOptions) -> Vec<Task> {
    let threads = threads_of(index, &options.threads);
    let mut works = match choose(index, &threads, options) {
        Strategy::Pairs => pairs(order, &threads, options),
        _ => locations(index, &threads, options),
    };
    if works.is_empty() {
        // A plan without tasks could not be told from one that was lost.
        let (from, to) = (0, 0);
        works.push((Work::Locations { from, to, threads }, 0));
    }
    let numbered = works.into_iter().enumerate();
    let task = |(number, (work, cost))| Task {
        number: number as u64,
        work,
        cost,
    };
    numbered.map(task).collect()
}

/// The strategy that is estimated to end first. Pairs look at each record once for every other thread; by location, one
/// that everybody touches cannot be shared among workers.
pub(crate) fn choose(index: &Index, threads: &[u32], options: &PlanOptions) -> Strategy {
    if options.strategy != Strategy::Auto {
        return options.strategy;
    }
    let workers = options.workers.max(1) as u64;
    let records = index.records();
    let largest = index.units().iter().map(|unit| unit.records).max();
    let by_location = (LOCATION_COST * records / workers).max(LOCATION_COST * largest.unwrap_or(0));
    let others = (threads.len() as u64).saturating_sub(1);
    let by_pairs = records.saturating_mul(others) / workers;
    if by_pairs < by_location {
        Strategy::Pairs
    } else {
        Strategy::Locations
    }
}

fn locations(index: &Index, threads: &[u32], options: &PlanOptions) -> Vec<(Work, u64)> {
    let units = index.units();
    let parts = match options.cuts {
        Cuts::Balanced => {
            let for_records = (index.records() / RECORDS_PER_TASK).min(TASKS_FOR_RECORDS);
            for_records.max(TASKS_PER_WORKER * options.workers.max(1) as u64)
        }
        Cuts::Random { parts_max, .. } => parts_max.max(1),
    };
    let mut random = Random::new(options.cuts);
    let wanted = index.records().div_ceil(parts).max(1);
    let mut works = Vec::new();
    let (mut from, mut cost) = (0, 0);
    for (number, unit) in units.iter().enumerate() {
        cost += unit.records;
        let to = number as u32 + 1;
        let cut = match options.cuts {
            Cuts::Balanced => cost >= wanted,
            Cuts::Random { .. } => random.below(units.len() as u64) < parts,
        };
        if cut || to as usize == units.len() {
            let threads = threads.to_vec();
            works.push((Work::Locations { from, to, threads }, cost));
            (from, cost) = (to, 0);
        }
    }
    works
}

fn pairs(order: &Order, threads: &[u32], options: &PlanOptions) -> Vec<(Work, u64)> {
    let entries = |thread: u32| -> u64 {
        let blocks = order.blocks_of(thread).iter();
        blocks.map(|&(_, entries)| u64::from(entries)).sum()
    };
    let entries: Vec<u64> = threads.iter().map(|&thread| entries(thread)).collect();
    let others = (threads.len() as u64).saturating_sub(1);
    let total = entries.iter().sum::<u64>().saturating_mul(others);
    let wanted = (total / (TASKS_PER_WORKER * options.workers.max(1) as u64)).max(1);
    let mut random = Random::new(options.cuts);
    let mut works = Vec::new();
    for (nth, &one) in threads.iter().enumerate() {
        for (next, &other) in threads.iter().enumerate().skip(nth + 1) {
            let blocks = order.blocks_of(one).len() as u32;
            if blocks == 0 || order.blocks_of(other).is_empty() {
                continue;
            }
            let cost = entries[nth] + entries[next];
            let mut bounds = vec![0, blocks];
            match options.cuts {
                Cuts::Balanced => cut_pair(order, [one, other], cost.div_ceil(wanted), &mut bounds),
                Cuts::Random { parts_max, .. } => bounds
                    .extend((1..parts_max).map(|_| random.below(u64::from(blocks) + 1) as u32)),
            }
            bounds.sort_unstable();
            bounds.dedup();
            let parts = bounds.len() as u64 - 1;
            for range in bounds.windows(2) {
                let (from, to) = (range[0], range[1]);
                let work = Work::Pair {
                    one,
                    other,
                    from,
                    to,
                };
                works.push((work, cost / parts));
            }
        }
    }
    works
}

/// Adds cuts so that about `parts` parts have as many entries each.
fn cut_pair(order: &Order, [one, other]: [u32; 2], parts: u64, bounds: &mut Vec<u32>) {
    let blocks = order.blocks_of(one);
    let entries: u64 = blocks.iter().map(|&(_, entries)| u64::from(entries)).sum();
    let parts = parts.min(blocks.len() as u64);
    let mut passed = 0;
    for (at, &(_, entries_here)) in blocks.iter().enumerate() {
        passed += u64::from(entries_here);
        let done = bounds.len() as u64 - 1;
        if done < parts && passed * parts >= done * entries && at + 1 < blocks.len() {
            let near = blocks.len() / (4 * parts as usize).max(1);
            bounds.push(best_cut(order, [one, other], at + 1, near));
        }
    }
}

/// The cut near `at` with the fewest blocks of the other thread that are unordered with both sides.
fn best_cut(order: &Order, pair: [u32; 2], at: usize, near: usize) -> u32 {
    let blocks = order.blocks_of(pair[0]);
    let step = (2 * near / CUTS_TRIED).max(1);
    let first = at.saturating_sub(near).max(1);
    let last = (at + near).min(blocks.len() - 1);
    let tried = (first..=last).step_by(step).chain([at]);
    let overlap = |cut: usize| {
        let before = window(order, pair, cut as u32 - 1).1;
        let after = window(order, pair, cut as u32).0;
        before.saturating_sub(after)
    };
    let best = tried.min_by_key(|&cut| (overlap(cut), cut.abs_diff(at)));
    best.unwrap_or(at) as u32
}

/// The blocks of the other thread that are unordered with a block of the first, counted along the thread.
fn window(order: &Order, [one, other]: [u32; 2], block: u32) -> (usize, usize) {
    let block = order.blocks_of(one)[block as usize].0;
    let others = order.blocks_of(other);
    let (known, posts) = (order.known(block, other), order.posts(block));
    let low = others.partition_point(|&(number, _)| order.posts(number) < known);
    let high = others.partition_point(|&(number, _)| order.known(number, one) <= posts);
    (low, high)
}

struct Random(u64);

impl Random {
    fn new(cuts: Cuts) -> Random {
        match cuts {
            Cuts::Balanced => Random(1),
            Cuts::Random { seed, .. } => {
                Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1) | 1)
            }
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}
