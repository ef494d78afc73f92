//! `cargo xtask`: what the project does to itself.
#![forbid(unsafe_code)]

mod process;
mod tasks;

use std::process::ExitCode;

use clap::Parser;

/// What the project does to itself: tests, benchmarks, soaks, fuzzing.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: tasks::Task,
}

fn main() -> ExitCode {
    match tasks::run(&Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
