//! Which parts of a very long run are looked at.

use serde::{Deserialize, Serialize};

/// About so many instructions of a run are looked at: of a short run all, of a longer one its beginning, which has half of them, and
/// parts further on. The longer a run has been going, the further apart these are: there are as many between one and two thousand
/// million instructions as between one and two million. Nobody needs to know beforehand how long the run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// How many instructions.
    pub budget: u64,
}

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Whether it is looked at.
    pub told: bool,
    /// After so many instructions of the run it is over.
    pub end: u64,
}

/// Of the budget, a part after the first has one in so many.
const PARTS: u64 = 32;

impl Sample {
    /// The part that a run is in after so many instructions.
    #[must_use]
    pub fn at(self, retired: u64) -> Part {
        let last = Part {
            told: false,
            end: u64::MAX,
        };
        self.parts().find(|part| retired < part.end).unwrap_or(last)
    }

    /// How many instructions of a run of so many are looked at.
    #[must_use]
    pub fn looked_at(self, total: u64) -> u64 {
        let mut start = 0;
        let mut looked_at = 0;
        for part in self.parts() {
            if part.told {
                looked_at += part.end.min(total).saturating_sub(start);
            }
            start = part.end;
            if start >= total {
                break;
            }
        }
        looked_at
    }

    /// Those of a run without end.
    fn parts(self) -> impl Iterator<Item = Part> {
        let (first, others) = ((self.budget / 2).max(1), (self.budget / PARTS).max(1));
        let first = Part {
            told: true,
            end: first,
        };
        std::iter::successors(Some(first), move |part| {
            let len = if part.told {
                part.end.div_ceil(2)
            } else {
                others
            };
            Some(Part {
                told: !part.told,
                end: part.end.checked_add(len)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_is_looked_at_as_a_whole_and_a_long_one_in_parts() {
        let sample = Sample { budget: 64_000 };
        let parts: Vec<(bool, u64)> = [0, 31_999, 32_000, 47_999, 48_000, 49_999, 50_000]
            .map(|retired| sample.at(retired))
            .map(|part| (part.told, part.end))
            .into();
        let (first, between) = ((true, 32_000), (false, 48_000));
        let (second, after) = ((true, 50_000), (false, 75_000));
        assert_eq!(
            parts,
            [first, first, between, between, second, second, after]
        );
        let looked_at = [20_000, 32_000, 40_000, 48_500, 60_000].map(|run| sample.looked_at(run));
        assert_eq!(looked_at, [20_000, 32_000, 32_000, 32_500, 34_000]);
        for longer in [1, 10, 100, 1000] {
            let looked_at = sample.looked_at(64_000 * longer);
            assert!(
                (32_000..=70_000).contains(&looked_at),
                "{longer}: {looked_at}"
            );
        }
    }

    #[test]
    fn there_is_a_part_wherever_a_run_has_come_to() {
        for budget in [0, 1, 2, u64::MAX] {
            let sample = Sample { budget };
            for retired in [0, 1, 1 << 40, u64::MAX - 1] {
                let Part { end, .. } = sample.at(retired);
                assert!(end > retired, "{budget} {retired}");
            }
            assert!(sample.looked_at(u64::MAX) > 0);
        }
    }
}
