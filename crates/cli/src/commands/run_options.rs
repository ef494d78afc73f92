//! What every command that runs a program asks for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::ValueEnum;
use verdict_protocol::{ExecutorConfig, SchedulePolicy};

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

/// Ours is the guest's.
fn environment() -> Vec<Vec<u8>> {
    std::env::vars_os()
        .map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat())
        .collect()
}
