//! `verdict trace convert`: one format into another.

use verdict_events::open;

use super::destination::OutputArgs;
use super::{InputArgs, cannot_read};
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict trace convert queue.std queue.vtrace
  verdict trace convert queue.std.gz - --to csv
  zcat big.rr.gz | verdict trace convert - big.vtrace";

/// What to read and what to write.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let mut source = open(&args.input.trace, args.input.from).map_err(cannot_read)?;
    args.output.write(&mut source, context)?;
    Ok(Exit::Clean)
}
