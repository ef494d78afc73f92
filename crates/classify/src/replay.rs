//! Replay analysis of one instance (Narayanasamy et al. 2007, section 4): both segments in both orders, and whether memory is the
//! same afterwards.
//!
//! Departs from the paper: an order that takes a path that was not recorded runs on, as the program is there.

use crate::alternates::Try;
use crate::at::At;
use crate::state::{Came, Compared, came, compare, mirrored, same_ends};
use crate::{ClassifyError, ReplayOutcome};
use verdict_explore::SegmentEnd;
use verdict_launch::Copied;
use verdict_protocol::MemoryChanges;

impl At<'_> {
    /// Replay analysis: both orders, until both threads stand in the same places.
    pub(crate) fn replay(
        &mut self,
        recorded: &Copied,
        swapped: &Copied,
    ) -> Result<Option<Compared>, ClassifyError> {
        let threads = [self.instance.first.thread, self.instance.second.thread];
        let failed = |outcome| {
            Some(Compared {
                outcome,
                words: Vec::new(),
                off_path: true,
            })
        };
        let (changes, ends) = match came(recorded) {
            Came::ToTheEnd { changes, ends } => (changes, ends),
            // The second access cannot be reached while the first is not made.
            Came::Nowhere => return Ok(failed(ReplayOutcome::ReplayFailure)),
            _ => return Ok(None),
        };
        let other_ends = match came(swapped) {
            Came::Unknown => return Ok(None),
            Came::Nowhere => return Ok(failed(ReplayOutcome::ReplayFailure)),
            Came::Broken | Came::Astray => return Ok(failed(ReplayOutcome::StateChange)),
            Came::ToTheEnd {
                changes: other,
                ends: other_ends,
            } if same_ends(ends, other_ends) => {
                let compared = compare(changes, other, threads);
                let compared = self.look_again(compared, [changes, other], ends)?;
                return self
                    .look_between(compared, changes, ends, threads)
                    .map(Some);
            }
            Came::ToTheEnd { ends, .. } => ends,
        };
        // The other order runs on to where the recorded one came.
        let longer = self.run_one(Try::SwappedSegments(Some(mirrored(ends)), 0))?;
        let (other, other_ends) = match came(&longer) {
            Came::Unknown => return Ok(None),
            Came::Broken => return Ok(failed(ReplayOutcome::StateChange)),
            Came::ToTheEnd {
                changes: other,
                ends: came_to,
            } if same_ends(ends, came_to) => {
                return Ok(Some(compare(changes, other, threads)));
            }
            // It had to go further, since one waited for the other.
            Came::ToTheEnd {
                changes: other,
                ends: came_to,
            } => (other, came_to),
            // It left out what the recorded order did.
            _ => match came(swapped) {
                Came::ToTheEnd { changes: other, .. } => (other, other_ends),
                _ => return Ok(None),
            },
        };
        if other_ends.contains(&SegmentEnd::Cut) {
            return Ok(failed(ReplayOutcome::StateChange));
        }
        // The recorded order runs on to where the other one came.
        let recorded = self.run_one(Try::RecordedSegments(Some(mirrored(other_ends)), 0))?;
        Ok(match came(&recorded) {
            Came::ToTheEnd { changes, ends } if same_ends(ends, other_ends) => {
                Some(compare(changes, other, threads))
            }
            _ => failed(ReplayOutcome::StateChange),
        })
    }

    /// A thread that polls comes by the same place every round. If one order came there on another path and left another
    /// state, it may have been a round too early.
    fn look_again(
        &mut self,
        compared: Compared,
        [changes, other]: [&MemoryChanges; 2],
        ends: [SegmentEnd; 2],
    ) -> Result<Compared, ClassifyError> {
        if compared.outcome != ReplayOutcome::StateChange || !compared.off_path {
            return Ok(compared);
        }
        let threads = [self.instance.first.thread, self.instance.second.thread];
        let later = [
            Try::SwappedSegments(Some(mirrored(ends)), 1),
            Try::RecordedSegments(Some(ends), 1),
        ];
        for (tried, copied) in self.try_each(&later)? {
            let again = match (tried, came(&copied)) {
                (
                    Try::SwappedSegments(..),
                    Came::ToTheEnd {
                        changes: late,
                        ends: at,
                    },
                ) if same_ends(ends, at) => compare(changes, late, threads),
                (
                    Try::RecordedSegments(..),
                    Came::ToTheEnd {
                        changes: late,
                        ends: at,
                    },
                ) if at == ends => compare(late, other, threads),
                _ => continue,
            };
            if again.outcome == ReplayOutcome::NoStateChange {
                return Ok(again);
            }
        }
        Ok(compared)
    }

    /// An update in place is a load and a store: the second access may come between them.
    fn look_between(
        &mut self,
        compared: Compared,
        changes: &MemoryChanges,
        ends: [SegmentEnd; 2],
        threads: [u32; 2],
    ) -> Result<Compared, ClassifyError> {
        let both_write = self.instance.first.write && self.instance.second.write;
        if compared.outcome != ReplayOutcome::NoStateChange || !both_write {
            return Ok(compared);
        }
        let split = self.run_one(Try::SplitSegments(mirrored(ends)))?;
        Ok(match came(&split) {
            Came::ToTheEnd {
                changes: other,
                ends: came_to,
            } if same_ends(ends, came_to) => compare(changes, other, threads),
            _ => compared,
        })
    }
}
