//! `cargo xtask soak`: what tests do for seconds, for as long as you like.

mod classify;
mod confirm;
mod cpu;
mod detect;
mod determinism;
mod replay;

use std::process::Command;

use clap::Subcommand;

use crate::process::cargo;

/// What to soak.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand, Debug)]
enum Subject {
    /// The corpus, classified many times: the same verdicts every time, and evidence that replays
    Classify(classify::Args),
    /// Races of the corpus, steered to many times: each is created, and every seed repeats its run
    Confirm(confirm::Args),
    /// Random instruction sequences, under the engine and on the CPU
    Cpu(cpu::Args),
    /// Races of programs with a thousand threads, gigabytes of memory, 10^10 instructions: all found, in bounded memory
    Detect(detect::Args),
    /// Programs under the engine, many times: every run is the same to the last instruction
    Determinism(determinism::Args),
    /// Recordings, replayed many times: every replay is the recorded execution to the last instruction
    Replay(replay::Args),
    /// Recordings and runs stopped at many moments: what is left behind replays as far as it goes, or goes on
    Faults(replay::FaultArgs),
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.subject {
        Subject::Classify(args) => classify::run_all(args),
        Subject::Confirm(args) => confirm::run_all(args),
        Subject::Cpu(args) => cpu::run_for(args),
        Subject::Detect(args) => detect::run_all(args),
        Subject::Determinism(args) => determinism::run_all(args),
        Subject::Replay(args) => replay::run_all(args),
        Subject::Faults(args) => replay::run_faults(args),
    }
}

/// The tests of the engine with this in their names, optimised, showing what they print. Further arguments go to them.
fn engine_tests(names: &str) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--release", "--package", "verdict-cli"])
        .args(["--test", "engine", names, "--", "--nocapture"]);
    command
}
