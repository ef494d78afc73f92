//! What the executor is to run, and how.

use crate::Sample;
use serde::{Deserialize, Serialize};
use verdict_recording::Position;

/// One run. Two runs with equal configs, of equal files in equal surroundings, are equal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExecutorConfig {
    /// The program as typed; without a slash it is searched in the guest's PATH.
    pub program: Vec<u8>,
    /// Argument vector, the program's own name first.
    pub argv: Vec<Vec<u8>>,
    /// The guest's environment, `NAME=value` each. The executor's own is empty.
    pub env: Vec<Vec<u8>>,
    /// Where the guest's time comes from.
    pub clock: Clock,
    /// Where every random choice comes from: the schedule's, and the randomness the guest asks for.
    pub seed: u64,
    /// After how many instructions a thread must let others run.
    pub quantum: u64,
    /// Who runs next.
    pub schedule: SchedulePolicy,
    /// Whether programs that the guest starts run under the engine, too.
    pub follow_children: bool,
    /// What happens to the guest's memory accesses.
    pub accesses: AccessLog,
    /// Of which parts of the run plain accesses are told; of all if nothing is said.
    #[serde(default)]
    pub sample: Option<Sample>,
    /// Through what the run is told, see `verdict_stream`.
    pub events: Option<Telling>,
    /// Guest addresses of instructions before which the scheduler is asked who runs.
    pub watched: Vec<u64>,
    /// Whether the time of each part is measured and system calls are counted by name.
    pub stats: bool,
    /// Whether the run is recorded, or repeats one that was.
    pub mode: Mode,
    /// Where the guest's files and connections are.
    #[serde(default)]
    pub world: World,
    /// Set for an executor that explores: the socket that orders come from. The controller's `launch` fills it in.
    pub explore: Option<i32>,
    /// Set when a guest replaces its program: what stays.
    pub inherited: Option<Inherited>,
}

/// The descriptors through which a run is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Telling {
    /// Memory that is shared with who reads.
    pub memory: i32,
    /// The pipe that wakes who reads.
    pub bell: i32,
}

/// What a program keeps of the one it replaces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inherited {
    /// It is a child of the program that the user named: it ends as a native process, without a report.
    pub child: bool,
    /// The guest's process id.
    pub pid: i32,
    /// Blocked signals.
    pub signal_mask: u64,
    /// Ignored signals, one bit each.
    pub ignored: u64,
    /// Instructions that the programs before have retired.
    pub retired: u64,
    /// What the guest's clock has skipped so far.
    pub skipped_ns: u64,
    /// When the first of these programs began, by the host's clock.
    pub started_ns: u64,
}

impl ExecutorConfig {
    /// Instructions in a row, unless told otherwise.
    pub const DEFAULT_QUANTUM: u64 = 100_000;

    /// A run of `program` with everything at its default.
    #[must_use]
    pub fn new(program: Vec<u8>, argv: Vec<Vec<u8>>, env: Vec<Vec<u8>>) -> Self {
        Self {
            program,
            argv,
            env,
            clock: Clock::Virtual,
            seed: 0,
            quantum: Self::DEFAULT_QUANTUM,
            schedule: SchedulePolicy::RoundRobin,
            follow_children: false,
            accesses: AccessLog::Off,
            events: None,
            watched: Vec::new(),
            stats: false,
            mode: Mode::Live,
            world: World::Host,
            explore: None,
            sample: None,
            inherited: None,
        }
    }

    /// The guest's PATH.
    #[must_use]
    pub fn search_path(&self) -> Option<&[u8]> {
        self.env
            .iter()
            .find_map(|variable| variable.strip_prefix(b"PATH="))
    }
}

/// Where the outside world's answers come from, and where they go. The descriptors are those that the executor
/// inherits; the controller's `launch` fills them in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// From the outside world, and nowhere.
    #[default]
    Live,
    /// From the outside world, and into a recording.
    Record {
        /// The recording, open for writing and empty.
        fd: i32,
        /// Whether the files that are mapped are copied into it.
        attach_files: bool,
        /// The size it may have.
        max_size: Option<u64>,
        /// Set when a guest replaces its program: where the recording goes on.
        resume: Option<Position>,
    },
    /// From a recording. The outside world is not asked and not changed.
    Replay {
        /// The recording, open for reading and at its beginning.
        fd: i32,
        /// Where to stop early.
        until: Option<Until>,
        /// How often the guest has replaced its program so far.
        replaced: u32,
    },
}

impl Mode {
    /// The recording's descriptor, to be filled in.
    pub fn descriptor_mut(&mut self) -> Option<&mut i32> {
        match self {
            Self::Live => None,
            Self::Record { fd, .. } | Self::Replay { fd, .. } => Some(fd),
        }
    }
}

/// Where the guest's files and connections are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// On the host: what the guest changes is changed.
    #[default]
    Host,
    /// In the executor alone: the guest sees the host's files, and what it does to them goes nowhere.
    Private {
        /// What the guest reads from standard input; the end of it follows.
        input: Vec<u8>,
    },
    /// In the recording that is replayed, while one in the executor alone keeps step: the guest can leave the recording
    /// and go on there.
    Followed,
}

/// A moment of an execution: when this thread has retired this many instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Until {
    /// Numbered from 0 in the order of creation.
    pub thread: u32,
    /// Its own instructions.
    pub instructions: u64,
}

/// Where the guest's time comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// From the instructions executed; sleeping takes no time. Repeatable.
    Virtual,
    /// From the machine.
    Real,
}

/// Who runs next, where more than one thread could.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulePolicy {
    /// Threads take turns.
    RoundRobin,
    /// The seed decides.
    Random,
}

/// What happens to the guest's memory accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessLog {
    /// They are not looked at.
    Off,
    /// They are logged and thrown away: measures the cost of logging.
    Discard,
    /// They are logged, counted and hashed: two runs with one hash did the same.
    Hash,
    /// They are logged and told, with all that it takes to find races in them.
    Tell,
    /// As much of them is told as it takes to see which bytes may race.
    Sift,
}
