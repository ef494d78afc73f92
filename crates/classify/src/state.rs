//! Replay analysis: do both orders leave the same state behind? (Narayanasamy et al. 2007, section 4)

use std::collections::BTreeMap;
use verdict_explore::{SegmentEnd, SegmentsState};
use verdict_launch::Copied;
use verdict_protocol::{MemoryChanges, Outcome, ThreadState};

/// What both orders of one instance left behind. Of several instances the last in this list counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReplayOutcome {
    /// The same.
    NoStateChange,
    /// Nothing, since the other order cannot be had.
    ReplayFailure,
    /// Something else: other values, other places, or a program that is broken.
    StateChange,
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

/// What both orders of one instance come to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Compared {
    pub(crate) outcome: ReplayOutcome,
    /// Words that differ.
    pub(crate) words: Vec<WordDifference>,
    /// The other order leaves the path of the recorded one: who has only the recording cannot follow it.
    pub(crate) off_path: bool,
}

/// How far one order came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Came<'a> {
    /// Both accesses are made and both threads stand where they shall.
    ToTheEnd {
        /// What they have changed.
        changes: &'a MemoryChanges,
        /// Where they stand, in the order of the accesses.
        ends: [SegmentEnd; 2],
    },
    /// Both accesses are made, but a thread does not come to where it shall.
    Astray,
    /// The first access was made, and then the program broke or came to an end.
    Broken,
    /// The first access could not be made: this order cannot be had.
    Nowhere,
    /// The copy was lost.
    Unknown,
}

/// How far a copy came that ran two segments.
pub(crate) fn came(copied: &Copied) -> Came<'_> {
    let Copied::Explored(exploration) = copied else {
        return Came::Unknown;
    };
    match (exploration.segments, &exploration.report.outcome) {
        (_, Outcome::Refused(_) | Outcome::EngineFault(_)) | (None, _) => Came::Unknown,
        (
            Some(SegmentsState::Facing | SegmentsState::BringingFirst | SegmentsState::Blocked),
            _,
        ) => Came::Nowhere,
        (Some(SegmentsState::Astray), _) => Came::Astray,
        (Some(SegmentsState::Done), Outcome::Stopped) => {
            match (exploration.memory.as_deref(), exploration.segment_ends) {
                (Some(changes), [Some(first), Some(second)]) => Came::ToTheEnd {
                    changes,
                    ends: [first, second],
                },
                _ => Came::Unknown,
            }
        }
        _ => Came::Broken,
    }
}

/// Where the threads of the other order shall stop.
pub(crate) fn mirrored([first, second]: [SegmentEnd; 2]) -> [SegmentEnd; 2] {
    [second, first]
}

/// True if both threads of one order stand where those of the other do.
pub(crate) fn same_ends(one: [SegmentEnd; 2], other: [SegmentEnd; 2]) -> bool {
    let wanted = mirrored(one);
    (0..2).all(|index| other[index].fits(wanted[index]))
}

/// Compares what the two orders left behind, with both threads in the same places.
pub(crate) fn compare(
    before: &MemoryChanges,
    after: &MemoryChanges,
    threads: [u32; 2],
) -> Compared {
    let mut words = words(before, after);
    let kept = |changes, thread| state(changes, thread).map(|state| (state.kept, state.signals));
    let registers_differ = threads
        .iter()
        .any(|thread| kept(before, *thread) != kept(after, *thread));
    let length = |changes, thread| state(changes, thread).map(|state| state.instructions);
    let off_path = threads
        .iter()
        .any(|thread| length(before, *thread) != length(after, *thread));
    if off_path {
        // On another path, functions called meanwhile leave something else behind in their frames.
        let newer = |word: &WordDifference| {
            let frames = before.newer.iter().chain(&after.newer);
            frames
                .into_iter()
                .any(|(from, to)| (*from..*to).contains(&word.address))
        };
        words.retain(|word| !newer(word));
    }
    words.truncate(DIFFERENCES_MAX);
    let outcome = if words.is_empty() && !registers_differ {
        ReplayOutcome::NoStateChange
    } else {
        ReplayOutcome::StateChange
    };
    Compared {
        outcome,
        words,
        off_path,
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
