//! How races are looked for in block traces: the options that several commands share.

use std::path::Path;
use std::sync::Mutex;

use clap::ValueEnum;
use verdict_blocks::{
    BlocksError, BuildOptions, DetectOptions, Folder, Index, Strategy, build, detect,
    is_block_trace,
};
use verdict_detect::{Findings, PairBy};
use verdict_events::{Names, ThreadId};

use crate::progress::Progress;
use crate::{CliError, Context};

const HEADING: &str = "Options of --algorithm blocks";
/// What is stayed below unless something else is said.
const MEMORY_DEFAULT: u64 = 3 << 30;

/// Options of the algorithm `blocks`.
#[derive(clap::Args, Debug)]
pub(crate) struct BlockOptions {
    /// How many threads look for races [default: one for each processor]
    #[arg(long, value_name = "N", help_heading = HEADING, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: Option<u32>,

    /// How the work is cut into tasks [default: auto]
    #[arg(long, value_enum, value_name = "HOW", help_heading = HEADING)]
    strategy: Option<StrategyChoice>,

    /// Only races among these threads, by name or number
    #[arg(long, value_name = "LIST", help_heading = HEADING, value_delimiter = ',')]
    threads: Vec<String>,

    /// Memory to stay below, in bytes or with a unit: 800M, 4G [default: 3G]
    #[arg(long, value_name = "SIZE", help_heading = HEADING, value_parser = parse_size)]
    max_memory: Option<u64>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StrategyChoice {
    /// As is estimated to be quicker
    Auto,
    /// By pairs of threads, and parts of them
    Pairs,
    /// By ranges of locations
    Locations,
}

impl From<StrategyChoice> for Strategy {
    fn from(choice: StrategyChoice) -> Strategy {
        match choice {
            StrategyChoice::Auto => Strategy::Auto,
            StrategyChoice::Pairs => Strategy::Pairs,
            StrategyChoice::Locations => Strategy::Locations,
        }
    }
}

pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1u64 << 30),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "expected a number of bytes, or one with K, M or G".to_owned())
}

impl BlockOptions {
    /// An error if any of them is given where they mean nothing.
    pub(crate) fn refuse(&self) -> Result<(), CliError> {
        let given = [
            ("--workers", self.workers.is_some()),
            ("--strategy", self.strategy.is_some()),
            ("--threads", !self.threads.is_empty()),
            ("--max-memory", self.max_memory.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(CliError::bad_input(format_args!(
                "{name} is for `--algorithm blocks` only"
            ))),
        }
    }

    pub(crate) fn strategy(&self) -> Strategy {
        self.strategy.map_or(Strategy::Auto, Strategy::from)
    }

    pub(crate) fn memory_max(&self) -> u64 {
        self.max_memory.unwrap_or(MEMORY_DEFAULT)
    }

    pub(crate) fn workers(&self) -> usize {
        match self.workers {
            Some(workers) => workers as usize,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// The numbers of the threads asked for, ascending.
    pub(crate) fn thread_numbers(&self, index: &Index) -> Result<Vec<u32>, CliError> {
        let count = index.threads.len() as u32;
        let find = |wanted: &String| {
            let by_name = (0..count).find(|&id| index.names.thread(ThreadId(id)) == *wanted);
            let by_number = || wanted.parse().ok().filter(|&id: &u32| id < count);
            let found = by_name.or_else(by_number);
            found.ok_or_else(|| problem(BlocksError::NoThread(wanted.clone())))
        };
        let mut numbers: Vec<u32> = self.threads.iter().map(find).collect::<Result<_, _>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// The races of a block trace, or of a trace of which one is built first and then thrown away.
    pub(crate) fn detect(
        &self,
        trace: &Path,
        by: PairBy,
        context: &Context,
    ) -> Result<(Findings, Index), CliError> {
        if is_block_trace(trace) {
            return self.detect_in(&Folder::new(trace), by, context);
        }
        if trace.is_dir() {
            let what = format_args!("{}: is a folder without a block trace", trace.display());
            return Err(CliError::bad_input(what).with_help("`verdict blocks build` makes one"));
        }
        let folder = tempfile::Builder::new()
            .prefix("verdict-blocks.")
            .tempdir()
            .map_err(|error| CliError::writing(std::env::temp_dir().display(), &error))?;
        let mut store = Folder::new(folder.path());
        build_from(trace, &mut store, context)?;
        self.detect_in(&store, by, context)
    }

    fn detect_in(
        &self,
        store: &Folder,
        by: PairBy,
        context: &Context,
    ) -> Result<(Findings, Index), CliError> {
        let index = Index::read(store).map_err(problem)?;
        let options = DetectOptions {
            workers: self.workers(),
            strategy: self.strategy(),
            threads: self.thread_numbers(&index)?,
            by,
            memory_max: self.memory_max(),
            ..DetectOptions::default()
        };
        let progress = Mutex::new(Progress::new(context));
        let found = detect(store, &index, &options, &|now| {
            if let Ok(mut progress) = progress.lock() {
                progress.tasks(now.done, now.total, now.fraction);
            }
        });
        Ok((found.map_err(problem)?, index))
    }
}

/// Builds a block trace in a folder that is there.
pub(crate) fn build_from(
    trace: &Path,
    folder: &mut Folder,
    context: &Context,
) -> Result<verdict_blocks::Built, CliError> {
    let mut source = verdict_events::open(trace, None).map_err(CliError::bad_input)?;
    let mut progress = Progress::new(context);
    build(
        &mut source,
        folder,
        &BuildOptions::default(),
        &mut |events| progress.done("events", events),
    )
    .map_err(problem)
}

pub(crate) fn problem(error: BlocksError) -> CliError {
    let memory = matches!(error, BlocksError::Memory { .. });
    let problem = CliError::bad_input(error);
    if memory {
        return problem.with_help("`--max-memory` allows more");
    }
    problem
}
