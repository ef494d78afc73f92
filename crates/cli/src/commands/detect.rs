//! `verdict detect`: the races of a trace, or of a run of a program.

mod parts;
mod predictions;
mod program;
mod wanted;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::ArgPredicate;
use verdict_detect::{Algorithm, DetectError, Findings, Keep, PairBy, detect_reading_ahead};
use verdict_events::{Names, TraceError, TraceSource};
use verdict_observe::Orders;
use verdict_report::{Tone, compare_json, compare_text, detect_json, detect_text};

use super::block_options::BlockOptions;
use super::run_options::{ScheduleArgs, duration, instructions};
use crate::progress::Progress;
use crate::{CliError, Context, Exit, Format, FormatArgs, Paint};

const EXAMPLES: &str = "\
Examples:
  verdict detect queue.std
  verdict detect queue.std --per-thread --format json
  verdict detect huge.std.gz --algorithm fasttrack
  verdict detect huge.blocks --algorithm blocks --workers 8
  verdict detect queue.std --compare
  verdict detect -- ./server --port 0
  verdict detect server.vrec --explain-sync
  verdict detect --output races.json --format json -- ./server --port 0
  verdict detect --budget 5G simulation.vrec
  verdict detect --memory-orders source -- ./lock-free-queue
  verdict detect --ignore 'stats.*' --suppressions known-races.txt -- ./server";

const USAGE: &str = "\
verdict detect [OPTIONS] -- <PROGRAM>...
       verdict detect [OPTIONS] <RECORDING|TRACE>";

/// Which trace to look at, how, and what to say.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Args {
    /// The recording of a program, or a trace: a file in any known format, compressed or not; `-` is standard input. For
    /// `blocks`, also a block trace
    #[arg(
        value_name = "RECORDING|TRACE",
        required = false,
        required_unless_present = "program",
        default_value_if("program", ArgPredicate::IsPresent, "-")
    )]
    trace: PathBuf,

    /// How to look for races. Unless this is given: `hb`, and what `hybrid` predicts beside it for runs of programs that are short
    #[arg(long, value_enum, value_name = "NAME")]
    algorithm: Option<AlgorithmChoice>,

    /// Tell races of different threads apart, though their sites are the same
    #[arg(long)]
    per_thread: bool,

    /// Compare what the four algorithms of limited history answer, and what they keep for it
    #[arg(long, conflicts_with_all = ["algorithm", "per_thread"])]
    compare: bool,

    /// When races make the command end with exit code 1
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    fail_on: FailOn,

    #[command(flatten)]
    blocks: BlockOptions,

    /// Write the report on a program or recording into this file instead of standard output, which the program may use, too
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Say on standard error what of the program was taken for synchronisation, and why
    #[arg(long)]
    explain_sync: bool,

    /// End a program that runs longer than this (seconds, or with s, m, h), and report what was seen
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "program")]
    time_limit: Option<Duration>,

    /// What atomic loads and stores order
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    memory_orders: OrdersChoice,

    /// Of a very long run, look at about so many instructions only (a number, or one with k, M, G or T): at its beginning, and
    /// at parts that are further and further apart. The report says how much was looked at
    #[arg(long, value_name = "INSTRUCTIONS", value_parser = instructions)]
    budget: Option<u64>,

    #[command(flatten)]
    wanted: wanted::WantedArgs,

    #[command(flatten)]
    schedule: ScheduleArgs,

    #[command(flatten)]
    format: FormatArgs,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = ["trace", "compare"])]
    program: Vec<OsString>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
enum AlgorithmChoice {
    /// Compare each access with the last one: may stay inconclusive
    Adjacent,
    /// Compare each access with the last read and the last write: may stay inconclusive
    Local,
    /// Keep the last write and the parallel reads since: exact for each location
    Race,
    /// Keep the last read and write of every thread: exact for each location
    Current,
    /// The first race of each location, for very large traces
    #[value(name = "fasttrack")]
    FastTrack,
    /// Every race of this trace
    #[default]
    Hb,
    /// Races of segments that overlap in time: those that were closest to happening
    Regions,
    /// What could race if locks were taken in another order
    Hybrid,
    /// Every race, as independent tasks over block traces: in parallel, in bounded memory
    Blocks,
}

impl From<AlgorithmChoice> for Algorithm {
    fn from(choice: AlgorithmChoice) -> Self {
        match choice {
            AlgorithmChoice::Adjacent => Self::Adjacent,
            AlgorithmChoice::Local => Self::Local,
            AlgorithmChoice::Race => Self::Race,
            AlgorithmChoice::Current => Self::Current,
            AlgorithmChoice::FastTrack => Self::FastTrack,
            AlgorithmChoice::Hb => Self::Hb,
            AlgorithmChoice::Regions => Self::Regions,
            AlgorithmChoice::Hybrid => Self::Hybrid,
            AlgorithmChoice::Blocks => Self::Blocks,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
enum OrdersChoice {
    /// What the instructions of this processor do: each load acquires, each store releases
    #[default]
    Machine,
    /// What the source says, where debug information has it: relaxed ones order nothing. Fences that need no instruction are not
    /// seen, and what they order is reported
    Source,
}

impl From<OrdersChoice> for Orders {
    fn from(choice: OrdersChoice) -> Self {
        match choice {
            OrdersChoice::Machine => Self::Machine,
            OrdersChoice::Source => Self::Source,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum FailOn {
    /// Any race
    #[default]
    Any,
    /// Never
    Never,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    if !args.program.is_empty() {
        return program::run(args, context);
    }
    if args.trace != Path::new("-") && verdict_recording::is_recording(&args.trace) {
        return program::run_again(args, context);
    }
    if is_program(&args.trace) {
        let problem = format_args!("{}: is a program", args.trace.display());
        let how = format_args!("to run it: `verdict detect -- {}`", runnable(&args.trace));
        return Err(CliError::bad_input(problem).with_help(how));
    }
    if let Some(option) = args.program_option() {
        let problem = format_args!("`{option}` is for programs and recordings");
        return Err(CliError::bad_input(problem)
            .with_help(format_args!("{} is a trace", shown(&args.trace))));
    }
    if args.algorithm() == AlgorithmChoice::Blocks {
        return run_blocks(args, context);
    }
    args.blocks.refuse()?;
    if verdict_blocks::is_block_trace(&args.trace) {
        let problem = format_args!("{}: is a block trace", args.trace.display());
        return Err(CliError::bad_input(problem).with_help("use `--algorithm blocks`"));
    }
    if args.compare {
        let (all, _) = look(&Algorithm::LIMITED, PairBy::Site, args, context)?;
        context.report(|out, paint| match args.format.format {
            Format::Text => out.write_all(compare_text(&all, &colours(paint)).as_bytes()),
            Format::Json => out.write_all(compare_json(&all).as_bytes()),
        })?;
        return Ok(exit(&all, args.fail_on));
    }
    let by = pair_by(args);
    let (all, source) = look(&[args.algorithm().into()], by, args, context)?;
    let names = source.names();
    context.report(|out, paint| {
        all.iter()
            .try_for_each(|findings| match args.format.format {
                Format::Text => {
                    out.write_all(detect_text(findings, by, names, &colours(paint)).as_bytes())
                }
                Format::Json => out.write_all(detect_json(findings, by, names).as_bytes()),
            })
    })?;
    Ok(exit(&all, args.fail_on))
}

/// True for what can be run and cannot be a trace: whoever gives it has left out the dashes.
fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    // What comes through a pipe can be read only once.
    if !path.is_file() {
        return false;
    }
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && (magic == *b"\x7fELF" || magic.starts_with(b"#!/"))
}

/// A path as a shell would have to be given it.
fn runnable(path: &Path) -> String {
    let is_name = path.components().count() == 1;
    let folder = if is_name { "./" } else { "" };
    format!("{folder}{}", path.display())
}

impl Args {
    fn algorithm(&self) -> AlgorithmChoice {
        self.algorithm.unwrap_or_default()
    }

    /// An option that means nothing for a trace.
    fn program_option(&self) -> Option<&'static str> {
        if self.output.is_some() {
            Some("--output")
        } else if self.explain_sync {
            Some("--explain-sync")
        } else if self.budget.is_some() {
            Some("--budget")
        } else if self.memory_orders != OrdersChoice::default() {
            Some("--memory-orders")
        } else {
            self.wanted.given()
        }
    }
}

/// What was found, and the trace for its names.
type Looked = (Vec<Findings>, Box<dyn TraceSource>);

fn look(
    algorithms: &[Algorithm],
    by: PairBy,
    args: &Args,
    context: &Context,
) -> Result<Looked, CliError> {
    // What can be read twice is first looked at in the way that suits nearly every trace.
    let keep = match args.trace == Path::new("-") {
        true => Keep::All,
        false => Keep::WhatCanRace,
    };
    let found = match look_keeping(keep, algorithms, by, args, context) {
        Err(DetectError::Misled) => look_keeping(Keep::All, algorithms, by, args, context),
        found => found,
    };
    found.map_err(|error| match error {
        DetectError::Trace(error @ TraceError::Format { .. }) => {
            CliError::bad_input(&error).with_help(
                "`verdict detect -- PROGRAM` runs a program, and `verdict record` makes a recording of one; `verdict trace --help` lists the formats of traces",
            )
        }
        DetectError::Trace(error) => super::trace::cannot_read(error),
        error => CliError::bad_input(format_args!("{}: {error}", shown(&args.trace))),
    })
}

fn look_keeping(
    keep: Keep,
    algorithms: &[Algorithm],
    by: PairBy,
    args: &Args,
    context: &Context,
) -> Result<Looked, DetectError> {
    let mut source = verdict_events::open(&args.trace, None)?;
    let mut progress = Progress::new(context);
    let detectors = algorithms
        .iter()
        .map(|algorithm| algorithm.detector_keeping(keep, by))
        .collect();
    let found = detect_reading_ahead(&mut *source, detectors, &mut |events| {
        progress.done("events", events)
    })?;
    Ok((found, source))
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

fn exit(all: &[Findings], fail_on: FailOn) -> Exit {
    let any = all.iter().any(|findings| !findings.races.is_empty());
    if any && fail_on == FailOn::Any {
        Exit::Races
    } else {
        Exit::Clean
    }
}

pub(super) fn colours(paint: Paint) -> impl Fn(Tone, &str) -> String {
    move |tone, text| match tone {
        Tone::Heading => paint.bold(text).to_string(),
        Tone::Bad => paint.red(text).to_string(),
        Tone::Good => paint.green(text).to_string(),
        Tone::Dim => paint.dim(text).to_string(),
    }
}

fn run_blocks(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let by = pair_by(args);
    let (findings, index) = args.blocks.detect(&args.trace, by, context)?;
    tell_blocks(
        findings,
        by,
        &index.names,
        args.format.format,
        args.fail_on,
        context,
    )
}

/// Reports what was found in a block trace, and answers with how the command ends.
pub(super) fn tell_blocks(
    findings: Findings,
    by: PairBy,
    names: &dyn Names,
    format: Format,
    fail_on: FailOn,
    context: &Context,
) -> Result<Exit, CliError> {
    context.report(|out, paint| match format {
        Format::Text => {
            let text = detect_text(&findings, by, names, &colours(paint));
            out.write_all(text.as_bytes())
        }
        Format::Json => out.write_all(detect_json(&findings, by, names).as_bytes()),
    })?;
    Ok(exit(&[findings], fail_on))
}

fn pair_by(args: &Args) -> PairBy {
    if args.per_thread {
        PairBy::ThreadAndSite
    } else {
        PairBy::Site
    }
}
