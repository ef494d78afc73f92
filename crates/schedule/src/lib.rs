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
}

/// Decides who runs at each decision point.
pub trait Scheduler {
    /// Chooses among `point.runnable`.
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision;
}
