//! Exploring: one executor runs the guest to a moment and stays there; every order makes a copy of it that goes on in its
//! own way. Orders and answers are datagrams, one JSON document each; what a copy has to report goes into a file.

use crate::{CallStack, Report};
use serde::{Deserialize, Serialize};
use verdict_explore::{AlternateState, Directed, Facing, RacingAccess};

/// What an executor is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Go on as ever to this moment, and say that it is reached.
    Advance(Moment),
    /// Make a copy that runs to its end.
    Run(RunOrder),
    /// End a copy.
    Kill {
        /// Which one.
        id: u64,
    },
}

/// A moment of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Moment {
    /// There is a second thread: before that, nobody has a choice.
    SecondThread,
    /// This thread has retired this many instructions and is about to execute the next one.
    At {
        /// Numbered from 0 in the order of creation.
        thread: u32,
        /// Its own instructions.
        instructions: u64,
    },
    /// The execution has ended.
    End,
}

/// How a copy goes on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunOrder {
    /// Names it in answers.
    pub id: u64,
    /// The file that its [`Exploration`] goes into.
    pub report: Vec<u8>,
    /// The file that the whole execution is recorded into.
    pub recording: Option<Vec<u8>>,
    /// Who runs.
    pub schedule: RunSchedule,
    /// Instructions watched for the schedule's sake, and occasions to switch.
    pub watched: Vec<u64>,
    /// The run ends after so many instructions from here, and says where it was.
    pub instructions_max: Option<u64>,
    /// The run ends when the two accesses have been made, for their effect on memory to be compared.
    pub stop_after: Option<StopAfter>,
}

/// Who runs in a copy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RunSchedule {
    /// As it would have gone on.
    Same,
    /// Threads take turns.
    RoundRobin {
        /// Instructions of a turn.
        quantum: u64,
    },
    /// The seed decides.
    Random {
        /// Of every choice.
        seed: u64,
        /// Half the longest turn.
        quantum: u64,
    },
    /// Steered to a race.
    Directed(Directed),
    /// Two accesses in the other order.
    Alternate {
        /// The one that comes next in the original.
        first: RacingAccess,
        /// The one that shall be made before it.
        second: RacingAccess,
        /// Instructions of a turn.
        quantum: u64,
        /// Randomises everything but the two.
        seed: Option<u64>,
    },
}

/// A run that is only followed until both threads have ended the segment of their access.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StopAfter {
    /// Each thread and the number of its own instructions at which it is stopped.
    pub threads: Vec<(u32, u64)>,
}

/// What an executor answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The moment is reached.
    Reached {
        /// Instructions of all threads.
        instructions: u64,
    },
    /// A copy is gone, and its report is complete, if there is one.
    Gone {
        /// Which one.
        id: u64,
        /// What ended it, as the kernel says: 0 after a report.
        status: i32,
    },
    /// No copy could be made.
    Failed {
        /// Which one.
        id: u64,
        /// One sentence.
        why: String,
    },
}

/// What a copy has to say.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Exploration {
    /// How it ended.
    pub report: Report,
    /// The races that were created, by a schedule that was steered to one.
    pub facings: Vec<Facing>,
    /// Where the two threads of the first one stood.
    pub faced: Option<Box<[CallStack; 2]>>,
    /// How far an alternate came.
    pub alternate: Option<AlternateState>,
    /// All output, cut where it is too long to be kept.
    pub output: Vec<OutputPiece>,
    /// Hash of all output.
    pub output_hash: u64,
    /// Bytes of all output.
    pub output_bytes: u64,
}

/// What one call wrote.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputPiece {
    /// 1 is standard output, 2 standard error.
    pub stream: u32,
    /// What.
    pub bytes: Vec<u8>,
}
