//! What is to be confirmed.

use std::collections::BTreeSet;

/// Two sites that may race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// For people: the race's id, or the two lines.
    pub name: String,
    /// Instructions of one site.
    pub first: BTreeSet<u64>,
    /// Instructions of the other.
    pub second: BTreeSet<u64>,
}

impl Candidate {
    /// All instructions to watch.
    #[must_use]
    pub fn watched(&self) -> Vec<u64> {
        self.first.union(&self.second).copied().collect()
    }
}
