//! Replay analysis: do both orders leave the same state behind? (Narayanasamy et al. 2007, section 4)

use std::collections::BTreeMap;
use verdict_explore::SegmentsState;
use verdict_launch::Copied;
use verdict_protocol::{MemoryChanges, Outcome, ThreadState};

/// What both orders of one instance left behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReplayOutcome {
    /// The same.
    NoStateChange,
    /// Something else.
    StateChange,
    /// The other order cannot be replayed: it is blocked, it crashes, or it takes another path.
    ReplayFailure,
}

/// A word of memory that the two orders leave differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordDifference {
    /// Where; a multiple of eight.
    pub address: u64,
    /// After the recorded order; `None` where that did not change it.
    pub primary: Option<u64>,
    /// After the other order.
    pub alternate: Option<u64>,
}

/// Differences that are kept.
const DIFFERENCES_MAX: usize = 64;

/// Compares what the two orders left behind. `None` if the recorded order itself could not be followed to the end of both
/// segments: then nothing can be said.
pub(crate) fn compare(
    primary: &Copied,
    alternate: &Copied,
    threads: [u32; 2],
) -> Option<(ReplayOutcome, Vec<WordDifference>)> {
    let before = finished(primary)?;
    let Some(after) = finished(alternate) else {
        return Some((ReplayOutcome::ReplayFailure, Vec::new()));
    };
    let differences = words(before, after);
    for thread in threads {
        let (then, now) = (state(before, thread)?, state(after, thread)?);
        // How a thread came to its access may differ (a lock that was free or not); where its segment ends must not.
        if then.rip != now.rip {
            return Some((ReplayOutcome::ReplayFailure, differences));
        }
    }
    let registers_differ = threads.iter().any(|thread| {
        state(before, *thread).map(|s| s.kept) != state(after, *thread).map(|s| s.kept)
    });
    let outcome = if differences.is_empty() && !registers_differ {
        ReplayOutcome::NoStateChange
    } else {
        ReplayOutcome::StateChange
    };
    Some((outcome, differences))
}

fn finished(copied: &Copied) -> Option<&MemoryChanges> {
    match copied {
        Copied::Explored(exploration)
            if exploration.report.outcome == Outcome::Stopped
                && exploration.segments == Some(SegmentsState::Done) =>
        {
            exploration.memory.as_deref()
        }
        _ => None,
    }
}

fn state(changes: &MemoryChanges, thread: u32) -> Option<&ThreadState> {
    changes.threads.iter().find(|state| state.thread == thread)
}

fn words(primary: &MemoryChanges, alternate: &MemoryChanges) -> Vec<WordDifference> {
    let then: BTreeMap<u64, u64> = primary.words.iter().copied().collect();
    let now: BTreeMap<u64, u64> = alternate.words.iter().copied().collect();
    let mut addresses: Vec<u64> = then.keys().chain(now.keys()).copied().collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
        .into_iter()
        .filter(|address| then.get(address) != now.get(address))
        .map(|address| WordDifference {
            address,
            primary: then.get(&address).copied(),
            alternate: now.get(&address).copied(),
        })
        .take(DIFFERENCES_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_only_one_order_changes_differs() {
        let changes = |words: &[(u64, u64)]| MemoryChanges {
            words: words.to_vec(),
            ..MemoryChanges::default()
        };
        let differences = words(&changes(&[(8, 1), (16, 2)]), &changes(&[(8, 1), (24, 3)]));
        let expected = [
            WordDifference {
                address: 16,
                primary: Some(2),
                alternate: None,
            },
            WordDifference {
                address: 24,
                primary: None,
                alternate: Some(3),
            },
        ];
        assert_eq!(differences, expected);
    }
}
