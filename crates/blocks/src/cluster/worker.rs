//! A worker: tasks in, results out. All tasks it is given are run together, so that files are read once for all of them.

use std::io::{BufRead, Write};
use std::sync::Mutex;

use super::task_line::read_tasks;
use super::{ClusterError, ResultLine, TaskLine};
use crate::BlocksError;
use crate::index::Index;
use crate::load::read_order;
use crate::parallel::Workers;
use crate::plan::{Task, Work};
use crate::run::{RunOptions, TaskResult, run};
use crate::store::Store;

/// Opens the block trace that tasks name.
pub type Open = dyn Fn(&str) -> Result<Box<dyn Store>, BlocksError>;

/// Reads tasks to the end of `input`, opens their block trace by `open`, and writes each result to `output` when it is
/// there.
pub fn work(
    input: &mut dyn BufRead,
    output: &mut (dyn Write + Send),
    open: &Open,
    workers: usize,
    memory_max: u64,
) -> Result<(), ClusterError> {
    let lines = read_tasks("<stdin>", input)?;
    let Some(first) = lines.first() else {
        return Ok(());
    };
    let workers = Workers::new(workers);
    let store = open(&first.blocks)?;
    let index = Index::read(&*store)?;
    if index.checksum != first.index {
        return Err(ClusterError::OtherBlocks {
            blocks: first.blocks.clone(),
        });
    }
    let threads = check(&lines, &index)?;
    let order = read_order(&*store, &index, &threads, &workers)?;
    for (nth, line) in lines.iter().enumerate() {
        if let Work::Pair { one, from, to, .. } = line.task.work
            && (from > to || to as usize > order.blocks_of(one).len())
        {
            return Err(no_such(nth, "blocks"));
        }
    }
    let tasks: Vec<Task> = lines.iter().map(|line| line.task.clone()).collect();
    let output = Mutex::new(output);
    let done = |task: &Task, result: TaskResult| {
        let line = lines.iter().find(|line| line.task.number == task.number);
        let line = ResultLine::new(line.expect("tasks come from lines"), result);
        let mut output = output.lock().expect("nobody panics with it");
        let written = output.write_all(line.to_json().as_bytes());
        let written = written.and_then(|()| output.flush());
        written.map_err(|error| BlocksError::Write {
            file: "standard output".to_owned(),
            problem: error.to_string(),
        })
    };
    let options = RunOptions {
        workers: &workers,
        by: first.by(),
        memory_max,
    };
    run(&*store, &index, &order, &tasks, options, &done)?;
    Ok(())
}

/// The threads that tasks speak of, ascending. Tasks are bytes from outside: what they speak of must be there.
fn check(lines: &[TaskLine], index: &Index) -> Result<Vec<u32>, ClusterError> {
    let mut all = Vec::new();
    for (nth, line) in lines.iter().enumerate() {
        match &line.task.work {
            Work::Pair { one, other, .. } if one == other => return Err(no_such(nth, "threads")),
            Work::Pair { one, other, .. } => all.extend([*one, *other]),
            Work::Locations { from, to, threads } => {
                if from > to || *to as usize > index.units().len() {
                    return Err(no_such(nth, "units"));
                }
                all.extend_from_slice(threads);
            }
        }
        if all
            .iter()
            .any(|&thread| thread as usize >= index.threads.len())
        {
            return Err(no_such(nth, "threads"));
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn no_such(nth: usize, what: &str) -> ClusterError {
    ClusterError::Line {
        file: "<stdin>".to_owned(),
        line: nth as u64 + 1,
        problem: format!("the task is for {what} that the block trace does not have"),
    }
}
