//! `cargo xtask soak cpu`: the engine against the CPU, seed after seed, with and without the access log, and whether or not
//! every link charges.

use std::time::{Duration, Instant};

use crate::process::{cargo, run, workspace_root};

/// Cases of one process, which leaves the code cache to the next when it ends.
const CASES: &str = "20000";

/// Where to begin, and for how long.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Seconds; the seed under way is finished
    #[arg(long, value_name = "N", default_value_t = 3600)]
    seconds: u64,

    /// First seed; each further one is one higher
    #[arg(long, value_name = "N", default_value_t = 1000)]
    seed: u64,
}

pub(crate) fn run_for(args: &Args) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut seed = args.seed;
    loop {
        for mode in [
            &[][..],
            &["--accesses"][..],
            &["--charged", "--short"][..],
            &["--charged", "--accesses"][..],
            &["--charged", "--sifted"][..],
        ] {
            let mut command = cargo();
            command
                .args([
                    "run",
                    "--release",
                    "--quiet",
                    "--package",
                    "verdict-cputest",
                    "--",
                ])
                .args(["--seed", &seed.to_string(), "--cases", CASES])
                .args(mode)
                .current_dir(workspace_root());
            run(&mut command)?;
        }
        if Instant::now() >= end {
            println!(
                "{} seeds from {} without a mismatch",
                seed - args.seed + 1,
                args.seed
            );
            return Ok(());
        }
        seed += 1;
    }
}
