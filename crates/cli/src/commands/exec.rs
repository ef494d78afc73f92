//! `verdict exec`: runs a program under the engine and ends as it ends.

mod ending;
mod stats;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use clap::ValueEnum;
use verdict_launch::{LaunchOptions, SignalPolicy};
use verdict_protocol::{AccessLog, Clock, ExecutorConfig, SchedulePolicy};

use crate::{CliError, Context, Exit, FormatArgs};

const EXAMPLES: &str = "\
Examples:
  verdict exec -- ./server --port 8080
  verdict exec --schedule random --seed 7 -- ./queue
  verdict exec --stats -- gzip -k big.log
  verdict exec --stats-file run.json --format json -- ./queue

Ends with the program's own exit code, or with 128+N when signal N ended it.
Ends with 3, and a word on standard error, when the program cannot be run.";

/// What to run, and how.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where every random choice comes from: the schedule's and the randomness the program asks for
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// After how many instructions a thread must let others run
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = ExecutorConfig::DEFAULT_QUANTUM, value_parser = clap::value_parser!(u64).range(1..))]
    quantum: u64,

    /// Which thread runs next: they take turns, or the seed decides
    #[arg(long, value_enum, value_name = "POLICY", default_value_t)]
    schedule: Schedule,

    /// The program's time: `virtual` comes from the instructions executed and is the same in every run
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    clock: ClockChoice,

    /// Also run programs that the program starts under the engine
    #[arg(long)]
    follow_children: bool,

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
enum Schedule {
    #[default]
    #[value(help = None)]
    RoundRobin,
    #[value(help = None)]
    Random,
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
enum Accesses {
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
    let ending = verdict_launch::run(&config(args), &options).map_err(CliError::cannot_run)?;
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

fn config(args: &Args) -> ExecutorConfig {
    let argv: Vec<Vec<u8>> = args
        .program
        .iter()
        .cloned()
        .map(OsString::into_vec)
        .collect();
    let program = argv.first().cloned().unwrap_or_default();
    ExecutorConfig {
        clock: match args.clock {
            ClockChoice::Virtual => Clock::Virtual,
            ClockChoice::Real => Clock::Real,
        },
        seed: args.seed,
        quantum: args.quantum,
        schedule: match args.schedule {
            Schedule::RoundRobin => SchedulePolicy::RoundRobin,
            Schedule::Random => SchedulePolicy::Random,
        },
        follow_children: args.follow_children,
        accesses: match args.accesses {
            Accesses::Off => AccessLog::Off,
            Accesses::Discard => AccessLog::Discard,
            Accesses::Hash => AccessLog::Hash,
        },
        watched: args.watch.clone(),
        stats: args.stats || args.stats_file.is_some(),
        ..ExecutorConfig::new(program, argv, environment())
    }
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

/// Ours is the guest's.
fn environment() -> Vec<Vec<u8>> {
    std::env::vars_os()
        .map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat())
        .collect()
}
