//! Runs tasks. Those that fit the memory allowed run together, in a round that reads each file once.

use verdict_detect::{PairBy, RaceSet};

use crate::index::Index;
use crate::order::Order;
use crate::parallel::Workers;
use crate::plan::{Task, Work};
use crate::record::Record;
use crate::store::Store;
use crate::{BlocksError, pairs, shards};

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// Who works.
    pub workers: &'a Workers,
    /// What makes two accesses the same side of a race.
    pub by: PairBy,
    /// Bytes of memory to stay below, about.
    pub memory_max: u64,
}

/// What one task found.
#[derive(Clone, Debug)]
pub struct TaskResult {
    /// Its races.
    pub races: RaceSet,
    /// Units with races, ascending.
    pub racy: Vec<u32>,
}

impl TaskResult {
    pub(crate) fn new(by: PairBy) -> TaskResult {
        TaskResult {
            races: RaceSet::new(by),
            racy: Vec::new(),
        }
    }

    /// Adds what a task that looked at other pairs of accesses found.
    pub fn merge(&mut self, other: TaskResult) {
        self.races.merge(other.races);
        self.racy.extend(other.racy);
        self.racy.sort_unstable();
        self.racy.dedup();
    }
}

/// What is done with the result of a task, from any thread.
pub(crate) type Done<'a> = &'a (dyn Fn(&Task, TaskResult) -> Result<(), BlocksError> + Sync);

/// Everything that tasks are run with.
pub(crate) struct Runner<'a> {
    pub store: &'a dyn Store,
    pub index: &'a Index,
    pub order: &'a Order,
    pub options: RunOptions<'a>,
    pub done: Done<'a>,
}

/// Runs tasks of a plan and hands each result to `done` as soon as it is there.
pub fn run(
    store: &dyn Store,
    index: &Index,
    order: &Order,
    tasks: &[Task],
    options: RunOptions<'_>,
    done: &(dyn Fn(&Task, TaskResult) -> Result<(), BlocksError> + Sync),
) -> Result<(), BlocksError> {
    let runner = Runner {
        store,
        index,
        order,
        options,
        done,
    };
    let (by_location, by_pair): (Vec<&Task>, Vec<&Task>) = tasks
        .iter()
        .partition(|task| matches!(task.work, Work::Locations { .. }));
    shards::run(&runner, &by_location)?;
    pairs::run(&runner, &by_pair)
}

impl Runner<'_> {
    /// How many records may be held, or an error if that is less than `least`.
    pub fn records_max(&self, least: u64) -> Result<u64, BlocksError> {
        // Units and places are held by number and by place; a record is held once where it was read and once in order.
        let index = 4 * self.index.place_count + 64 * self.index.units().len() as u64;
        let fixed = FIXED + index + self.order.bytes();
        let each = size_of::<Record>() as u64 * 2;
        let needed = fixed + least.saturating_mul(each);
        let allowed = self.options.memory_max;
        if allowed < needed {
            return Err(BlocksError::Memory { needed, allowed });
        }
        Ok((allowed - fixed) / each)
    }
}

/// The program itself and what every worker needs to read.
const FIXED: u64 = 16 << 20;
