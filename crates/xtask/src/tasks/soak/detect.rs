//! `cargo xtask soak detect`: what `crates/cli/tests/engine/scale.rs` checks in every test run, with the long run as long as a
//! real one. Prints the time and the most memory that each took, beside the program's own memory; fails where a race is
//! missed or made up, and where the memory is more than the goal allows.

use super::engine_tests;
use crate::process::run;

/// How long.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Rounds of about 4,500 instructions of the long run
    #[arg(long, value_name = "N", default_value_t = 2_300_000)]
    rounds: u32,
}

pub(super) fn run_all(args: &Args) -> Result<(), String> {
    run(engine_tests("scale::")
        // One after the other, as their memory is measured.
        .arg("--test-threads=1")
        .env("VERDICT_SCALE_ROUNDS", args.rounds.to_string()))
}
