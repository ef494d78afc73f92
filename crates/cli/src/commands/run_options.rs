//! What every command that runs a program asks for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use verdict_launch::Ending;
use verdict_protocol::{AccessLog, ExecutorConfig, SchedulePolicy};

use super::exec::stats;
use crate::{CliError, Context, FormatArgs};

/// Who runs when. Flatten it into the command's arguments.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ScheduleArgs {
    /// Where every random choice comes from: the schedule's and the randomness the program asks for
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// After how many instructions a thread must let others run
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = ExecutorConfig::DEFAULT_QUANTUM, value_parser = clap::value_parser!(u64).range(1..))]
    quantum: u64,

    /// Which thread runs next: they take turns, or the seed decides
    #[arg(long, value_enum, value_name = "POLICY", default_value_t)]
    schedule: Schedule,
}

#[derive(ValueEnum, Clone, Copy, Default, Debug)]
enum Schedule {
    #[default]
    #[value(help = None)]
    RoundRobin,
    #[value(help = None)]
    Random,
}

impl ScheduleArgs {
    /// Every option by its name, for whoever has to know whether two runs are the same.
    pub(crate) fn words(&self) -> [(&'static str, String); 3] {
        let schedule = match self.schedule {
            Schedule::RoundRobin => "round-robin",
            Schedule::Random => "random",
        };
        [
            ("seed", self.seed.to_string()),
            ("quantum", self.quantum.to_string()),
            ("schedule", schedule.to_owned()),
        ]
    }

    /// A run of `words`, the program first, in our environment.
    pub(crate) fn config(&self, words: &[OsString]) -> ExecutorConfig {
        let argv: Vec<Vec<u8>> = words.iter().cloned().map(OsString::into_vec).collect();
        let program = argv.first().cloned().unwrap_or_default();
        ExecutorConfig {
            seed: self.seed,
            quantum: self.quantum,
            schedule: match self.schedule {
                Schedule::RoundRobin => SchedulePolicy::RoundRobin,
                Schedule::Random => SchedulePolicy::Random,
            },
            ..ExecutorConfig::new(program, argv, environment())
        }
    }
}

/// What is observed of a run. Flatten it into the command's arguments.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ObserveArgs {
    /// At the end, say on standard error what was done: instructions, switches, system calls, time
    #[arg(long)]
    stats: bool,

    /// Write the statistics into this file instead
    #[arg(long, value_name = "FILE")]
    stats_file: Option<PathBuf>,

    /// What happens to memory accesses: nothing, logged and discarded, or logged and hashed
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, hide = true)]
    accesses: Accesses,

    #[command(flatten)]
    format: FormatArgs,
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

impl ObserveArgs {
    /// Asks for it.
    pub(crate) fn apply(&self, config: &mut ExecutorConfig) {
        config.stats = self.stats || self.stats_file.is_some();
        config.accesses = match self.accesses {
            Accesses::Off => AccessLog::Off,
            Accesses::Discard => AccessLog::Discard,
            Accesses::Hash => AccessLog::Hash,
        };
    }

    /// Tells it, where it was wanted and is known.
    pub(crate) fn tell(&self, ending: &Ending, context: &Context) -> Result<(), CliError> {
        let Ending::Reported(report) = ending else {
            return Ok(());
        };
        let text = || stats::render(report, self.format.format);
        match &self.stats_file {
            Some(path) => stats::write(&text(), path, context)?,
            None if self.stats => context.remark(&text()),
            None => {}
        }
        Ok(())
    }
}

/// Ours is the guest's.
fn environment() -> Vec<Vec<u8>> {
    std::env::vars_os()
        .map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat())
        .collect()
}

/// `90`, `90s`, `10m`, `2h`
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("expected seconds, or a number with s, m or h".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number".to_owned())?;
    let all = number.checked_mul(seconds).ok_or("that is too long")?;
    Ok(Duration::from_secs(all))
}

/// A number of instructions, in the units in which they are told.
pub(crate) fn instructions(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        Some((at, 'T')) => (&text[..at], 1_000_000_000_000),
        _ => (text, 1u64),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .filter(|number| *number > 0)
        .ok_or_else(|| "expected a number of instructions, or one with k, M, G or T".to_owned())
}

/// How many at a time: as many as there are processors, where nothing else is said.
pub(crate) fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let read = |text: &str| duration(text).ok().map(|time| time.as_secs());
        assert_eq!(
            ["90", "90s", "10m", "2h"].map(read),
            [Some(90), Some(90), Some(600), Some(7200)]
        );
        assert_eq!(
            ["", "m", "1d", "-1", "1.5", "99999999999999999h"].map(read),
            [None; 6]
        );
    }

    #[test]
    fn instructions_have_units() {
        let read = |text: &str| instructions(text).ok();
        assert_eq!(
            ["7", "1k", "20M", "5G", "3T"].map(read),
            [7, 1_000, 20_000_000, 5_000_000_000, 3_000_000_000_000].map(Some)
        );
        assert_eq!(
            ["", "G", "0", "0G", "-1", "1.5G", "5m", "99999999T"].map(read),
            [None; 8]
        );
    }
}
