//! `cargo xtask soak determinism`: programs that CI runs a few times, to compare, run many times.

use super::engine_tests;
use crate::process::run;

/// What to run, and how often.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Runs of each program that must be the same, to the last instruction
    #[arg(long, value_name = "N", default_value_t = 50)]
    runs: u32,

    /// Only programs whose test has this in its name
    #[arg(value_name = "PROGRAM", default_value = "")]
    program: String,
}

pub(super) fn run_all(args: &Args) -> Result<(), String> {
    let tests = format!("determinism::{}", args.program);
    run(engine_tests(&tests).env("VERDICT_DETERMINISM_RUNS", args.runs.to_string()))
}
