//! `verdict trace check`: reads a trace to its end, and does nothing else.

use verdict_events::{TraceError, TraceSource, open};

use super::progress::Progress;
use super::{InputArgs, cannot_read};
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict trace check big.vtrace
  verdict trace check big.std.gz --from std";

/// Which trace.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let mut source = open(&args.input.trace, args.input.from).map_err(cannot_read)?;
    let events = read_all(&mut source, context).map_err(CliError::bad_input)?;
    context.report(|out, paint| writeln!(out, "{} {events} events", paint.green("sound:")))?;
    Ok(Exit::Clean)
}

fn read_all(source: &mut dyn TraceSource, context: &Context) -> Result<u64, TraceError> {
    let mut progress = Progress::new(context);
    let mut batch = Vec::new();
    let mut events = 0;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(events);
        }
        events += batch.len() as u64;
        progress.add(batch.len());
    }
}
