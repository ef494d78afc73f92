//! What a detector answers.

use std::fmt;

use verdict_events::Addr;

use crate::{Algorithm, Race};

/// Everything one detector says about one trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Findings {
    /// Who says it.
    pub algorithm: Algorithm,
    /// How much was looked at.
    pub trace: TraceSize,
    /// Sorted by the events of their first instances.
    pub races: Vec<Race>,
    /// Accessed locations, ascending: all with their answers for the detectors of limited history, only the
    /// racy ones otherwise.
    pub locations: Vec<(Addr, Answer)>,
    /// For the detectors of limited history.
    pub history: Option<HistorySize>,
}

/// The size of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceSize {
    /// Events of all threads.
    pub events: u64,
    /// Threads that did something.
    pub threads: u64,
    /// Different first bytes of accesses.
    pub locations: u64,
    /// Segments of all threads.
    pub segments: u64,
}

/// Whether there is a race in a location.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Answer {
    /// There is.
    Race,
    /// There is none.
    NoRace,
    /// The history kept was not enough to tell.
    Inconclusive,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Answer::Race => "race",
            Answer::NoRace => "no-race",
            Answer::Inconclusive => "inconclusive",
        })
    }
}

/// How much history a detector kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HistorySize {
    /// The most segments kept for one location at a time.
    pub segments_max: u64,
    /// The sum over all locations of the most kept for each.
    pub segments_total: u64,
}
