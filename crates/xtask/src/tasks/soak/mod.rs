//! `cargo xtask soak`: what tests do for seconds, for as long as you like.

mod cpu;

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
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.subject {
        Subject::Cpu(args) => cpu::run_for(args),
    }
}
