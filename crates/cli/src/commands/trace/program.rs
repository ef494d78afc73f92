//! `verdict trace RECORDING -o FILE` and `verdict trace -o FILE -- PROGRAM`: what happens in a run, as a trace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use verdict_launch::{GuestOutput, LaunchOptions, SignalPolicy};
use verdict_protocol::{ExecutorConfig, Mode};
use verdict_races::{ProgramError, Run, trace_program};

use super::destination::OutputArgs;
use super::format_parser;
use crate::commands::exec::ending;
use crate::commands::replay;
use crate::commands::run_options::ScheduleArgs;
use crate::{CliError, Context, Exit};

/// What to run and where to write.
#[derive(clap::Args, Debug)]
// The command's own arguments have a group of this name already.
#[group(skip)]
pub struct Args {
    /// The recording whose run is to be written as a trace
    #[arg(value_name = "RECORDING")]
    recording: Option<PathBuf>,

    /// Where to write the trace of a run
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The format to write, instead of finding out by the name
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    to: Option<verdict_events::Format>,

    #[command(flatten)]
    schedule: ScheduleArgs,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "recording")]
    program: Vec<OsString>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let usage = |what: &str| {
        CliError::bad_input(what).with_help("`verdict trace --help` says what there is")
    };
    let Some(out) = args.output.clone() else {
        return Err(usage("where to write the trace is not said: `-o FILE`"));
    };
    let run = match &args.recording {
        Some(recording) => recorded(recording)?,
        None if args.program.is_empty() => return Err(usage("there is nothing to run")),
        None => Run {
            config: args.schedule.config(&args.program),
            launch: LaunchOptions {
                signals: SignalPolicy::GuestDecides,
                ..LaunchOptions::default()
            },
        },
    };
    let output = OutputArgs { out, to: args.to };
    output.format()?;
    let traced = trace_program(&run, |trace| output.write(trace, context));
    let (ended, written) = traced.map_err(|error| match error {
        ProgramError::Launch(error) => CliError::cannot_run(error),
        error => CliError::cannot_run(error),
    })?;
    written?;
    match ending::to_exit(&ended, &run.launch) {
        Err(CliError::Problem {
            exit: Exit::Guest(_),
            what,
            ..
        }) => context.note(what),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(Exit::Clean)
}

fn recorded(path: &Path) -> Result<Run, CliError> {
    let (file, info) = replay::open(path)?;
    Ok(Run {
        config: ExecutorConfig {
            mode: Mode::Replay {
                fd: -1,
                until: None,
                replaced: 0,
            },
            ..replay::config(&info.header)
        },
        launch: LaunchOptions {
            recording: Some(Arc::new(file)),
            output: GuestOutput::Discarded,
            ..LaunchOptions::default()
        },
    })
}
