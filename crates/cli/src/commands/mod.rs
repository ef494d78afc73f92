//! The subcommands, one file each: an `Args` struct with help and examples, and `run`.
//!
//! To add one: a file with `Args` and `run(&Args, &Context) -> Result<Exit, CliError>`, a variant of [`Command`], an arm of
//! `run`. Its help must end in examples; a test goes through all commands and looks.

mod block_options;
mod blocks;
mod cluster;
mod comparison;
mod completions;
mod confirm;
mod database;
mod detect;
mod evidence;
mod exec;
mod explore;
mod fail_on;
mod judge;
mod list;
mod man;
mod mark;
mod predicted;
mod record;
mod replay;
mod report;
mod run;
mod run_options;
mod shown;
mod trace;

use clap::Subcommand;

use crate::{CliError, Context, Exit};

/// What `verdict` can do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Find the races of a program and say what they are worth: everything at once
    Run(run::Args),
    /// Find the races of a program, a recording or a trace
    Detect(detect::Args),
    /// Look at trace files, convert them, make them up
    Trace(trace::Args),
    /// Build block traces, for finding the races of huge traces in parallel
    Blocks(blocks::Args),
    /// Find the races of block traces on a cluster
    Cluster(cluster::Args),
    /// Run a program under the engine, deterministically
    Exec(exec::Args),
    /// Run a program and keep what is needed to repeat that very execution
    Record(record::Args),
    /// Repeat a recorded execution
    Replay(replay::Args),
    /// Leave a recorded execution at a moment, and see what other schedules come to
    Explore(explore::Args),
    /// Tell again what a run found: text, HTML, SARIF, JSON
    Report(report::Args),
    /// Pack what shows a race into one file, for another machine
    Evidence(evidence::Args),
    /// List the races that the project knows, with every verdict they had
    List(list::Args),
    /// Say what to think of a race, with a reason
    Mark(mark::Args),
    /// Steer a program until its predicted races really happen
    Confirm(confirm::Args),
    /// Say what each race of a program can do: crash, hang, change the output, nothing
    Classify(judge::ClassifyArgs),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the manual page, or write all of them into a folder
    Man(man::Args),
}

pub(crate) fn run(command: &Command, context: &Context) -> Result<Exit, CliError> {
    match command {
        Command::Run(args) => run::run(args, context),
        Command::Detect(args) => detect::run(args, context),
        Command::Trace(args) => trace::run(args, context),
        Command::Blocks(args) => blocks::run(args, context),
        Command::Cluster(args) => cluster::run(args, context),
        Command::Exec(args) => exec::run(args, context),
        Command::Record(args) => record::run(args, context),
        Command::Replay(args) => replay::run(args, context),
        Command::Explore(args) => explore::run(args, context),
        Command::Report(args) => report::run(args, context),
        Command::Evidence(args) => evidence::run(args, context),
        Command::List(args) => list::run(args, context),
        Command::Mark(args) => mark::run(args, context),
        Command::Confirm(args) => confirm::run(args, context),
        Command::Classify(args) => judge::classify(args, context),
        Command::Completions(args) => completions::run(args, context),
        Command::Man(args) => man::run(args, context),
    }
}
