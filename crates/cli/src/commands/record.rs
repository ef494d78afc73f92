//! `verdict record`: runs a program as `verdict exec` does, and keeps what repeats the execution.

mod info;
mod output;
mod size;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use verdict_launch::{LaunchOptions, SignalPolicy};
use verdict_protocol::{ExecutorConfig, Mode};

use super::exec::ending;
use super::run_options::{ObserveArgs, ScheduleArgs};
use crate::{CliError, Context, Exit};

pub(crate) use info::open;
pub(crate) use output::cut;

const EXAMPLES: &str = "\
Examples:
  verdict record -- ./queue
  verdict record -o crash.vrec --schedule random --seed 7 -- ./server --port 8080
  verdict record --attach-files --max-size 100M -- python3 job.py
  verdict record info queue.vrec

The recording can be read while it is written: when the program, verdict or the
machine is stopped, what was recorded until then can be replayed.
Ends with the program's own exit code, or with 128+N when signal N ended it.
Ends with 3, and a word on standard error, when the program cannot be run.";

/// What to run, how, and what to keep.
#[derive(clap::Args, Debug)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// The recording; without this, named after the program: `queue.vrec`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    schedule: ScheduleArgs,

    /// End the recording, not the program, before it is larger than this (bytes, or with K, M, G)
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_size: Option<u64>,

    /// Copy the program and its libraries into the recording: it replays after they have changed, too
    #[arg(long)]
    attach_files: bool,

    #[command(flatten)]
    observe: ObserveArgs,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Say what is inside a recording
    Info(info::Args),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    match &args.action {
        Some(Action::Info(args)) => info::run(args, context),
        None => record(args, context),
    }
}

fn record(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let name = match &args.output {
        Some(path) => path.clone(),
        None => default_name(&args.program)?,
    };
    let recording = output::RecordingFile::create(name)?;
    let mut config = ExecutorConfig {
        mode: Mode::Record {
            fd: -1,
            attach_files: args.attach_files,
            max_size: args.max_size,
            resume: None,
        },
        ..args.schedule.config(&args.program)
    };
    args.observe.apply(&mut config);
    let options = LaunchOptions {
        signals: SignalPolicy::GuestDecides,
        recording: Some(recording.file()),
        ..LaunchOptions::default()
    };
    let launched = verdict_launch::run(&config, &options).map_err(CliError::cannot_run);
    recording.tell(context);
    let ended = launched?;
    args.observe.tell(&ended, context)?;
    ending::to_exit(&ended, &options)
}

/// `queue.vrec` for `./build/queue`, in the current folder.
fn default_name(program: &[OsString]) -> Result<PathBuf, CliError> {
    let name = program
        .first()
        .and_then(|program| Path::new(program).file_name());
    let name = name.ok_or_else(|| {
        CliError::bad_input("the program has no name that a recording could have")
            .with_help("give the recording a name with -o FILE")
    })?;
    let mut name = name.to_owned();
    name.push(OsStr::new(".vrec"));
    Ok(name.into())
}
