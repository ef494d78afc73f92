//! What is to be confirmed.

use std::collections::BTreeSet;
use verdict_protocol::{Bytes, WatchedCall};

/// Two sites that may race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// For people: the race's id, or the two lines.
    pub name: String,
    /// Instructions of one site.
    pub first: BTreeSet<u64>,
    /// Instructions of the other.
    pub second: BTreeSet<u64>,
    /// Where they are thought to meet, for sites that call a function which makes the access: none if that is not known.
    pub bytes: Vec<Bytes>,
}

impl Candidate {
    /// All instructions to watch.
    #[must_use]
    pub fn watched(&self) -> Vec<u64> {
        self.first.union(&self.second).copied().collect()
    }

    /// The same, for those that turn out to be calls.
    #[must_use]
    pub fn calls(&self) -> Vec<WatchedCall> {
        let call = |pc| WatchedCall {
            pc,
            bytes: self.bytes.clone(),
        };
        self.watched().into_iter().map(call).collect()
    }
}
