//! `verdict trace head`: the first events in plain words.

use verdict_events::{TraceError, open};

use super::{InputArgs, cannot_read};
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict trace head queue.std
  verdict trace head -n 100 queue.vtrace";

/// How many events of which trace.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// How many events
    #[arg(short, value_name = "EVENTS", default_value_t = 10)]
    n: u64,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let mut source = open(&args.input.trace, args.input.from).map_err(cannot_read)?;
    let mut problem: Option<TraceError> = None;
    context.report(|out, paint| {
        let mut batch = Vec::new();
        let mut position = 0;
        while position < args.n {
            if let Err(error) = source.next_batch(&mut batch) {
                problem = Some(error);
                break;
            }
            if batch.is_empty() {
                break;
            }
            for event in &batch {
                if position == args.n {
                    break;
                }
                let number = format!("{position:>8}");
                writeln!(
                    out,
                    "{}  {}",
                    paint.dim(number),
                    event.describe(source.names())
                )?;
                position += 1;
            }
        }
        Ok(())
    })?;
    match problem {
        None => Ok(Exit::Clean),
        Some(error) => Err(CliError::bad_input(error)),
    }
}
