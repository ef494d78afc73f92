//! `cargo xtask soak confirm`: the corpus that CI confirms with few runs, with many.

use super::engine_tests;
use crate::process::run;

/// What to confirm, and how often.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Steered runs for each race
    #[arg(long, value_name = "N", default_value_t = 100)]
    runs: u32,

    /// Times that every error is repeated with its seed
    #[arg(long, value_name = "N", default_value_t = 20)]
    repeats: u32,

    /// Only tests with this in their name
    #[arg(value_name = "TEST", default_value = "")]
    test: String,
}

pub(super) fn run_all(args: &Args) -> Result<(), String> {
    let tests = format!("confirm::{}", args.test);
    for opt in ["O0", "O2"] {
        println!("at {opt}");
        run(engine_tests(&tests)
            .args(["--test-threads", "1"])
            .env("VERDICT_CONFIRM_OPT", opt)
            .env("VERDICT_CONFIRM_RUNS", args.runs.to_string())
            .env("VERDICT_CONFIRM_REPEATS", args.repeats.to_string()))?;
    }
    Ok(())
}
