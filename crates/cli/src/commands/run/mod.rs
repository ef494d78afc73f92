//! `verdict run`: everything, from the program to the report.
//!
//! Each stage leaves what it found in the result folder. A run that was interrupted goes on where it was; what a
//! stage found out about a race is not asked again.

mod detect;
mod display;
mod exploration;
mod finish;
mod judge;
mod predictions;
mod record;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use verdict_findings::{CoverageNote, text_of_bytes};
use verdict_results::{FolderError, Plan, ResultFolder, Stage};

use super::database::DatabaseArgs;
use super::fail_on::FailOn;
use super::run_options::{ScheduleArgs, duration, jobs};
use crate::{CliError, Context, Exit};
use display::Display;

/// The result folder of a run that says nothing else.
pub(crate) const DEFAULT_FOLDER: &str = "verdict-out";

const EXAMPLES: &str = "\
Examples:
  verdict run -- ./queue
  verdict run -o queue-results --time-limit 10m -- ./queue 4
  verdict run --fail-on spec-violated --schedule random --seed 7 -- ./server --once

An interrupted run goes on where it was when the same command is given again.";

/// What to run, how, and where to keep what is found.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The result folder
    #[arg(short, long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    output: PathBuf,

    /// Begin anew, whatever is in the result folder
    #[arg(long)]
    restart: bool,

    /// Stop after this time (seconds, or with s, m, h) and report what is known by then; a program that does not end is ended
    /// after a third of it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,

    #[command(flatten)]
    schedule: ScheduleArgs,

    /// Runs that are steered to each race, at most: there are fewer where they are long
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    runs: u32,

    /// Schedules to try after the other order of each instance of a race
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    schedules: u32,

    /// Copies of the program that run at a time; the results are the same for any number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    #[command(flatten)]
    fail_on: FailOn,

    #[command(flatten)]
    database: DatabaseArgs,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Args {
    fn jobs(&self) -> usize {
        jobs(self.jobs)
    }
}

/// What the stages are given.
struct Work<'a> {
    args: &'a Args,
    folder: ResultFolder,
    context: &'a Context,
    display: Display,
    deadline: Option<Instant>,
    /// When a program that does not end by itself is asked to.
    record_until: Option<Instant>,
}

impl Work<'_> {
    fn time_is_up(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    if args.restart {
        ResultFolder::clear(&args.output).map_err(CliError::bad_input)?;
    }
    let plan = plan(args)?;
    let pending = context.pending_files().clone();
    let folder = ResultFolder::begin(&args.output, &plan, pending).map_err(refused)?;
    let work = Work {
        args,
        folder,
        context,
        display: Display::new(context),
        deadline: in_time(args.time_limit),
        record_until: in_time(args.time_limit.map(|limit| limit / 3)),
    };
    let mut undone = Vec::new();
    // Without its races a program has no report, so these are looked for however late it is.
    for stage in Stage::ALL {
        if work.folder.is_done(stage) {
            context.detail(format_args!("{}: done before", stage.word()));
        } else if work.time_is_up() && stage > Stage::Detect {
            undone.push(not_done(stage));
        } else if !do_stage(stage, &work)? {
            break;
        }
    }
    work.display.clear();
    finish::report(&work, undone)
}

fn in_time(limit: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(limit?)
}

/// Whether it was done before the time was up.
fn do_stage(stage: Stage, work: &Work) -> Result<bool, CliError> {
    work.display.stage(stage);
    match stage {
        // Whoever mistyped a name wants to type it again, not to be told of results that there are none of.
        Stage::Record => record::record(work)
            .inspect_err(|_| work.folder.abandon())
            .map(|()| true),
        Stage::Detect => detect::detect(work).map(|()| true),
        Stage::Confirm | Stage::Classify => judge::judge(stage, work),
    }
}

fn not_done(stage: Stage) -> CoverageNote {
    CoverageNote {
        stage: stage.word().to_owned(),
        what: "not done: the time was up".to_owned(),
        help: Some("run the same command again, or raise --time-limit".to_owned()),
    }
}

fn refused(error: FolderError) -> CliError {
    let help = match &error {
        FolderError::OtherRun { .. } => "`--restart` begins anew, `-o DIR` uses another folder",
        FolderError::NotOurs { .. } | FolderError::InUse { .. } => "`-o DIR` uses another folder",
        _ => return CliError::bad_input(error),
    };
    CliError::bad_input(error).with_help(help)
}

/// What makes two runs the same.
fn plan(args: &Args) -> Result<Plan, CliError> {
    let text = |word: &OsString| text_of_bytes(word.as_bytes());
    let mut words = args.program.iter();
    let program = words.next().map(text).unwrap_or_default();
    let mut options = args.schedule.words().to_vec();
    options.push(("runs", args.runs.to_string()));
    options.push(("schedules", args.schedules.to_string()));
    Ok(Plan {
        verdict: env!("CARGO_PKG_VERSION").to_owned(),
        args: words.map(text).collect(),
        identity: identity(args.program.first().map(Path::new))?,
        program,
        options: options
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    })
}

/// The content of the program's file, where it can be found; a name without a slash is looked up by the engine, and the recording
/// notices by itself when that file changes.
fn identity(program: Option<&Path>) -> Result<String, CliError> {
    let Some(path) = program.filter(|path| path.is_file()) else {
        return Ok(String::new());
    };
    let identity = std::fs::File::open(path)
        .and_then(|file| verdict_recording::FileIdentity::of(path.as_os_str().as_bytes(), &file));
    let identity = identity.map_err(|error| {
        CliError::cannot_run(format_args!("{}: cannot be read: {error}", path.display()))
    })?;
    let digits = identity.hash.0.iter().map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}
