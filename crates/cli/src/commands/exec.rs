//! `verdict exec`: runs a program under the engine and ends as it ends.

pub(crate) mod ending;
pub(crate) mod stats;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use verdict_launch::{LaunchOptions, SignalPolicy};
use verdict_protocol::{AccessLog, Clock, ExecutorConfig, World};

use super::run_options::ScheduleArgs;
use crate::{CliError, Context, Exit, FormatArgs};

const EXAMPLES: &str = "\
Examples:
  verdict exec -- ./server --port 8080
  verdict exec --schedule random --seed 7 -- ./queue
  verdict exec --stats -- gzip -k big.log
  verdict exec --private -- ./cleanup --delete-everything
  verdict exec --stats-file run.json --format json -- ./queue

Ends with the program's own exit code, or with 128+N when signal N ended it.
Ends with 3, and a word on standard error, when the program cannot be run.";

/// What to run, and how.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    schedule: ScheduleArgs,

    /// The program's time: `virtual` comes from the instructions executed and is the same in every run
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    clock: ClockChoice,

    /// Also run programs that the program starts under the engine
    #[arg(long)]
    follow_children: bool,

    /// Run in a world of its own: files are as they are, but what the program changes, starts, sends or signals is
    /// only so inside; standard input is empty
    #[arg(long, conflicts_with = "clock")]
    private: bool,

    /// With --private: what the program reads from standard input
    #[arg(long, value_name = "FILE", requires = "private")]
    input: Option<PathBuf>,

    /// At the end, say on standard error what was done: instructions, switches, system calls, time
    #[arg(long)]
    stats: bool,

    /// Write the statistics into this file instead
    #[arg(long, value_name = "FILE")]
    stats_file: Option<PathBuf>,

    /// What happens to memory accesses: nothing, logged and discarded, or logged and hashed
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, hide = true)]
    accesses: Accesses,

    /// Ask the scheduler before the instruction at this address of the guest runs
    #[arg(long, value_name = "ADDRESS", value_parser = address, hide = true)]
    watch: Vec<u64>,

    #[command(flatten)]
    format: FormatArgs,

    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

#[derive(ValueEnum, Clone, Copy, Default, Debug)]
enum ClockChoice {
    #[default]
    #[value(help = None)]
    Virtual,
    #[value(help = None)]
    Real,
}

#[derive(ValueEnum, Clone, Copy, Default, Debug)]
pub(crate) enum Accesses {
    #[default]
    #[value(help = None)]
    Off,
    #[value(help = None)]
    Discard,
    #[value(help = None)]
    Hash,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let options = LaunchOptions {
        signals: SignalPolicy::GuestDecides,
        ..LaunchOptions::default()
    };
    let config = config(args)?;
    let ending = verdict_launch::run(&config, &options).map_err(CliError::cannot_run)?;
    if let verdict_launch::Ending::Reported(report) = &ending
        && (args.stats || args.stats_file.is_some())
    {
        let text = stats::render(report, args.format.format);
        match &args.stats_file {
            Some(path) => stats::write(&text, path, context)?,
            None => context.remark(&text),
        }
    }
    ending::to_exit(&ending, &options)
}

fn config(args: &Args) -> Result<ExecutorConfig, CliError> {
    Ok(ExecutorConfig {
        clock: match args.clock {
            ClockChoice::Virtual => Clock::Virtual,
            ClockChoice::Real => Clock::Real,
        },
        follow_children: args.follow_children,
        accesses: args.accesses.into(),
        watched: args.watch.clone(),
        stats: args.stats || args.stats_file.is_some(),
        world: world(args)?,
        ..args.schedule.config(&args.program)
    })
}

fn world(args: &Args) -> Result<World, CliError> {
    if !args.private {
        return Ok(World::Host);
    }
    let input = match &args.input {
        Some(path) => std::fs::read(path).map_err(|error| {
            CliError::bad_input(format_args!("{}: cannot be read: {error}", path.display()))
        })?,
        None => Vec::new(),
    };
    Ok(World::Private { input })
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

impl From<Accesses> for AccessLog {
    fn from(choice: Accesses) -> Self {
        match choice {
            Accesses::Off => Self::Off,
            Accesses::Discard => Self::Discard,
            Accesses::Hash => Self::Hash,
        }
    }
}
