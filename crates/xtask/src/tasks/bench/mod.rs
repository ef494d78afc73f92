//! `cargo xtask bench`: how fast things are, and how much memory they take.

mod blocks;
mod classify;
mod confirm;
mod detect;
mod engine;
mod explore;
mod family;
mod measure;
mod record;
mod traces;

use clap::Subcommand;
pub(super) use traces::target_folder;

/// What to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand, Debug)]
enum Subject {
    /// Finding all races of large traces in parallel
    Blocks(blocks::Args),
    /// Classifying races: seconds for each race, and as a ratio to the program's own time
    Classify(classify::Args),
    /// Steering runs to a race
    Confirm(confirm::Args),
    /// Finding the races of programs, beside other tools
    Detect(detect::Args),
    /// Running programs under the engine
    Engine(engine::Args),
    /// Leaving a recording, again and again
    Explore(explore::Args),
    /// Recording programs, and replaying them
    Record(record::Args),
    /// Reading traces, and detecting races in them
    Traces(traces::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.subject {
        Subject::Blocks(args) => blocks::run(args),
        Subject::Classify(args) => classify::run(args),
        Subject::Confirm(args) => confirm::run(args),
        Subject::Detect(args) => detect::run(args),
        Subject::Engine(args) => engine::run(args),
        Subject::Explore(args) => explore::run(args),
        Subject::Record(args) => record::run(args),
        Subject::Traces(args) => traces::run(args),
    }
}
