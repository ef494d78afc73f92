//! The tasks, one file each. Benchmarks, soaks and fuzzing are tasks too: each its own file here.

mod ci;

use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub(crate) enum Task {
    /// Run every check and every test: format, lints, build, tests, documentation
    Ci,
}

pub(crate) fn run(task: &Task) -> Result<(), String> {
    match task {
        Task::Ci => ci::run_all(),
    }
}
