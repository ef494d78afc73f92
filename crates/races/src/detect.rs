//! One run, observed, and what the detectors say to it.

use verdict_detect::{AccessKind, Algorithm, DetectError, Findings, PairBy, Race, detect};
use verdict_events::{Event, EventKind, Names, TraceError, TraceSource};
use verdict_launch::{Ending, LaunchError, LaunchOptions, run_told};
use verdict_observe::{ProgramTrace, Seen};
use verdict_protocol::{AccessLog, ExecutorConfig};

/// What to run and how to look.
#[derive(Clone, Debug)]
pub struct DetectRequest<'a> {
    /// The program; how its accesses are logged is not for the caller to say.
    pub config: ExecutorConfig,
    /// How the executor is started.
    pub launch: LaunchOptions,
    /// Who looks, side by side.
    pub algorithms: &'a [Algorithm],
    /// What makes two accesses the same side of a race.
    pub by: PairBy,
    /// What the detectors get to know of locks.
    pub locks: Locks,
}

/// What detectors get to know of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Locks {
    /// All there is.
    #[default]
    Seen,
    /// Nothing, as if locks ordered nothing: an imprecise detector, whose false alarms others are to recognise.
    Ignored,
}

/// A trace without its locks.
struct Lockless<'a, S>(&'a mut S);

impl<S: TraceSource> TraceSource for Lockless<'_, S> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        loop {
            self.0.next_batch(batch)?;
            let at_end = batch.is_empty();
            batch.retain(|event| {
                !matches!(event.kind, EventKind::Acquire(..) | EventKind::Release(..))
            });
            if at_end || !batch.is_empty() {
                return Ok(());
            }
        }
    }

    fn names(&self) -> &dyn Names {
        self.0.names()
    }
}

/// What was found.
#[derive(Debug)]
pub struct Detected {
    /// How the run ended.
    pub ending: Ending,
    /// One for each algorithm.
    pub findings: Vec<Findings>,
    /// Where the sites are, and what was taken for synchronisation.
    pub seen: Seen,
}

/// Why nothing can be said.
#[derive(thiserror::Error, Debug)]
pub enum ProgramError {
    /// There was no run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// There was one, but it could not be followed.
    #[error(transparent)]
    Detect(#[from] DetectError),
}

/// Runs a program and finds its races. `progress` is told how many events there were so far.
pub fn detect_program(
    request: &DetectRequest<'_>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Detected, ProgramError> {
    let config = ExecutorConfig {
        accesses: AccessLog::Tell,
        ..request.config.clone()
    };
    let (ending, heard) = run_told(&config, &request.launch, |told| {
        let mut trace = ProgramTrace::new(told);
        let detectors = request
            .algorithms
            .iter()
            .map(|algorithm| algorithm.detector(request.by))
            .collect();
        let found = match request.locks {
            Locks::Seen => detect(&mut trace, detectors, progress),
            Locks::Ignored => detect(&mut Lockless(&mut trace), detectors, progress),
        };
        found.map(|findings| (findings, trace.finish()))
    })?;
    let (mut findings, seen) = heard?;
    for finding in &mut findings {
        finding.races.retain(|race| !is_mixed(race, &seen));
    }
    Ok(Detected {
        ending,
        findings,
        seen,
    })
}

/// True if one side is atomic and the other a plain access from before it was known that the variable is atomic: on this
/// CPU the instructions do not tell a plain load from an atomic one.
fn is_mixed(race: &Race, seen: &Seen) -> bool {
    let atomic =
        |kind: AccessKind| matches!(kind, AccessKind::AtomicRead | AccessKind::AtomicWrite);
    let [first, second] = race.accesses.map(|side| atomic(side.kind));
    first != second && race.locations.iter().all(|place| seen.is_atomic(*place))
}
