//! One report from the results of all tasks.

use std::collections::BTreeMap;
use std::io::BufRead;

use verdict_detect::{Findings, PairBy};

use super::{ClusterError, ResultLine};
use crate::detect::findings;
use crate::index::Index;
use crate::run::TaskResult;

/// Results of one plan, gathered from any number of files in any order. A task that was run twice counts once.
#[derive(Default)]
pub struct Merge {
    results: BTreeMap<u64, ResultLine>,
}

impl Merge {
    /// Adds the results of a file.
    pub fn add(&mut self, file: &str, input: &mut dyn BufRead) -> Result<(), ClusterError> {
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
            let result = ResultLine::from_json(&line).map_err(problem)?;
            if let Some(first) = self.first()
                && (first.plan, first.tasks) != (result.plan, result.tasks)
            {
                return Err(ClusterError::OtherPlan {
                    file: file.to_owned(),
                    line: number,
                    found: result.plan,
                    expected: first.plan,
                });
            }
            self.results.entry(result.task).or_insert(result);
        }
        Ok(())
    }

    /// Any of the results.
    pub fn first(&self) -> Option<&ResultLine> {
        self.results.values().next()
    }
}

/// The report, if every task of the plan has a result, and how its races are paired.
pub fn merge_results(index: &Index, merge: Merge) -> Result<(Findings, PairBy), ClusterError> {
    let Some(first) = merge.first() else {
        return Err(ClusterError::Nothing {
            file: "results".to_owned(),
            what: "results",
        });
    };
    let (total, by) = (first.tasks, first.by());
    let other_blocks = ClusterError::OtherBlocks {
        blocks: first.blocks.clone(),
    };
    if first.index != index.checksum {
        return Err(other_blocks);
    }
    let present = |task: &u64| merge.results.contains_key(task);
    if let Some(first) = (0..total).find(|task| !present(task)) {
        let missing = (0..total).filter(|task| !present(task)).count() as u64;
        return Err(ClusterError::Incomplete {
            missing,
            total,
            first,
        });
    }
    let mut all = TaskResult::new(by);
    for (_, result) in merge.results {
        let outside = |unit: u32| unit as usize >= index.units().len();
        if result.last_unit().is_some_and(outside) {
            return Err(other_blocks);
        }
        all.merge(result.into_result());
    }
    Ok((findings(index, all), by))
}
