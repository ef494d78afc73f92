//! `verdict cluster`: the tasks of a detection, planned here, run anywhere, merged to one report.

mod merge;
mod plan;
mod run;
mod worker;

use std::path::Path;

use clap::Subcommand;
use verdict_blocks::cluster::ClusterError;
use verdict_blocks::{BlocksError, Folder, Store};

use super::block_options::problem;
use crate::{CliError, Context, Exit};

const STEPS: &str = "\
`run` does everything on Apache Spark. `plan`, `worker` and `merge` are its steps, for any other engine:
  verdict cluster plan huge.blocks -o tasks
  split -n l/4 tasks part.; for p in part.*; do verdict cluster worker < $p > result.$p; done
  verdict cluster merge huge.blocks result.*";

/// What to do.
#[derive(clap::Args, Debug)]
#[command(after_help = STEPS)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
#[command(disable_help_subcommand = true)]
enum Action {
    /// Write the tasks of a detection, one a line
    Plan(plan::Args),
    /// Read tasks on standard input, write results on standard output
    Worker(worker::Args),
    /// Make one report of the results of all tasks
    Merge(merge::Args),
    /// Plan, run on Apache Spark, and merge
    Run(run::Args),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    match &args.action {
        Action::Plan(args) => plan::run(args, context),
        Action::Worker(args) => worker::run(args),
        Action::Merge(args) => merge::run(args, context),
        Action::Run(args) => run::run(args, context),
    }
}

/// Opens a block trace by its path.
fn open(blocks: &str) -> Result<Box<dyn Store>, BlocksError> {
    Ok(Box::new(Folder::new(Path::new(blocks))))
}

fn cluster_problem(error: ClusterError) -> CliError {
    match error {
        ClusterError::Blocks(error) => problem(error),
        error @ ClusterError::Incomplete { .. } => {
            CliError::bad_input(error).with_help("give the results of all tasks of the plan")
        }
        error => CliError::bad_input(error),
    }
}
