//! All races of a block trace, on this machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use verdict_detect::{Algorithm, Answer, Findings, PairBy};
use verdict_events::Addr;

use crate::BlocksError;
use crate::index::Index;
use crate::load::read_order;
use crate::parallel::Workers;
use crate::plan::{Cuts, PlanOptions, Strategy, plan, threads_of};
use crate::run::{RunOptions, TaskResult, run};
use crate::store::Store;
use crate::units::{overlaps, union};

/// What to look for, and how.
#[derive(Clone, Debug)]
pub struct DetectOptions {
    /// How many threads work; at least 1.
    pub workers: usize,
    /// How the work is cut.
    pub strategy: Strategy,
    /// Where.
    pub cuts: Cuts,
    /// Races between which threads, ascending; all if there are none.
    pub threads: Vec<u32>,
    /// What makes two accesses the same side of a race.
    pub by: PairBy,
    /// Bytes of memory to stay below, about.
    pub memory_max: u64,
}

impl Default for DetectOptions {
    fn default() -> DetectOptions {
        DetectOptions {
            workers: 1,
            strategy: Strategy::Auto,
            cuts: Cuts::Balanced,
            threads: Vec::new(),
            by: PairBy::Site,
            memory_max: 3 << 30,
        }
    }
}

/// Finds every race. `progress` is told how much of the estimated work is done, of how much, from any thread.
pub fn detect(
    store: &dyn Store,
    index: &Index,
    options: &DetectOptions,
    progress: &(dyn Fn(TasksDone) + Sync),
) -> Result<Findings, BlocksError> {
    let workers = Workers::new(options.workers);
    index.check_files(store)?;
    let known = index.threads.len() as u32;
    if let Some(unknown) = options.threads.iter().find(|&&thread| thread >= known) {
        return Err(BlocksError::NoThread(unknown.to_string()));
    }
    let threads = threads_of(index, &options.threads);
    let order = read_order(store, index, &threads, &workers)?;
    let tasks = plan(
        index,
        &order,
        &PlanOptions {
            workers: options.workers,
            strategy: options.strategy,
            threads: options.threads.clone(),
            cuts: options.cuts,
        },
    );
    let total_cost: u64 = tasks.iter().map(|task| task.cost).sum();
    let (tasks_done, cost_done) = (AtomicU64::new(0), AtomicU64::new(0));
    let all = Mutex::new(TaskResult::new(options.by));
    let done = |task: &crate::plan::Task, result: TaskResult| {
        all.lock().expect("nobody panics with it").merge(result);
        let cost = cost_done.fetch_add(task.cost, Ordering::Relaxed) + task.cost;
        progress(TasksDone {
            done: tasks_done.fetch_add(1, Ordering::Relaxed) + 1,
            total: tasks.len() as u64,
            fraction: cost as f64 / total_cost.max(1) as f64,
        });
        Ok(())
    };
    let run_options = RunOptions {
        workers: &workers,
        by: options.by,
        memory_max: options.memory_max,
    };
    run(store, index, &order, &tasks, run_options, &done)?;
    let all = all.into_inner().expect("nobody panics with it");
    Ok(findings(index, all))
}

/// How far a detection is.
#[derive(Clone, Copy, Debug)]
pub struct TasksDone {
    /// Tasks that are done.
    pub done: u64,
    /// All tasks.
    pub total: u64,
    /// Which part of the estimated cost that is.
    pub fraction: f64,
}

/// The report of everything that tasks found.
pub fn findings(index: &Index, all: TaskResult) -> Findings {
    let units = all.racy.iter().map(|&unit| {
        let unit = &index.units()[unit as usize];
        (unit.start, unit.end)
    });
    let racy = union(units);
    let locations = index.shared.locations.iter();
    let locations = locations.filter(|&&location| overlaps(&racy, location));
    Findings {
        algorithm: Algorithm::Blocks,
        trace: index.trace,
        races: all.races.into_races(),
        locations: locations
            .map(|&(start, _)| (Addr(start), Answer::Race))
            .collect(),
        history: None,
    }
}
