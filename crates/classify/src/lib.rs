//! From races to verdicts: what a race can do to the program.
//!
//! One execution of the program, the *primary*, serves all races. It is stopped before the first access of an instance;
//! copies of it try the other order from there. Two classifiers look at them:
//!
//! - replay analysis (Narayanasamy et al. 2007, section 4): both segments in both orders, and whether memory is the same
//!   afterwards ([`ReplayOutcome`]);
//! - consequence analysis (Kasikci et al. 2015, sections 3.3 and 4): the other order to the program's end, under several
//!   schedules, and what becomes of the program ([`Class`]).
//!
//! Time-outs count instructions. Everything is determined by the seed, whatever the number of jobs.
#![forbid(unsafe_code)]

mod alternates;
mod at;
mod blame;
mod habit;
mod instances;
mod memory;
mod output;
mod primary;
mod quiet;
mod replay;
mod state;
mod verdict;

pub use habit::Habit;
pub use instances::Instance;
pub use memory::MemoryError;
pub use output::OutputDifference;
pub use primary::{Primary, classify};
pub use state::{ReplayOutcome, WordDifference};
pub use verdict::{Class, Evidence, InstanceCounts, Shown, ShownOrder, Verdict};

use std::collections::BTreeSet;
use std::time::Duration;

/// A race to be classified: two sites.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// For files and messages.
    pub id: String,
    /// Instructions of one site.
    pub first: BTreeSet<u64>,
    /// Instructions of the other.
    pub second: BTreeSet<u64>,
}

/// Where what is recorded is left, and classification begins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Start {
    /// With the program's second thread: before that, nobody has a choice.
    #[default]
    SecondThread,
    /// Before the first access of a race: the recording has a schedule of its own that leads there.
    FirstAccess,
}

/// How to classify.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it begins.
    pub start: Start,
    /// Alternates with other schedules after the race, for each instance (M_a).
    pub schedules: u32,
    /// Alternates are followed to the program's end; without, replay analysis is all there is.
    pub consequences: bool,
    /// Instances of a race that are tried; the others are counted.
    pub instances_max: usize,
    /// Of every random choice.
    pub seed: u64,
    /// Copies at a time.
    pub jobs: usize,
    /// Longest time of one copy: a safety net.
    pub time_limit: Option<Duration>,
    /// Instructions of a turn in alternates.
    pub quantum: u64,
    /// Instructions of a segment after its access.
    pub segment_max: u64,
    /// Functions that end a segment: where threads synchronise.
    pub switch_points: Vec<u64>,
    /// Those of them that take a lock.
    pub locking: Vec<u64>,
    /// Expressions over global variables that shall hold, as written.
    pub expressions: Vec<String>,
    /// What shall hold, besides what the program itself asserts.
    pub properties: Vec<verdict_protocol::Property>,
    /// Functions that free their first argument: a racing call of one writes the whole block.
    pub freeing: Vec<u64>,
    /// Those of them after which the block is gone for sure.
    pub releasing: Vec<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            start: Start::default(),
            schedules: 2,
            consequences: true,
            instances_max: 4,
            seed: 0,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            time_limit: None,
            quantum: 100_000,
            segment_max: 1_000_000,
            switch_points: Vec::new(),
            locking: Vec::new(),
            expressions: Vec::new(),
            properties: Vec::new(),
            freeing: Vec::new(),
            releasing: Vec::new(),
        }
    }
}

impl Options {
    /// Functions at whose beginning properties are looked at: where segments end.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = u64> {
        let any = !self.properties.is_empty();
        self.switch_points.iter().copied().filter(move |_| any)
    }
}

/// Why nothing can be said.
#[derive(thiserror::Error, Debug)]
pub enum ClassifyError {
    /// The program could not be run.
    #[error(transparent)]
    Launch(#[from] verdict_launch::LaunchError),
    /// A property makes no sense.
    #[error("{why}")]
    Property {
        /// One sentence.
        why: String,
    },
    /// The program could not be run to its end in a private world.
    #[error("the program cannot be run in a private world: {why}")]
    Refused {
        /// One sentence.
        why: String,
    },
}
