//! The detectors by name, and how one is run over a trace.

use std::fmt;

use verdict_events::{Event, TraceError, TraceSource};

use crate::findings::Findings;
use crate::{PairBy, adjacent, current, fasttrack, hb, hybrid, local, race};

/// Reads events in trace order and answers at the end.
pub trait Detector {
    /// The next events of the trace.
    fn events(&mut self, batch: &[Event]);

    /// How many records of accesses are held at the moment: what memory is spent on.
    fn records(&self) -> u64;

    /// What was found.
    fn finish(self: Box<Self>) -> Findings;
}

/// The detectors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Algorithm {
    /// Banerjee et al., algorithm 2.
    Adjacent,
    /// Banerjee et al., algorithm 3.
    Local,
    /// Banerjee et al., algorithm 4.
    Race,
    /// Banerjee et al., algorithm 5.
    Current,
    /// Epoch-based: the first race of each location.
    FastTrack,
    /// Every race.
    Hb,
    /// Locksets, and happens-before by messages only: predicts.
    Hybrid,
}

impl Algorithm {
    /// All of them, those of limited history first.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Adjacent,
        Algorithm::Local,
        Algorithm::Race,
        Algorithm::Current,
        Algorithm::FastTrack,
        Algorithm::Hb,
        Algorithm::Hybrid,
    ];

    /// The four of Banerjee et al., by the history they keep.
    pub const LIMITED: [Algorithm; 4] = [
        Algorithm::Adjacent,
        Algorithm::Local,
        Algorithm::Race,
        Algorithm::Current,
    ];

    /// The name users give.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Adjacent => "adjacent",
            Algorithm::Local => "local",
            Algorithm::Race => "race",
            Algorithm::Current => "current",
            Algorithm::FastTrack => "fasttrack",
            Algorithm::Hb => "hb",
            Algorithm::Hybrid => "hybrid",
        }
    }

    /// A detector that has seen nothing yet.
    pub fn detector(self, by: PairBy) -> Box<dyn Detector> {
        match self {
            Algorithm::Adjacent => adjacent::detector(by),
            Algorithm::Local => local::detector(by),
            Algorithm::Race => race::detector(by),
            Algorithm::Current => current::detector(by),
            Algorithm::FastTrack => fasttrack::detector(by),
            Algorithm::Hb => hb::detector(by),
            Algorithm::Hybrid => hybrid::detector(by),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a trace could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// It could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Event numbers and clocks have 32 bits.
    #[error("the trace has more than {EVENTS_MAX} events; cut it into parts or use block traces")]
    TooLong,
}

/// The longest trace: each event makes a thread post at most once, so neither positions nor clocks overflow.
pub const EVENTS_MAX: u64 = u32::MAX as u64 - 1;

/// Feeds a trace to detectors side by side and answers with what each found. `progress` is told after each batch
/// how many events have been seen.
pub fn detect(
    source: &mut dyn TraceSource,
    mut detectors: Vec<Box<dyn Detector>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Findings>, DetectError> {
    let mut batch = Vec::new();
    let mut events = 0;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(detectors.into_iter().map(Detector::finish).collect());
        }
        events += batch.len() as u64;
        if events > EVENTS_MAX {
            return Err(DetectError::TooLong);
        }
        for detector in &mut detectors {
            detector.events(&batch);
        }
        progress(events);
    }
}
