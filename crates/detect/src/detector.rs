//! The detectors by name, and how one is run over a trace.

use std::fmt;

use verdict_events::{Digest, Event, Repeats, TraceError, TraceSource};

use crate::findings::Findings;
use crate::parts::digest_parts;
use crate::read_ahead::digest_ahead;
use crate::{PairBy, adjacent, current, fasttrack, hb, hybrid, local, race, regions};

/// Reads events in trace order and answers at the end.
pub trait Detector {
    /// The next events of the trace. For a detector that skips repeated accesses, they may have been left out.
    fn take(&mut self, digest: &Digest);

    /// Whether accesses that repeat another of their segment need not be looked at.
    fn skips_repeated(&self) -> bool;

    /// The next events of the trace as they are.
    fn events(&mut self, batch: &[Event]) {
        let mut digest = Digest::new();
        digest.extend(batch);
        self.take(&digest);
    }

    /// How many records of accesses are held at the moment: what memory is spent on.
    fn records(&self) -> u64;

    /// Whether a detector made to keep [`Keep::WhatCanRace`] has met a thread that could race with what it dropped. What it
    /// finds is then worth nothing.
    fn is_misled(&self) -> bool;

    /// What was found.
    fn finish(self: Box<Self>) -> Findings;
}

/// What the detectors that find every race keep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Keep {
    /// Every access, though many as one: right for any trace.
    #[default]
    All,
    /// Accesses that some running thread does not follow yet. Takes far less memory and time, but goes wrong
    /// ([`Detector::is_misled`]) where a thread acts that no running thread has forked: it follows nothing.
    WhatCanRace,
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
    /// Races of segments that overlap in time.
    Regions,
    /// Locksets, and happens-before by messages only: predicts.
    Hybrid,
    /// Every race, from block traces (`crates/blocks`). Fed a trace event by event, it is [`Algorithm::Hb`]: their
    /// answers are the same.
    Blocks,
}

impl Algorithm {
    /// All that read a trace event by event, those of limited history first.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Adjacent,
        Algorithm::Local,
        Algorithm::Race,
        Algorithm::Current,
        Algorithm::FastTrack,
        Algorithm::Hb,
        Algorithm::Regions,
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
            Algorithm::Regions => "regions",
            Algorithm::Hybrid => "hybrid",
            Algorithm::Blocks => "blocks",
        }
    }

    /// A detector that has seen nothing yet and is right for any trace.
    pub fn detector(self, by: PairBy) -> Box<dyn Detector> {
        self.detector_keeping(Keep::All, by)
    }

    /// A detector that has seen nothing yet.
    pub fn detector_keeping(self, keep: Keep, by: PairBy) -> Box<dyn Detector> {
        match self {
            Algorithm::Adjacent => adjacent::detector(by),
            Algorithm::Local => local::detector(by),
            Algorithm::Race => race::detector(by),
            Algorithm::Current => current::detector(by),
            Algorithm::FastTrack => fasttrack::detector(by),
            Algorithm::Hb | Algorithm::Blocks => hb::detector(by, keep),
            Algorithm::Regions => regions::detector(by, keep),
            Algorithm::Hybrid => hybrid::detector(by, keep),
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
    /// See [`Keep::WhatCanRace`].
    #[error(
        "a thread did something though no running thread had forked it; detect again and keep all accesses"
    )]
    Misled,
}

/// The longest trace: each event makes a thread post at most once, so neither positions nor clocks overflow.
pub const EVENTS_MAX: u64 = u32::MAX as u64 - 1;

/// Feeds a trace to detectors side by side and answers with what each found. `progress` is told after each batch
/// how many events have been seen.
pub fn detect(
    source: &mut dyn TraceSource,
    detectors: Vec<Box<dyn Detector>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Findings>, DetectError> {
    let mut digest = Digest::new();
    digest.leave_out(repeats_for(&detectors));
    let mut feed = Feed::new(detectors, progress);
    loop {
        digest.clear();
        source.next_digest(&mut digest)?;
        if digest.events() == 0 {
            return Ok(feed.finish());
        }
        feed.take(&digest)?;
    }
}

/// As [`detect`], with the trace read on a thread of its own, which works ahead and also finds out which accesses repeat
/// others: reading and detecting then take as long as the slower of them. A trace that can be had in parts takes half of what
/// both take together.
pub fn detect_reading_ahead(
    source: &mut (dyn TraceSource + Send),
    detectors: Vec<Box<dyn Detector>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Findings>, DetectError> {
    let repeats = repeats_for(&detectors);
    let mut feed = Feed::new(detectors, progress);
    let take = |digest: &Digest| feed.take(digest);
    match source.has_parts() {
        true => digest_parts(repeats.is_some(), source, take)?,
        false => digest_ahead(repeats, source, take)?,
    }
    Ok(feed.finish())
}

/// What may be left out, if none of the detectors needs it.
fn repeats_for(detectors: &[Box<dyn Detector>]) -> Option<Repeats> {
    let skip = detectors.iter().all(|detector| detector.skips_repeated());
    skip.then(Repeats::new)
}

/// Detectors that are given a trace part by part.
struct Feed<'a> {
    detectors: Vec<Box<dyn Detector>>,
    progress: &'a mut dyn FnMut(u64),
    events: u64,
}

impl<'a> Feed<'a> {
    fn new(detectors: Vec<Box<dyn Detector>>, progress: &'a mut dyn FnMut(u64)) -> Feed<'a> {
        Feed {
            detectors,
            progress,
            events: 0,
        }
    }

    fn take(&mut self, digest: &Digest) -> Result<(), DetectError> {
        self.events += u64::from(digest.events());
        if self.events > EVENTS_MAX {
            return Err(DetectError::TooLong);
        }
        for detector in &mut self.detectors {
            detector.take(digest);
            if detector.is_misled() {
                return Err(DetectError::Misled);
            }
        }
        (self.progress)(self.events);
        Ok(())
    }

    fn finish(self) -> Vec<Findings> {
        self.detectors.into_iter().map(Detector::finish).collect()
    }
}
