//! `verdict trace`: look at trace files, convert them, make them up, write those of programs.

mod check;
mod convert;
mod destination;
mod generate;
mod head;
mod info;
mod program;
mod progress;

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use verdict_events::{Format, TraceError};

use crate::{CliError, Context, Exit};

const FORMATS: &str = "\
Examples:
  verdict trace -o queue.vtrace -- ./queue 4
  verdict trace queue.vrec -o queue.vtrace
  verdict trace info queue.vtrace

Formats:
  native      .vtrace  every event in one to four bytes, checksummed, seekable
  csv         .csv     every event, as text
  std         .std     RAPID's text: T0|w(V1)|13
  roadrunner  .rr      RoadRunner's event text
  rv-predict           what rvpdump prints (read only)";

/// What to do with traces, or whose trace to write.
#[derive(clap::Args, Debug)]
#[command(after_help = FORMATS, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    program: program::Args,
}

#[derive(Subcommand, Debug)]
#[command(disable_help_subcommand = true)]
enum Action {
    /// Write a trace in another format
    Convert(convert::Args),
    /// Count what is in a trace
    Info(info::Args),
    /// Read a trace to its end and say whether it is sound
    Check(check::Args),
    /// Print the first events of a trace
    Head(head::Args),
    /// Make up a trace, for trying things out and for benchmarks
    Generate(generate::Args),
}

/// The trace to read.
#[derive(clap::Args, Debug)]
struct InputArgs {
    /// The trace; `-` is standard input. Compressed files (gzip, zstd) are decompressed
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// The format of the trace, instead of finding out by its content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    from: Option<Format>,
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .map(|name| name.parse().expect("only possible values arrive here"))
}

/// A trace could not be read: why, and what to do about it.
pub(crate) fn cannot_read(error: TraceError) -> CliError {
    let problem = CliError::bad_input(&error);
    match error {
        TraceError::Io { source, .. } if source.kind() == ErrorKind::NotFound => problem.with_help(
            "give the path of a trace, or `-` for standard input; `verdict trace generate FILE` makes one up",
        ),
        TraceError::Format { .. } => {
            problem.with_help("`verdict trace --help` lists the formats of traces")
        }
        _ => problem,
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    match &args.action {
        Some(Action::Convert(args)) => convert::run(args, context),
        Some(Action::Info(args)) => info::run(args, context),
        Some(Action::Check(args)) => check::run(args, context),
        Some(Action::Head(args)) => head::run(args, context),
        Some(Action::Generate(args)) => generate::run(args, context),
        None => program::run(&args.program, context),
    }
}
