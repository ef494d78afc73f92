//! Who runs next. Every scheduling decision of an execution passes the one trait [`Scheduler`].
//!
//! A scheduler is a deterministic state machine: the same decision points in the same order give the same
//! choices. It reads no clock and no hash order; randomness comes from [`RandomScheduler`]'s seed alone.
#![forbid(unsafe_code)]

mod random;
mod round_robin;

pub use random::{RandomScheduler, SplitMix};
pub use round_robin::RoundRobin;
use verdict_events::ThreadId;

/// Why somebody has to decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The execution starts.
    Start,
    /// The running thread waits for something.
    Blocked,
    /// The running thread has ended.
    Exited,
    /// The running thread offers the processor (`sched_yield`).
    Yielded,
    /// The running thread has completed a system call and could go on.
    SystemCall,
    /// The running thread has used up its quantum.
    QuantumEnd,
    /// The running thread stands before a watched instruction. [`Decision::Continue`] lets it run; who gives another
    /// thread the turn is asked again when this one is chosen again.
    Watched,
}

/// A place where the scheduler is asked.
#[derive(Clone, Copy, Debug)]
pub struct DecisionPoint<'a> {
    /// Why.
    pub reason: Reason,
    /// Who has been running; it may not be runnable any more.
    pub current: Option<ThreadId>,
    /// Who could run, ascending and never empty.
    pub runnable: &'a [ThreadId],
    /// Instructions that all threads together have retired.
    pub retired: u64,
    /// What the running thread is about to do, where that is why somebody has to decide.
    pub next: Option<Next<'a>>,
}

/// A watched instruction that is about to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next<'a> {
    /// Its address.
    pub pc: u64,
    /// The memory it will access.
    pub accesses: &'a [NextAccess],
}

/// Memory that an instruction will access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextAccess {
    /// First byte.
    pub address: u64,
    /// How many.
    pub len: u64,
    /// It writes them.
    pub write: bool,
}

impl NextAccess {
    /// True if the two conflict: a common byte, and one of them writes it.
    #[must_use]
    pub fn conflicts(&self, other: &NextAccess) -> bool {
        (self.write || other.write)
            && self.address < other.address.saturating_add(other.len)
            && other.address < self.address.saturating_add(self.len)
    }
}

/// A scheduler's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The current thread goes on with what is left of its quantum. Only where it is runnable.
    Continue,
    /// This thread runs for at most so many instructions.
    Run {
        /// One of the runnable threads.
        thread: ThreadId,
        /// At least 1.
        instructions_max: u64,
    },
    /// None of those who could run may: time passes until somebody else wakes up, and the scheduler is asked again. Only
    /// where somebody waits for a time.
    Wait,
}

/// Decides who runs at each decision point.
pub trait Scheduler {
    /// Chooses among `point.runnable`.
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision;
}
