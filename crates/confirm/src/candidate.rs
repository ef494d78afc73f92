//! What is to be confirmed.

use std::collections::BTreeSet;
use verdict_explore::Aim;
use verdict_protocol::{Bytes, WatchedCall};

/// What to steer to: two sites that may race, or calls that may deadlock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// For people: the race's id, or the two lines.
    pub name: String,
    /// Instructions of one site.
    pub first: BTreeSet<u64>,
    /// Instructions of the other.
    pub second: BTreeSet<u64>,
    /// What the sites are.
    pub aim: Aim,
    /// More sites, of a cycle of more than two locks.
    pub further: Vec<BTreeSet<u64>>,
    /// Where they are thought to meet, for sites that call a function which makes the access: none if that is not known.
    pub bytes: Vec<Bytes>,
    /// Neither access is atomic: what a called function does atomically is not what is thought to race.
    pub plain: bool,
}

impl Candidate {
    /// All instructions to watch.
    #[must_use]
    pub fn watched(&self) -> Vec<u64> {
        let two = self.first.union(&self.second).copied();
        let all: BTreeSet<u64> = two.chain(self.further.iter().flatten().copied()).collect();
        all.into_iter().collect()
    }

    /// The same, for those that turn out to be calls.
    #[must_use]
    pub fn calls(&self) -> Vec<WatchedCall> {
        if self.aim == Aim::Deadlock {
            return Vec::new();
        }
        let call = |pc| WatchedCall {
            pc,
            bytes: self.bytes.clone(),
        };
        self.watched().into_iter().map(call).collect()
    }
}
