//! `verdict exec`: runs a program under the engine and ends as it ends.

pub(crate) mod ending;
pub(crate) mod stats;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use verdict_launch::{LaunchOptions, SignalPolicy};
use verdict_protocol::{Clock, ExecutorConfig, World};

use super::run_options::{ObserveArgs, ScheduleArgs};
use crate::{CliError, Context, Exit};

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

    #[command(flatten)]
    observe: ObserveArgs,

    /// Ask the scheduler before the instruction at this address of the guest runs
    #[arg(long, value_name = "ADDRESS", value_parser = address, hide = true)]
    watch: Vec<u64>,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
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

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let options = LaunchOptions {
        signals: SignalPolicy::GuestDecides,
        ..LaunchOptions::default()
    };
    let config = config(args)?;
    let ending = verdict_launch::run(&config, &options).map_err(CliError::cannot_run)?;
    args.observe.tell(&ending, context)?;
    ending::to_exit(&ending, &options)
}

fn config(args: &Args) -> Result<ExecutorConfig, CliError> {
    let mut config = ExecutorConfig {
        clock: match args.clock {
            ClockChoice::Virtual => Clock::Virtual,
            ClockChoice::Real => Clock::Real,
        },
        follow_children: args.follow_children,
        watched: args.watch.clone(),
        world: world(args)?,
        ..args.schedule.config(&args.program)
    };
    args.observe.apply(&mut config);
    Ok(config)
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
