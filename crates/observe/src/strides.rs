//! What a loop accesses: where one block runs again and again with addresses a constant step apart, the bytes that its accesses
//! come by are a few ranges. A block may hold several rounds of a loop, which fill each other's gaps.

use crate::log::{Word, number};
use crate::plain::PlainAccess;

/// What an access of a loop comes by: `size` bytes from `start` on, then the same a step further.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Stride {
    is_write: bool,
    step: i64,
    start: u64,
    size: u64,
}

/// Bytes that a loop has accessed, all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) is_write: bool,
}

/// Room that is used again and again.
#[derive(Default, Debug)]
pub(crate) struct Strides {
    /// Each with the number of its access.
    strides: Vec<(Stride, u16)>,
    /// By word: its first base and step, if it has one.
    columns: Vec<(u16, Option<(u64, i64)>)>,
    ranges: Vec<Range>,
    others: Vec<PlainAccess>,
}

impl Strides {
    /// What the accesses of a block come by that has run as often as `words` has `len` words: ranges, and accesses that do not
    /// make any. `constant` is the base of those that have no word.
    pub(crate) fn split(
        &mut self,
        accesses: &[PlainAccess],
        words: &[Word],
        len: usize,
        constant: u64,
    ) -> (&[Range], &[PlainAccess]) {
        self.strides.clear();
        self.columns.clear();
        self.ranges.clear();
        self.others.clear();
        for (number, access) in (0..).zip(accesses) {
            let column = match access.word {
                0 => Some((constant, 0)),
                word => self.column(words, len, word),
            };
            let Some((base, step)) = column else {
                self.others.push(*access);
                continue;
            };
            let stride = Stride {
                is_write: access.is_write,
                step,
                start: base.wrapping_add(access.displacement),
                size: u64::from(access.size),
            };
            self.strides.push((stride, number));
        }
        self.strides.sort_unstable();
        self.merge(accesses, (words.len() / len) as u64);
        (&self.ranges, &self.others)
    }

    /// The first base that a word of the block has, and the constant step by which it goes on.
    fn column(&mut self, words: &[Word], len: usize, word: u16) -> Option<(u64, i64)> {
        if let Some((_, known)) = self.columns.iter().find(|(known, _)| *known == word) {
            return *known;
        }
        let steady = steady(words, len, usize::from(word));
        self.columns.push((word, steady));
        steady
    }

    /// Makes ranges of strides that go together and leave no gaps.
    fn merge(&mut self, accesses: &[PlainAccess], times: u64) {
        let together = self.strides.chunk_by(|(one, _), (next, _)| {
            next.is_write == one.is_write
                && next.step == one.step
                && next.start <= one.start.saturating_add(one.size)
        });
        for strides in together {
            match range(strides, times) {
                Some(range) => self.ranges.push(range),
                None => {
                    let numbers = strides.iter().map(|(_, number)| usize::from(*number));
                    self.others.extend(numbers.map(|number| accesses[number]));
                }
            }
        }
    }
}

/// What strides that go together come by; `None` if that has gaps.
fn range(strides: &[(Stride, u16)], times: u64) -> Option<Range> {
    let (first, _) = strides[0];
    let mut end = first.start;
    for (stride, _) in strides {
        end = end.max(stride.start.checked_add(stride.size)?);
    }
    let step = first.step.unsigned_abs();
    if end - first.start < step {
        return None;
    }
    let further = step.checked_mul(times - 1)?;
    let (start, end) = match first.step < 0 {
        true => (first.start.checked_sub(further)?, end),
        false => (first.start, end.checked_add(further)?),
    };
    Some(Range {
        start,
        size: end - start,
        is_write: first.is_write,
    })
}

#[inline]
fn steady(words: &[Word], len: usize, word: usize) -> Option<(u64, i64)> {
    let mut bases = words.chunks_exact(len).map(|logged| number(logged[word]));
    let first = bases.next()?;
    let second = bases.next()?;
    let step = second.wrapping_sub(first);
    let mut last = second;
    let mut odd = 0;
    for base in bases {
        odd |= base.wrapping_sub(last) ^ step;
        last = base;
    }
    (odd == 0).then_some((first, step as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(word: u16, displacement: u64, size: u16, is_write: bool) -> PlainAccess {
        PlainAccess {
            displacement,
            word,
            size,
            instruction: 0,
            is_write,
        }
    }

    fn words(rounds: &[&[u64]]) -> Vec<Word> {
        let all = rounds.iter().flat_map(|round| round.iter());
        all.map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn rounds_that_a_block_holds_fill_each_others_gaps() {
        let accesses = [
            access(1, 0, 8, false),
            access(2, 0, 8, false),
            access(1, 0x1000, 8, true),
            access(2, 0x1000, 8, true),
        ];
        let words = words(&[&[7, 16, 24], &[7, 32, 40], &[7, 48, 56]]);
        let mut strides = Strides::default();
        let range = |start, is_write| Range {
            start,
            size: 48,
            is_write,
        };
        let both = [range(16, false), range(0x1010, true)];
        assert_eq!(
            strides.split(&accesses, &words, 3, 0),
            (&both[..], &[] as &[PlainAccess])
        );
        assert_eq!(
            strides.split(&accesses[1..], &words, 3, 0),
            (&both[1..], &accesses[1..2])
        );
    }

    #[test]
    fn loops_go_down_stand_still_and_jump() {
        let mut strides = Strides::default();
        let down = words(&[&[7, 100], &[7, 96], &[7, 92], &[7, 88]]);
        let one = [access(1, 0, 4, false)];
        let found = |start, size| {
            Some(vec![Range {
                start,
                size,
                is_write: false,
            }])
        };
        let mut ranges = |accesses: &[PlainAccess], words: &[Word]| {
            let (ranges, others) = strides.split(accesses, words, 2, 0);
            assert_eq!(ranges.len() + others.len(), 1);
            (!ranges.is_empty()).then(|| ranges.to_vec())
        };
        assert_eq!(ranges(&one, &down), found(88, 16));
        let still = words(&[&[7, 100], &[7, 100], &[7, 100], &[7, 100]]);
        assert_eq!(ranges(&one, &still), found(100, 4));
        assert_eq!(ranges(&[access(0, 50, 4, false)], &down), found(50, 4));
        let jumps = words(&[&[7, 100], &[7, 104], &[7, 108], &[7, 116]]);
        assert_eq!(ranges(&one, &jumps), None);
        let to_the_end = words(&[
            &[7, u64::MAX - 2],
            &[7, u64::MAX - 1],
            &[7, u64::MAX],
            &[7, 0],
        ]);
        assert_eq!(ranges(&one, &to_the_end), None);
    }
}
