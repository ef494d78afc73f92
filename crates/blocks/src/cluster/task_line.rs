//! A task as it travels.

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use verdict_detect::PairBy;

use super::ClusterError;
use crate::index::Index;
use crate::plan::{Task, Work};

const SCHEMA: &str = "verdict.task/1";

/// Everything a worker needs to know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskLine {
    schema: String,
    /// Tells this plan from others.
    pub plan: u32,
    /// How many tasks the plan has.
    pub tasks: u64,
    /// Where the block trace is.
    pub blocks: String,
    /// The checksum of its index.
    pub index: u32,
    /// Whether races of different threads are told apart.
    pub per_thread: bool,
    /// What to do.
    pub task: Task,
}

impl TaskLine {
    pub(crate) fn by(&self) -> PairBy {
        match self.per_thread {
            true => PairBy::ThreadAndSite,
            false => PairBy::Site,
        }
    }
}

/// The lines of a plan for the block trace at `blocks`. Works that are the same, of the same blocks, are the same plan.
pub fn task_lines(index: &Index, blocks: &str, by: PairBy, tasks: &[Task]) -> Vec<TaskLine> {
    let per_thread = by == PairBy::ThreadAndSite;
    let works: Vec<&Work> = tasks.iter().map(|task| &task.work).collect();
    let identity = serde_json::to_vec(&(index.checksum, per_thread, works))
        .expect("numbers can always be written");
    let plan = crc32fast::hash(&identity);
    let line = |task: &Task| TaskLine {
        schema: SCHEMA.to_owned(),
        plan,
        tasks: tasks.len() as u64,
        blocks: blocks.to_owned(),
        index: index.checksum,
        per_thread,
        task: task.clone(),
    };
    tasks.iter().map(line).collect()
}

/// Reads the tasks of one plan.
pub(crate) fn read_tasks(
    file: &str,
    input: &mut dyn BufRead,
) -> Result<Vec<TaskLine>, ClusterError> {
    let mut tasks: Vec<TaskLine> = Vec::new();
    for (nth, line) in input.lines().enumerate() {
        let number = nth as u64 + 1;
        let problem = |problem: String| ClusterError::Line {
            file: file.to_owned(),
            line: number,
            problem,
        };
        let line = line.map_err(|error| problem(error.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let task: TaskLine = serde_json::from_str(&line)
            .map_err(|error| problem(format!("expected a task, found none: {error}")))?;
        if task.schema != SCHEMA {
            return Err(problem(format!(
                "expected schema {SCHEMA}, found {}",
                task.schema
            )));
        }
        if let Some(first) = tasks.first()
            && (first.plan, &first.blocks) != (task.plan, &task.blocks)
        {
            return Err(ClusterError::OtherPlan {
                file: file.to_owned(),
                line: number,
                found: task.plan,
                expected: first.plan,
            });
        }
        tasks.push(task);
    }
    Ok(tasks)
}
