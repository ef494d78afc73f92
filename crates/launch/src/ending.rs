//! From what the process did and what it said to how the run ended.

use verdict_protocol::{FrameError, Outcome, Report, Stats};

use crate::watch::ProcessEnd;

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// The executor said how, and lived until it had.
    Reported(Box<Report>),
    /// The executor was killed from outside, by a user or by a kernel short of memory.
    Killed,
    /// The executor crashed or ended without a word.
    Crashed {
        /// What is known, as the end of a sentence about the executor.
        how: String,
    },
    /// The executor showed no sign of life and was killed.
    Hung,
}

const SIGKILL: i32 = 9;
/// Signals that are somebody's wish rather than a crash: SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM.
const WISHES: [i32; 5] = [1, 2, 3, 13, 15];

pub(crate) fn decide(end: ProcessEnd, report: Result<Report, FrameError>) -> Ending {
    match (end, report) {
        (ProcessEnd::Silent, _) => Ending::Hung,
        (_, Ok(report)) => Ending::Reported(Box::new(report)),
        (ProcessEnd::Signalled(SIGKILL), Err(_)) => Ending::Killed,
        // Before the guest had begun, or while nobody could say so: the wish was granted all the same.
        (ProcessEnd::Signalled(signal), Err(FrameError::Empty)) if WISHES.contains(&signal) => {
            let outcome = Outcome::Signalled {
                signal,
                fault: None,
            };
            Ending::Reported(Box::new(Report {
                outcome,
                stats: Stats::default(),
            }))
        }
        (ProcessEnd::Signalled(signal), Err(_)) => Ending::Crashed {
            how: format!("crashed with signal {signal}"),
        },
        (ProcessEnd::Exited(code), Err(FrameError::Empty)) => Ending::Crashed {
            how: format!("ended with code {code} and without a report"),
        },
        (ProcessEnd::Exited(code), Err(error)) => Ending::Crashed {
            how: format!("ended with code {code}, and of its report {error}"),
        },
    }
}
