//! From candidate races to confirmed ones (Sen 2008): runs of the program, steered until two threads really stand before
//! two conflicting accesses, and what became of each run after that.
//!
//! Every run is determined by its seed: the same runs give the same results, whatever their number at a time. Runs
//! share the beginning of the program, up to its second thread: before that, nobody has a choice.
#![forbid(unsafe_code)]

mod candidate;
mod ending;
mod learn;
mod runs;

pub use candidate::Candidate;
pub use ending::{Ended, EndedKind};
pub use runs::{Baseline, Confirmation, Options, Progress, SeenError, confirm, modules};
pub use verdict_explore::Aim;

/// Why nothing can be said.
#[derive(thiserror::Error, Debug)]
pub enum ConfirmError {
    /// The program could not be run.
    #[error(transparent)]
    Launch(#[from] verdict_launch::LaunchError),
    /// It never had a second thread.
    #[error("the program ended before it had a second thread ({how}): nothing in it can race")]
    OneThread {
        /// How it ended.
        how: String,
    },
    /// It was refused, or the engine failed.
    #[error("the program cannot be run in a private world: {why}")]
    Refused {
        /// One sentence.
        why: String,
    },
}
