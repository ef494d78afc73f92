//! The tasks, one file each. Benchmarks, soaks and fuzzing are tasks too: each its own file here.

mod bench;
mod ci;
mod fuzz;
mod soak;

use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub(crate) enum Task {
    /// Run every check and every test: format, lints, build, tests, documentation
    Ci,
    /// Measure speed and memory
    Bench(bench::Args),
    /// Run the fuzz targets
    Fuzz(fuzz::Args),
    /// Run what must never differ, for long
    Soak(soak::Args),
}

pub(crate) fn run(task: &Task) -> Result<(), String> {
    match task {
        Task::Ci => ci::run_all(),
        Task::Bench(args) => bench::run(args),
        Task::Fuzz(args) => fuzz::run_targets(args),
        Task::Soak(args) => soak::run(args),
    }
}
