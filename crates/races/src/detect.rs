//! One run, observed, and what the detectors say to it.
//!
//! A run that can be repeated is looked at twice: first to see which bytes may race, which is quick, then with detectors that
//! read only what happens to these. Most runs of most programs have none, and are looked at once.

use verdict_detect::{
    AccessKind, Algorithm, DetectError, Detector, Findings, PairBy, Race, SuspectBytes, Suspects,
    detect,
};
use verdict_events::{Event, EventKind, Names, TraceError, TraceSource};
use verdict_launch::{Ending, LaunchError, LaunchOptions, run_told};
use verdict_observe::{Followed, Orders, ProgramTrace, Seen, Surveyed, Told, survey};
use verdict_protocol::{AccessLog, ExecutorConfig};

use crate::progress::{Look, Watcher, counted};

/// What to run and how to look.
pub struct DetectRequest<'a> {
    /// The program; how its accesses are logged is not for the caller to say.
    pub config: ExecutorConfig,
    /// How the executor is started.
    pub launch: LaunchOptions,
    /// How to run it a second time, doing the same.
    pub again: &'a dyn Fn() -> Result<Run, String>,
    /// Who looks, side by side.
    pub algorithms: &'a [Algorithm],
    /// What makes two accesses the same side of a race.
    pub by: PairBy,
    /// What the detectors get to know of locks.
    pub locks: Locks,
    /// Which threads atomic operations order.
    pub orders: Orders,
    /// How the first look is taken.
    pub first_look: FirstLook,
    /// How many instructions the run has, if that is known before.
    pub instructions: Option<u64>,
}

/// How it is found out which bytes may race at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FirstLook {
    /// From what the executor finds worth telling, where that says enough.
    #[default]
    Sifted,
    /// From everything: what was taken for synchronisation is counted, too.
    Whole,
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

/// What a run takes.
#[derive(Clone, Debug)]
pub struct Run {
    /// The program.
    pub config: ExecutorConfig,
    /// How the executor is started.
    pub launch: LaunchOptions,
}

/// What was found.
#[derive(Debug)]
pub struct Detected {
    /// How the first run ended.
    pub ending: Ending,
    /// One for each algorithm; none if there was nothing to look at.
    pub findings: Vec<Findings>,
    /// Where the sites are, and what was taken for synchronisation.
    pub seen: Seen,
    /// The bytes that detectors were told of.
    pub(crate) suspects: Option<SuspectBytes>,
}

impl Detected {
    /// Guest instructions of all threads, if the run could say at its end.
    #[must_use]
    pub fn instructions(&self) -> Option<u64> {
        instructions(&self.ending)
    }

    /// True if it is not known that there was one thread only.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        match &self.ending {
            Ending::Reported(report) => report.stats.threads.len() > 1,
            _ => true,
        }
    }
}

fn instructions(ending: &Ending) -> Option<u64> {
    match ending {
        Ending::Reported(report) => Some(report.stats.instructions),
        _ => None,
    }
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
    /// The first look has shown too little.
    #[error("the run could not be repeated to look at all that it does: {why}")]
    Whole {
        /// What went wrong.
        why: String,
    },
    /// There are races, but where they are could not be found out.
    #[error(
        "{granules} places in memory may race, but the run could not be repeated to find out where: {why}"
    )]
    Again {
        /// How many, of eight bytes each.
        granules: u64,
        /// What went wrong.
        why: String,
    },
}

/// Runs a program and finds its races. `watcher` is told how much of the run was looked at so far.
///
/// # Errors
/// When there is no run, or it cannot be followed or repeated.
pub fn detect_program(
    request: &DetectRequest<'_>,
    watcher: &mut Watcher<'_>,
) -> Result<Detected, ProgramError> {
    if request.algorithms.contains(&Algorithm::Hybrid) || request.locks == Locks::Ignored {
        return detect_all(request, watcher);
    }
    let (ending, surveyed) = first_look(request, Aim::Races, watcher)?;
    detect_suspects(request, Aim::Races, ending, surveyed, watcher)
}

/// What looks at a run are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aim {
    Races,
    Predictions,
}

impl Aim {
    fn suspects(self) -> Suspects {
        match self {
            Aim::Races => Suspects::new(),
            Aim::Predictions => Suspects::of_predictions(),
        }
    }

    /// What is said of a look.
    fn look(self, look: Look) -> Look {
        match self {
            Aim::Races => look,
            Aim::Predictions => Look::Predictions,
        }
    }
}

/// Detectors read only what happens to bytes that may race.
pub(crate) fn detect_suspects(
    request: &DetectRequest<'_>,
    aim: Aim,
    ending: Ending,
    surveyed: Surveyed,
    watcher: &mut Watcher<'_>,
) -> Result<Detected, ProgramError> {
    let (algorithms, by, orders) = (request.algorithms, request.by, request.orders);
    if surveyed.suspects.is_empty() {
        return Ok(Detected {
            ending,
            findings: Vec::new(),
            seen: surveyed.seen,
            suspects: None,
        });
    }
    let suspects = surveyed.suspects;
    let again = (request.again)().map_err(|why| ProgramError::Again {
        granules: suspects.granules(),
        why,
    })?;
    let mut tell = counted(aim.look(Look::Races), instructions(&ending), watcher);
    let (_, heard) = run_told(&told(&again.config), &again.launch, |told| {
        let trace = ProgramTrace::only(Followed::new(told, &mut tell), suspects.clone());
        let mut trace = trace.with_orders(orders);
        let found = detect(&mut trace, detectors(algorithms, by), &mut |_| {});
        found.map(|findings| (findings, trace.finish()))
    })?;
    let (findings, seen) = heard?;
    Ok(Detected {
        ending,
        findings: without_mixed(findings, &seen),
        seen,
        suspects: Some(suspects),
    })
}

/// Which bytes may race, by as few looks as that takes.
pub(crate) fn first_look(
    request: &DetectRequest<'_>,
    aim: Aim,
    watcher: &mut Watcher<'_>,
) -> Result<(Ending, Surveyed), ProgramError> {
    let (config, how) = match request.first_look {
        FirstLook::Sifted => {
            let accesses = AccessLog::Sift;
            let config = request.config.clone();
            (ExecutorConfig { accesses, ..config }, Told::New)
        }
        FirstLook::Whole => (told(&request.config), Told::All),
    };
    let orders = request.orders;
    let mut tell = counted(aim.look(Look::First), request.instructions, watcher);
    let look = |from| {
        let mut from = Followed::new(from, &mut tell);
        let surveyed = survey(&mut from, how, aim.suspects(), orders);
        // Where that says too little, nobody listens to the rest: it takes its time nevertheless.
        let to_end = from.to_end();
        (surveyed, to_end)
    };
    let (ending, (heard, to_end)) = run_told(&config, &request.launch, look)?;
    drop(tell);
    to_end.map_err(cannot_follow)?;
    let surveyed = heard.map_err(cannot_follow)?;
    if surveyed.unfit.is_none() {
        return Ok((ending, surveyed));
    }
    let again = (request.again)().map_err(|why| ProgramError::Whole { why })?;
    let total = request.instructions.or(instructions(&ending));
    let mut tell = counted(aim.look(Look::Whole), total, watcher);
    let look = |from| {
        let from = Followed::new(from, &mut tell);
        survey(from, Told::All, aim.suspects(), orders)
    };
    let (_, heard) = run_told(&told(&again.config), &again.launch, look)?;
    Ok((ending, heard.map_err(cannot_follow)?))
}

/// The same, with detectors that read everything at once.
fn detect_all(
    request: &DetectRequest<'_>,
    watcher: &mut Watcher<'_>,
) -> Result<Detected, ProgramError> {
    let (algorithms, by, locks) = (request.algorithms, request.by, request.locks);
    let orders = request.orders;
    let config = told(&request.config);
    let mut tell = counted(Look::Races, request.instructions, watcher);
    let (ending, heard) = run_told(&config, &request.launch, |told| {
        let trace = ProgramTrace::new(Followed::new(told, &mut tell));
        let mut trace = trace.with_orders(orders);
        let detectors = detectors(algorithms, by);
        let found = match locks {
            Locks::Seen => detect(&mut trace, detectors, &mut |_| {}),
            Locks::Ignored => detect(&mut Lockless(&mut trace), detectors, &mut |_| {}),
        };
        found.map(|findings| (findings, trace.finish()))
    })?;
    let (findings, seen) = heard?;
    Ok(Detected {
        ending,
        findings: without_mixed(findings, &seen),
        seen,
        suspects: None,
    })
}

/// Runs a program once and hands all that happens to `reader`.
///
/// # Errors
/// When there is no run.
pub fn trace_program<T: Send>(
    run: &Run,
    reader: impl FnOnce(&mut dyn TraceSource) -> T + Send,
) -> Result<(Ending, T), ProgramError> {
    let read = |told| reader(&mut ProgramTrace::new(told));
    Ok(run_told(&told(&run.config), &run.launch, read)?)
}

/// The config of a run that is told about.
pub(crate) fn told(config: &ExecutorConfig) -> ExecutorConfig {
    ExecutorConfig {
        accesses: AccessLog::Tell,
        ..config.clone()
    }
}

fn detectors(algorithms: &[Algorithm], by: PairBy) -> Vec<Box<dyn Detector>> {
    let all = algorithms.iter();
    all.map(|algorithm| algorithm.detector(by)).collect()
}

pub(crate) fn cannot_follow(error: impl std::error::Error + Send + Sync + 'static) -> ProgramError {
    let error = TraceError::Io {
        file: "<the executor>".into(),
        source: std::io::Error::other(error),
    };
    ProgramError::Detect(error.into())
}

fn without_mixed(mut findings: Vec<Findings>, seen: &Seen) -> Vec<Findings> {
    for finding in &mut findings {
        finding.races.retain(|race| !is_mixed(race, seen));
    }
    findings
}

/// True if one side is atomic and the other a plain access from before it was known that the variable is atomic: on this
/// CPU the instructions do not tell a plain load from an atomic one.
fn is_mixed(race: &Race, seen: &Seen) -> bool {
    let atomic =
        |kind: AccessKind| matches!(kind, AccessKind::AtomicRead | AccessKind::AtomicWrite);
    let [first, second] = race.accesses.map(|side| atomic(side.kind));
    first != second && race.locations.iter().all(|place| seen.is_atomic(*place))
}
