//! `cargo xtask soak replay`: recordings that CI replays twice, replayed many times, and recordings stopped at many moments.

use super::engine_tests;
use crate::process::run;

/// What to replay, and how often.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Replays of each recording that must be the same, to the last instruction
    #[arg(long, value_name = "N", default_value_t = 50)]
    replays: u32,

    /// Rounds of six requests that each of the eight clients makes of a server
    #[arg(long, value_name = "N", default_value_t = 210)]
    requests: u32,

    /// Only programs whose test has this in its name
    #[arg(value_name = "PROGRAM", default_value = "")]
    program: String,
}

/// Where to stop recordings, and how often.
#[derive(clap::Args, Debug)]
pub(super) struct FaultArgs {
    /// Moments at which the controller or the executor is killed; a disk is full at a quarter as many sizes
    #[arg(long, value_name = "N", default_value_t = 200)]
    moments: u32,
    /// Moments at which a whole `verdict run` is killed and begun again
    #[arg(long, value_name = "N", default_value_t = 30)]
    interruptions: u32,
}

pub(super) fn run_all(args: &Args) -> Result<(), String> {
    for tests in ["replay::", "servers::replay_of_"] {
        let tests = format!("{tests}{}", args.program);
        run(engine_tests(&tests)
            .env("VERDICT_REPLAYS", args.replays.to_string())
            .env("VERDICT_REPLAY_REQUESTS", args.requests.to_string()))?;
    }
    Ok(())
}

pub(super) fn run_faults(args: &FaultArgs) -> Result<(), String> {
    run(engine_tests("record_faults::").env("VERDICT_FAULTS", args.moments.to_string()))?;
    run(engine_tests("whole_run::interrupted")
        .env("VERDICT_INTERRUPTIONS", args.interruptions.to_string()))
}
