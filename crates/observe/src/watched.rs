//! A look at some bytes only. Most of what runs touches none of them, and is gone through as fast as it goes: by the shapes of
//! blocks (see [`crate::shaped`]), and loops as a whole. What does touch them is taken step by step.

use crate::log::{Word, number};
use crate::plain::PlainAccess;
use crate::shapes::{Shape, Shapes};
use crate::strides::Strides;
use verdict_detect::SuspectBytes;

/// Fewer repetitions than this are looked at one by one, which is as quick.
const LONG_LOOP_MIN: usize = 16;

/// The bytes that a look is at.
#[derive(Default, Debug)]
pub(crate) struct Watched {
    /// Plain accesses to them become events.
    suspects: SuspectBytes,
    /// They, and all that were atomic at some time: of plain accesses to other bytes there is nothing to tell.
    told_of: SuspectBytes,
}

impl Watched {
    pub(crate) fn new(suspects: SuspectBytes) -> Self {
        Watched {
            told_of: suspects.clone(),
            suspects,
        }
    }

    /// An address is atomic: plain accesses there may be meant to be.
    pub(crate) fn add_atomic(&mut self, address: u64) {
        self.told_of.add(address);
    }

    /// True if a plain access becomes an event.
    pub(crate) fn is_suspect(&self, address: u64, size: u64) -> bool {
        self.suspects.touches(address, size)
    }

    /// False only if there is nothing to tell of a plain access.
    #[inline(always)]
    pub(crate) fn tells_of(&self, address: u64, size: u16) -> bool {
        self.told_of.touches(address, u64::from(size))
    }

    /// False only if there is nothing to tell of the accesses of a block, as often as it has run.
    #[inline(always)]
    pub(crate) fn tells_of_shape(
        &self,
        shapes: &Shapes,
        shape: &Shape,
        words: &[Word],
        fs_base: u64,
        strides: &mut Strides,
    ) -> bool {
        let program = shapes.program(shape);
        let len = usize::from(shape.words);
        if words.len() != len {
            return self.tells_of_loop(program, words, len, strides);
        }
        self.tells_of_any(program, words)
            || !shape.is_only_programs() && self.tells_of_others(shapes, shape, words, fs_base)
    }

    #[inline(always)]
    fn tells_of_any(&self, accesses: &[PlainAccess], words: &[Word]) -> bool {
        let mut may = false;
        for access in accesses {
            may |= self
                .told_of
                .may_touch(access.address_in_shape(words), access.size);
        }
        may && self.surely_tells_of_any(accesses, words)
    }

    #[inline(never)]
    fn surely_tells_of_any(&self, accesses: &[PlainAccess], words: &[Word]) -> bool {
        let mut accesses = accesses.iter();
        accesses.any(|access| self.tells_of(access.address_in_shape(words), access.size))
    }

    /// The same of accesses to thread-local variables, and of those of libraries, whoever's the memory is.
    #[inline(never)]
    fn tells_of_others(
        &self,
        shapes: &Shapes,
        shape: &Shape,
        words: &[Word],
        fs_base: u64,
    ) -> bool {
        let mut local = shapes.thread_local(shape).iter();
        let at = |access: &PlainAccess| fs_base.wrapping_add(access.address_in_shape(words));
        local.any(|access| self.tells_of(at(access), access.size))
            || self.tells_of_any(shapes.library(shape), words)
    }

    /// The same of a block that has run some times in a row, which has no such accesses.
    #[inline(never)]
    fn tells_of_loop(
        &self,
        accesses: &[PlainAccess],
        words: &[Word],
        len: usize,
        strides: &mut Strides,
    ) -> bool {
        let mut accesses = accesses;
        if words.len() >= LONG_LOOP_MIN * len {
            let (ranges, others) = strides.split(accesses, words, len, number(words[0]));
            let mut ranges = ranges.iter();
            if ranges.any(|range| self.told_of.touches(range.start, range.size)) {
                return true;
            }
            accesses = others;
        }
        let mut each = words.chunks_exact(len);
        !accesses.is_empty() && each.any(|logged| self.tells_of_any(accesses, logged))
    }
}

#[cfg(test)]
impl Watched {
    /// The slow twin: every access is looked at closely.
    pub(crate) fn look_at_everything(&mut self) {
        self.told_of.add_all();
    }
}
