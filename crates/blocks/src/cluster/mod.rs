//! Tasks that travel: what is written for a worker on another machine, what it answers, and how answers become one report.
//!
//! A task line holds everything a worker needs but the block files, a result line everything that is merged. Both are JSON, one
//! a line. Each names the plan it is of, so that answers of another plan, or of other files, are never merged, and
//! each result is checksummed: a line that was cut is an error and not a smaller report.

mod merge;
mod result_line;
mod task_line;
mod worker;

pub use merge::{Merge, merge_results};
pub use result_line::ResultLine;
pub use task_line::{TaskLine, task_lines};
pub use worker::{Open, work};

/// Why tasks or results could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Reading or analysing blocks failed.
    #[error(transparent)]
    Blocks(#[from] crate::BlocksError),
    /// A line is no task or no result.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// Which file, or `<stdin>`.
        file: String,
        /// Line number from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Lines of different plans are mixed.
    #[error("{file}:{line}: is of plan {found:08x}, not of plan {expected:08x}")]
    OtherPlan {
        /// Which file, or `<stdin>`.
        file: String,
        /// Line number from 1.
        line: u64,
        /// The plan of this line.
        found: u32,
        /// The plan of the lines before.
        expected: u32,
    },
    /// The block trace is not the one that was planned for.
    #[error("{blocks}: is not the block trace that the tasks were planned for")]
    OtherBlocks {
        /// Where it is.
        blocks: String,
    },
    /// Some tasks have no result.
    #[error("{missing} of {total} tasks have no result, the first is task {first}")]
    Incomplete {
        /// How many.
        missing: u64,
        /// Of how many.
        total: u64,
        /// The first of them.
        first: u64,
    },
    /// There is nothing to work on or to merge.
    #[error("{file}: expected {what}, found nothing")]
    Nothing {
        /// Which file, or `<stdin>`.
        file: String,
        /// What should be there.
        what: &'static str,
    },
    /// Writing an answer failed.
    #[error("cannot be written: {0}")]
    Write(#[from] std::io::Error),
}
