//! `verdict explore`: from a moment of a recording on, the same program under many other schedules.

mod outcomes;
mod told;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use verdict_launch::{Advanced, Copied, Explorer, LaunchError, LaunchOptions, Request};
use verdict_protocol::{
    ExecutorConfig, LaterInput, Mode, Moment, Outcome, ReplayStop, RunSchedule, Until, World,
};
use verdict_recording::Info;

use super::exec::ending;
use super::exec::stats::grouped;
use super::replay;
use super::run_options::jobs;
use crate::progress::Progress;
use crate::{CliError, Context, Exit, FormatArgs};
use outcomes::{Execution, Outcomes};

const EXAMPLES: &str = "\
Examples:
  verdict explore queue.vrec
  verdict explore queue.vrec --from 2:15000 --runs 1000 --seed 7
  verdict explore server.vrec --input end-of-file --format json
  verdict explore queue.vrec --keep found

Repeats the recording up to a moment, and from there on runs the program as often as you like, each time with
another random schedule, in a world of its own: files, pipes and connections are as the recording had them, and
what the program does to them is only so inside. The same seed gives the same execution.
Ends with 0 when the executions were made, whatever came of them.";

/// Longest run, as a multiple of what the recording has left.
const LONGER_MAX: u64 = 20;
/// However little the recording has left, a run may have this many instructions.
const INSTRUCTIONS_MIN: u64 = 50_000_000;

/// Which recording, from where, and how often.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: PathBuf,

    /// Leave the recording when this thread (0 is the first) has executed so many instructions; without this, when
    /// there is a second thread
    #[arg(long, value_name = "THREAD:COUNT", value_parser = replay::until::parse)]
    from: Option<Until>,

    /// Executions to make
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Seed of the first execution's schedule; each further one is one higher
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// Half the longest turn of a thread; without this, as recorded
    #[arg(long, value_name = "INSTRUCTIONS", value_parser = clap::value_parser!(u64).range(1..))]
    quantum: Option<u64>,

    /// What the program gets when it asks for input after that moment: what it got then, the end, or nothing more
    #[arg(long, value_enum, value_name = "POLICY", default_value_t)]
    input: InputChoice,

    /// Executions at a time; the results are the same for any number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Seconds that one execution may take, as a safety net: they are limited by their instructions
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    time_limit: u64,

    /// Record one execution of each outcome into this folder, for `verdict replay`
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(ValueEnum, Clone, Copy, Default, Debug)]
enum InputChoice {
    #[default]
    #[value(help = None)]
    Recorded,
    #[value(help = None)]
    EndOfFile,
    #[value(help = None)]
    Stop,
}

impl InputChoice {
    fn policy(self) -> LaterInput {
        match self {
            Self::Recorded => LaterInput::Recorded,
            Self::EndOfFile => LaterInput::EndOfFile,
            Self::Stop => LaterInput::Stop,
        }
    }
}

/// Where the executions begin.
struct Start {
    explorer: Explorer,
    /// Instructions of all threads until there.
    instructions: u64,
    /// Instructions that one execution may have.
    limit: u64,
    quantum: u64,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let folder = match &args.keep {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(|error| CliError::writing(folder.display(), &error))?;
            Some(std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()))
        }
        None => None,
    };
    let scratch = tempfile::tempdir()
        .map_err(|error| CliError::writing("a folder for temporary files", &error))?;
    let mut start = start(args, scratch.path())?;
    let before = Instant::now();
    let outcomes = explore(args, &mut start, context)?;
    let seconds = before.elapsed().as_secs_f64();
    let kept = match &folder {
        Some(folder) => keep(args, &mut start, &outcomes, folder)?,
        None => Vec::new(),
    };
    let told = told::Told {
        recording: &args.recording,
        instructions: start.instructions,
        quantum: start.quantum,
        input: args.input.policy(),
        outcomes: &outcomes,
        kept: &kept,
    };
    context.report(|out, paint| told.write(out, paint, args.format.format))?;
    context.note(format_args!(
        "{} executions in {seconds:.2} s, {} at a time: {:.0} executions/s",
        grouped(u64::from(args.runs)),
        args.jobs(),
        f64::from(args.runs) / seconds.max(1e-9)
    ));
    Ok(Exit::Clean)
}

impl Args {
    fn jobs(&self) -> usize {
        jobs(self.jobs)
    }
}

/// Follows the recording up to the moment, and leaves it.
fn start(args: &Args, folder: &Path) -> Result<Start, CliError> {
    let (file, info) = replay::open(&args.recording)?;
    let config = ExecutorConfig {
        mode: Mode::Replay {
            fd: -1,
            until: None,
            replaced: 0,
        },
        world: World::Followed,
        ..replay::config(&info.header)
    };
    let options = LaunchOptions {
        recording: Some(Arc::new(file)),
        ..LaunchOptions::default()
    };
    let failed = |error: LaunchError| CliError::cannot_run(error);
    let mut explorer = Explorer::start(&config, &options, folder, false).map_err(failed)?;
    let moment = args.from.map_or(Moment::SecondThread, |from| Moment::At {
        thread: from.thread,
        instructions: from.instructions,
    });
    let instructions = match explorer.advance(moment).map_err(failed)? {
        Advanced::Reached { instructions } => instructions,
        Advanced::Ended(ended) => return Err(never_reached(args, &ended, &options)),
    };
    explorer
        .leave(args.input.policy(), args.keep.is_some())
        .map_err(failed)?;
    Ok(Start {
        explorer,
        instructions,
        limit: limit(&info, instructions),
        quantum: args.quantum.unwrap_or(info.header.quantum),
    })
}

fn limit(info: &Info, instructions: u64) -> u64 {
    let left = info.instructions.saturating_sub(instructions);
    left.saturating_mul(LONGER_MAX).max(INSTRUCTIONS_MIN)
}

fn never_reached(args: &Args, ended: &verdict_launch::Ending, options: &LaunchOptions) -> CliError {
    if let verdict_launch::Ending::Reported(report) = ended {
        let recorded = matches!(
            report.outcome,
            Outcome::Exited { .. }
                | Outcome::Signalled { .. }
                | Outcome::Deadlock(_)
                | Outcome::LimitReached { .. }
                | Outcome::ReplayStopped {
                    why: ReplayStop::RecordingEnds,
                    ..
                }
        );
        if recorded {
            let what = match args.from {
                Some(from) => format!(
                    "thread {} never executes {} instructions in this recording",
                    from.thread,
                    grouped(from.instructions)
                ),
                None => {
                    "the recorded program never has a second thread, so there is only one schedule"
                        .to_owned()
                }
            };
            return CliError::bad_input(format_args!("{}: {what}", args.recording.display()))
                .with_help("`verdict replay --show-schedule` says which thread ran when");
        }
    }
    match ending::to_exit(ended, options) {
        Err(error) => error,
        Ok(_) => CliError::cannot_run("the recording could not be followed to that moment"),
    }
}

fn schedule(start: &Start, seed: u64) -> RunSchedule {
    RunSchedule::Random {
        seed,
        quantum: start.quantum,
    }
}

fn explore(args: &Args, start: &mut Start, context: &Context) -> Result<Outcomes, CliError> {
    let runs = args.runs as usize;
    let seeds: Vec<u64> = (0..u64::from(args.runs))
        .map(|index| args.seed.wrapping_add(index))
        .collect();
    let limit = start.limit;
    let mut requests = seeds
        .iter()
        .map(|seed| Request {
            instructions_max: Some(limit),
            ..Request::new(schedule(start, *seed))
        })
        .collect::<Vec<_>>()
        .into_iter();
    let mut executions: Vec<Option<Execution>> = (0..runs).map(|_| None).collect();
    let mut progress = Progress::new(context);
    let mut done = 0;
    let made = start.explorer.run_all(
        &mut requests,
        args.jobs(),
        Some(Duration::from_secs(args.time_limit)),
        &mut |index, copied: Copied| {
            executions[index] = Some(Execution::of(seeds[index], &copied));
            done += 1;
            progress.tasks(done, runs as u64, done as f64 / runs as f64);
        },
    );
    drop(progress);
    made.map_err(CliError::cannot_run)?;
    Ok(Outcomes::of(executions.into_iter().flatten().collect()))
}

/// Makes the first execution of each outcome once more, recorded.
fn keep(
    args: &Args,
    start: &mut Start,
    outcomes: &Outcomes,
    folder: &Path,
) -> Result<Vec<PathBuf>, CliError> {
    let mut kept = Vec::new();
    for group in outcomes.groups() {
        let path = folder.join(format!("seed-{}.vrec", group.seed));
        let request = Request {
            instructions_max: Some(start.limit),
            recording: Some(path.clone()),
            ..Request::new(schedule(start, group.seed))
        };
        let mut again = None;
        let mut requests = std::iter::once(request);
        let time_limit = Some(Duration::from_secs(args.time_limit));
        let each = &mut |_: usize, copied: Copied| {
            again = Some(Execution::of(group.seed, &copied));
        };
        let made = start.explorer.run_all(&mut requests, 1, time_limit, each);
        made.map_err(CliError::cannot_run)?;
        if again.as_ref() != outcomes.execution(group.seed) {
            return Err(CliError::cannot_run(format_args!(
                "the engine failed: the execution with seed {} was another one the second time",
                group.seed
            )));
        }
        kept.push(path);
    }
    Ok(kept)
}
