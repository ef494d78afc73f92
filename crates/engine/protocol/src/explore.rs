//! Exploring: one executor runs the guest to a moment and stays there; every order makes a copy of it that goes on in its
//! own way. Orders and answers are datagrams, one JSON document each; what a copy has to report goes into a file.

use crate::{CallStack, MappedModule, Property, Report};
use serde::{Deserialize, Serialize};
use verdict_explore::{
    AccessOrder, AlternateState, Directed, Facing, RacingAccess, SegmentEnd, SegmentsStart,
    SegmentsState,
};

/// What an executor is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Go on as ever to this moment, and say that it is reached.
    Advance(Moment),
    /// Leave the recording that is followed, here, and go on in the private world.
    Leave {
        /// Where input comes from then.
        input: LaterInput,
        /// The file that the execution is recorded into, from its beginning: what the recording has until here, and then
        /// what happens.
        recording: Option<Vec<u8>>,
    },
    /// Make a copy that runs to its end.
    Run(Box<RunOrder>),
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

/// Where an execution that has left its recording gets input from: standard input, terminals, connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaterInput {
    /// Nowhere: all of it is at its end.
    EndOfFile,
    /// From the recording, in the order in which it came then; the end follows.
    Recorded,
    /// Nowhere: an execution that asks for some stops there.
    Stop,
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
    /// Which of the watched instructions are calls whose callee's accesses count as theirs. One that turns out to be
    /// no call is watched like any other.
    #[serde(default)]
    pub calls: Vec<WatchedCall>,
    /// Where functions begin that free their first argument: a watched call of one writes the whole block.
    #[serde(default)]
    pub freeing: Vec<u64>,
    /// Those of them after which the block is gone for sure.
    #[serde(default)]
    pub releasing: Vec<u64>,
    /// Functions that free their first argument, and whose blocks are withheld from the allocator: freed memory is not handed
    /// out again.
    #[serde(default)]
    pub withholding: Vec<u64>,
    /// The current thread, which stands before an update in place, has loaded what it updates already: the store comes when
    /// it runs again.
    #[serde(default)]
    pub loaded: bool,
    /// A racing call that is let pass is let pass as a whole, not just its next access.
    #[serde(default)]
    pub whole_calls: bool,
    /// Nothing that a watched call does atomically is what is looked for.
    #[serde(default)]
    pub plain_calls: bool,
    /// The run ends after so many instructions from here, and says where it was.
    pub instructions_max: Option<u64>,
    /// So many times that a watched instruction is about to run are noted.
    pub stops_max: usize,
    /// Whoever writes this byte of output: how it came to do so is told.
    #[serde(default)]
    pub writer_of: Option<OutputPlace>,
    /// What has to happen before the schedule begins; it begins at once if nothing is said.
    #[serde(default)]
    pub approach: Option<Approach>,
    /// At its end the run says what it has changed in memory.
    pub compare_memory: bool,
    /// What shall hold: the run ends where something does not.
    #[serde(default)]
    pub properties: Vec<Property>,
}

/// Until a thread comes to a watched instruction, all run for long turns: its schedule is told apart from how it got there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Approach {
    /// Who.
    pub thread: u32,
    /// Where.
    pub pc: u64,
    /// The how many-th time it comes there, from 1.
    pub nth: u64,
    /// Instructions of a turn until then.
    pub quantum: u64,
    /// It has its turn before others.
    pub preferred: bool,
}

/// A call of the program that stands for what the called function does to memory: the scheduler hears of the call as the
/// place, and is asked before each access to the bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WatchedCall {
    /// The call, or the jump.
    pub pc: u64,
    /// Bytes that matter; none means all that may be the program's.
    pub bytes: Vec<Bytes>,
}

/// Some bytes of the guest's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bytes {
    /// The first.
    pub address: u64,
    /// How many.
    pub len: u64,
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
        /// Whether it is, or the first one is kept waiting for it only.
        order: AccessOrder,
        /// Instructions of a turn.
        quantum: u64,
        /// Randomises everything but the two.
        seed: Option<u64>,
        /// Who has made the second access goes on, and the first thread gets its turn when there is one.
        #[serde(default)]
        stays: bool,
    },
    /// The segments of two accesses, one after the other, and no more.
    Segments {
        /// The access whose segment comes first.
        first: RacingAccess,
        /// The other one.
        second: RacingAccess,
        /// Instructions of a segment after its access.
        length_max: u64,
        /// Where the threads shall stop, in the order of the accesses; where their segments end if that is not said.
        wanted: Option<[SegmentEnd; 2]>,
        /// Who is brought to its access first.
        start: SegmentsStart,
        /// Times that the first thread passes where it shall stop.
        skips: u32,
    },
}

/// A watched instruction that was about to run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WatchedStop {
    /// Which one.
    pub pc: u64,
    /// In which thread.
    pub thread: u32,
    /// Instructions that the thread had retired.
    pub instructions: u64,
    /// Instructions that all threads had retired.
    pub retired: u64,
    /// The same two counts when the access began: before the call, for what is done inside of one.
    pub begun: (u64, u64),
    /// What it was about to access: address, length, whether it writes.
    pub accesses: Vec<(u64, u64, bool)>,
    /// What is at the first address, up to eight bytes of it.
    #[serde(default)]
    pub value: u64,
}

/// What a copy has changed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryChanges {
    /// Words of writable memory that differ from the original's, and what they are now.
    pub words: Vec<(u64, u64)>,
    /// There are more.
    pub cut: bool,
    /// Where the racing threads have frames that are newer than their accesses: from, to.
    pub newer: Vec<(u64, u64)>,
    /// Everybody's registers.
    pub threads: Vec<ThreadState>,
}

/// Where a thread is, and what it keeps across calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ThreadState {
    /// Numbered from 0 in the order of creation.
    pub thread: u32,
    /// Its next instruction.
    pub rip: u64,
    /// Instructions it has retired.
    pub instructions: u64,
    /// Signals that it has not taken yet, a bit each.
    pub signals: u64,
    /// rbx, rbp, r12 to r15.
    pub kept: [u64; 6],
}

/// A thread in a loop that it cannot leave by itself, and that nobody who could run can end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Looping {
    /// Numbered from 0 in the order of creation.
    pub thread: u32,
    /// The memory that decides, and that the loop does not write: addresses and lengths.
    pub depends_on: Vec<(u64, u64)>,
}

/// What an executor answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The moment is reached.
    Reached {
        /// Instructions of all threads.
        instructions: u64,
    },
    /// The recording is left, or cannot be.
    Left {
        /// One sentence, if it cannot be.
        failure: Option<String>,
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
    /// How far two segments came.
    pub segments: Option<SegmentsState>,
    /// Where they ended.
    pub segment_ends: [Option<SegmentEnd>; 2],
    /// Threads that loop for ever, where that is why the run ended.
    pub looping: Vec<Looping>,
    /// The property that does not hold, where that is why the run ended.
    #[serde(default)]
    pub violated: Option<String>,
    /// How memory was misused, where that is why the run ended.
    #[serde(default)]
    pub misuse: Option<String>,
    /// Watched instructions, in order, where they were to be noted.
    pub stops: Vec<WatchedStop>,
    /// There were more.
    pub stops_cut: bool,
    /// What was changed, where that was asked for.
    pub memory: Option<Box<MemoryChanges>>,
    /// Files that were mapped to be executed.
    pub modules: Vec<MappedModule>,
    /// All output, cut where it is too long to be kept.
    pub output: Vec<OutputPiece>,
    /// Hash of all output.
    pub output_hash: u64,
    /// Bytes of all output.
    pub output_bytes: u64,
    /// Where the thread stood that wrote the byte that was asked for.
    #[serde(default)]
    pub writer: Option<Box<CallStack>>,
    /// How often it asked for input that there was none of.
    pub input_missing: u64,
    /// How often a thread lost its turn that could have gone on, since the program began.
    #[serde(default)]
    pub preemptions: u64,
}

/// A byte of output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputPlace {
    /// 1 is standard output, 2 standard error.
    pub stream: u32,
    /// Bytes of that stream before it.
    pub position: u64,
}

/// What one call wrote.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputPiece {
    /// 1 is standard output, 2 standard error.
    pub stream: u32,
    /// What.
    pub bytes: Vec<u8>,
}
