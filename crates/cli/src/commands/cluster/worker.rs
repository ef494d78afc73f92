//! `verdict cluster worker`: tasks in, results out.

use std::io;

use verdict_blocks::cluster::work;

use super::{cluster_problem, open};
use crate::commands::block_options::parse_size;
use crate::{CliError, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict cluster worker
  verdict cluster worker --workers 4 --max-memory 8G";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How many threads work
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,

    /// Memory to stay below, in bytes or with a unit: 800M, 4G
    #[arg(long, value_name = "SIZE", default_value = "3G", value_parser = parse_size)]
    max_memory: u64,
}

pub(super) fn run(args: &Args) -> Result<Exit, CliError> {
    // Results go out one by one, from whichever thread has one: not through the context's buffer.
    let mut output = io::stdout();
    let done = work(
        &mut io::stdin().lock(),
        &mut output,
        &open,
        args.workers as usize,
        args.max_memory,
    );
    done.map_err(cluster_problem)?;
    Ok(Exit::Clean)
}
