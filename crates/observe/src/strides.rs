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
    strides: Vec<Stride>,
    /// By word: its first base and step, as far as they are known.
    columns: Vec<(u16, Option<(u64, i64)>)>,
    ranges: Vec<Range>,
}

impl Strides {
    /// What the accesses of a block come by that has run as often as `words` has `len` words; `None` if that is not a few ranges.
    pub(crate) fn ranges(
        &mut self,
        accesses: &[PlainAccess],
        words: &[Word],
        len: usize,
    ) -> Option<&[Range]> {
        self.strides.clear();
        self.columns.clear();
        for access in accesses {
            let (base, step) = self.column(words, len, access.word)?;
            self.strides.push(Stride {
                is_write: access.is_write,
                step,
                start: base.wrapping_add(access.displacement),
                size: u64::from(access.size),
            });
        }
        self.strides.sort_unstable();
        self.merge((words.len() / len) as u64)
    }

    /// The first base that a word of the block has, and the constant step by which it goes on.
    fn column(&mut self, words: &[Word], len: usize, word: u16) -> Option<(u64, i64)> {
        if word == 0 {
            return Some((0, 0));
        }
        if let Some((_, known)) = self.columns.iter().find(|(known, _)| *known == word) {
            return *known;
        }
        let steady = steady(words, len, usize::from(word));
        self.columns.push((word, steady));
        steady
    }

    fn merge(&mut self, times: u64) -> Option<&[Range]> {
        self.ranges.clear();
        let mut strides = self.strides.iter().copied().peekable();
        while let Some(first) = strides.next() {
            let mut end = first.start.checked_add(first.size)?;
            let touches = |next: &Stride, end: u64| {
                next.is_write == first.is_write && next.step == first.step && next.start <= end
            };
            while let Some(next) = strides.next_if(|next| touches(next, end)) {
                end = end.max(next.start.checked_add(next.size)?);
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
            self.ranges.push(Range {
                start,
                size: end - start,
                is_write: first.is_write,
            });
        }
        Some(&self.ranges)
    }
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
        assert_eq!(
            strides.ranges(&accesses, &words, 3),
            Some(&[range(16, false), range(0x1010, true)][..])
        );
        assert_eq!(strides.ranges(&accesses[..1], &words, 3), None);
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
            strides.ranges(accesses, words, 2).map(<[Range]>::to_vec)
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
