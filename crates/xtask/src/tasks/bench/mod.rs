//! `cargo xtask bench`: how fast things are, and how much memory they take.

mod measure;
mod traces;

use clap::Subcommand;

/// What to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand, Debug)]
enum Subject {
    /// Reading traces, and detecting races in them
    Traces(traces::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.subject {
        Subject::Traces(args) => traces::run(args),
    }
}
