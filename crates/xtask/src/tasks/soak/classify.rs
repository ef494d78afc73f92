//! `cargo xtask soak classify`: every racy program of the corpus, classified many times, and the evidence on some replayed many
//! times; prints the truths beside what was found.

use super::engine_tests;
use crate::process::run;

/// How often.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Times that each program is classified; all must give the same bytes
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: u32,

    /// Times that each piece of evidence is replayed
    #[arg(long, value_name = "N", default_value_t = 20)]
    replays: u32,

    /// Only programs with this in their names
    #[arg(value_name = "PROGRAM", default_value = "")]
    program: String,
}

pub(super) fn run_all(args: &Args) -> Result<(), String> {
    run(engine_tests("verdicts::")
        .env("VERDICT_CLASSIFY_RUNS", args.runs.to_string())
        .env("VERDICT_EVIDENCE_REPLAYS", args.replays.to_string())
        .env("VERDICT_CLASSIFY_ONLY", &args.program))
}
