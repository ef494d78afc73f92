//! `cargo xtask soak`: what tests do for seconds, for as long as you like.

mod cpu;
mod determinism;

use clap::Subcommand;

/// What to soak.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand, Debug)]
enum Subject {
    /// Random instruction sequences, under the engine and on the CPU
    Cpu(cpu::Args),
    /// Programs under the engine, many times: every run is the same to the last instruction
    Determinism(determinism::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.subject {
        Subject::Cpu(args) => cpu::run_for(args),
        Subject::Determinism(args) => determinism::run_all(args),
    }
}
