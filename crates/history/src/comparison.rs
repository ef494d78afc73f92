//! This run beside earlier ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What has changed since earlier runs.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Comparison {
    /// For every race of this run, by id.
    pub changes: BTreeMap<String, Change>,
    /// Races of earlier runs of the same program that this run does not have, by id.
    pub gone: Vec<KnownRace>,
}

/// What has changed about a race. A class is given by its word.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// No earlier run had it.
    New,
    /// It is what it was.
    StillThere,
    /// It was thought to be less harmful. (Replay-classification, section 1: another run may show an instance that is
    /// harmful; the race is then reported again.)
    Worse {
        /// The worst that any earlier run said.
        before: String,
    },
    /// An earlier run has shown it to be more harmful, and that stays true.
    Better {
        /// The worst that any earlier run said.
        before: String,
    },
}

/// A race of an earlier run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct KnownRace {
    /// Its id.
    pub id: String,
    /// What was said of it.
    pub headline: String,
}
