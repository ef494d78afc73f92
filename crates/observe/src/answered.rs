//! Answers of [`crate::ownership`] that hold for whole ranges of memory, as long as these do not change: libraries go on where they
//! were, in a buffer or in their frames on the stack.

use std::cell::Cell;
use std::ops::Range;

/// An answer and where it holds.
#[derive(Clone, Copy, Default, Debug)]
struct Answer {
    start: u64,
    len: u64,
    is_programs: bool,
}

/// The last few, the latest first.
#[derive(Default, Debug)]
pub(crate) struct Answered {
    answers: Cell<[Answer; 4]>,
}

impl Answered {
    /// The answer for an address, if it is known.
    #[inline(always)]
    pub(crate) fn get(&self, address: u64) -> Option<bool> {
        let answers = self.answers.get();
        let holds = |answer: &&Answer| address.wrapping_sub(answer.start) < answer.len;
        answers.iter().find(holds).map(|answer| answer.is_programs)
    }

    /// It is the same for all of these.
    pub(crate) fn add(&self, range: Range<u64>, is_programs: bool) {
        let [first, second, third, _] = self.answers.get();
        let latest = Answer {
            start: range.start,
            len: range.end.saturating_sub(range.start),
            is_programs,
        };
        self.answers.set([latest, first, second, third]);
    }

    /// Something there is not what it was.
    pub(crate) fn changed(&self, range: Range<u64>) {
        let mut answers = self.answers.get();
        for answer in &mut answers {
            let end = answer.start.saturating_add(answer.len);
            if range.start < end && answer.start < range.end {
                answer.len = 0;
            }
        }
        self.answers.set(answers);
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&self) {
        self.answers.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_until_something_changes() {
        let answered = Answered::default();
        answered.add(100..200, true);
        answered.add(300..400, false);
        let known = || [99, 100, 199, 200, 300].map(|address| answered.get(address));
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(known(), [None, yes, yes, None, no]);
        answered.changed(200..300);
        assert_eq!(known(), [None, yes, yes, None, no]);
        answered.changed(199..200);
        assert_eq!(known(), [None, None, None, None, no]);
        answered.forget();
        assert_eq!(known(), [None; 5]);
    }
}
