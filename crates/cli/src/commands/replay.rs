//! `verdict replay`: repeats a recorded execution, without the outside world.

mod schedule;
pub(crate) mod until;

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use verdict_launch::{Ending, LaunchOptions};
use verdict_protocol::{Clock, ExecutorConfig, Mode, Outcome, ReplayStop, SchedulePolicy, Until};
use verdict_recording::{Header, Info};

use super::exec::ending;
use super::exec::stats::grouped;
use super::record;
use super::run_options::ObserveArgs;
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict replay queue.vrec
  verdict replay --stats queue.vrec
  verdict replay --show-schedule --until 2:15000 queue.vrec
  verdict replay --memory-errors queue.vrec

Nothing outside is touched: no file is written, no socket opened. What the program
puts out is shown, and compared with what it put out then.
Ends as the program ended then; with 0 where the replay stops before the end.
Ends with 3 when the recording cannot be replayed here, and says what has changed.";

/// Which recording, and how far.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: PathBuf,

    /// Stop when this thread (0 is the first) has executed so many instructions
    #[arg(long, value_name = "THREAD:COUNT", value_parser = until::parse)]
    until: Option<Until>,

    /// At the end, say on standard error which thread ran when
    #[arg(long)]
    show_schedule: bool,

    /// Replay once more with every access looked at, and say on standard error what uses freed memory, reaches behind the end of a
    /// block, or frees what is no block
    #[arg(long, conflicts_with = "until")]
    memory_errors: bool,

    #[command(flatten)]
    observe: ObserveArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let (file, info) = open(&args.recording)?;
    let mut config = ExecutorConfig {
        mode: Mode::Replay {
            fd: -1,
            until: args.until,
            replaced: 0,
        },
        ..config(&info.header)
    };
    args.observe.apply(&mut config);
    let options = LaunchOptions {
        recording: Some(Arc::new(file)),
        ..LaunchOptions::default()
    };
    let ended = verdict_launch::run(&config, &options).map_err(CliError::cannot_run)?;
    if let Ending::Reported(report) = &ended {
        if args.show_schedule {
            context.remark(&schedule::render(
                &args.recording,
                report.stats.instructions,
            )?);
        }
        tell_stop(&report.outcome, &info, context);
    }
    args.observe.tell(&ended, context)?;
    if args.memory_errors {
        tell_memory_errors(&args.recording, &config, context)?;
    }
    ending::to_exit(&ended, &options)
}

fn tell_memory_errors(
    recording: &Path,
    config: &ExecutorConfig,
    context: &Context,
) -> Result<(), CliError> {
    let run = verdict_races::replay_of(config, &LaunchOptions::default(), recording)
        .map_err(CliError::cannot_run)?;
    let errors = verdict_verdicts::memory_errors(&run).map_err(CliError::cannot_run)?;
    if errors.is_empty() {
        context.note("no memory errors");
    }
    for error in &errors {
        context.remark(&verdict_report::memory_error_text(error));
    }
    Ok(())
}

/// A recording that can be replayed here, to be read from its beginning.
pub(crate) fn open(path: &Path) -> Result<(File, Info), CliError> {
    let (mut file, info) = record::open(path)?;
    check_files(&info)?;
    rewind(&mut file, path)?;
    Ok((file, info))
}

/// Files whose contents are not in the recording must be what they were.
fn check_files(info: &Info) -> Result<(), CliError> {
    for file in info.files.iter().filter(|file| !file.attached) {
        file.identity.check().map_err(|error| {
            CliError::cannot_run(format_args!("the recording cannot be replayed: {error}"))
                .with_help("record again; with --attach-files a recording brings its files along")
        })?;
    }
    Ok(())
}

fn rewind(file: &mut File, path: &Path) -> Result<(), CliError> {
    file.seek(SeekFrom::Start(0)).map(drop).map_err(|error| {
        CliError::bad_input(format_args!(
            "{}: cannot be read again: {error}",
            path.display()
        ))
    })
}

/// The run that was recorded.
pub(crate) fn config(header: &Header) -> ExecutorConfig {
    ExecutorConfig {
        clock: match header.clock {
            verdict_recording::Clock::Virtual => Clock::Virtual,
            verdict_recording::Clock::Real => Clock::Real,
        },
        seed: header.seed,
        quantum: header.quantum,
        schedule: match header.schedule {
            verdict_recording::SchedulePolicy::RoundRobin => SchedulePolicy::RoundRobin,
            verdict_recording::SchedulePolicy::Random => SchedulePolicy::Random,
        },
        follow_children: header.follow_children,
        ..ExecutorConfig::new(
            header.program.clone(),
            header.argv.clone(),
            header.env.clone(),
        )
    }
}

fn tell_stop(outcome: &Outcome, info: &Info, context: &Context) {
    let Outcome::ReplayStopped { why, instructions } = outcome else {
        return;
    };
    let instructions = grouped(*instructions);
    match why {
        ReplayStop::Until => {
            context.note(format_args!("stopped after {instructions} instructions"));
        }
        ReplayStop::RecordingEnds => {
            let why = record::cut(&info.ending).unwrap_or_else(|| "it goes no further".to_owned());
            context.note(format_args!(
                "the recording ends after {instructions} instructions: {why}"
            ));
        }
    }
}
