//! Freed memory that is withheld from the allocator, so that whoever still uses it does not find it handed out to somebody
//! else.
//!
//! A call of `free` gets another argument where it begins: the block that was freed longest ago, once there are many, and
//! otherwise none. A recording has a note of each call, since nothing else tells a replay.

use crate::Executor;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use verdict_cpu::Gpr;
use verdict_recording::Entry;

/// Bytes that are withheld together.
const WITHHELD_MAX: u64 = 32 << 20;
/// Larger blocks are given back at once: they are mappings of their own, which nobody else gets.
const BLOCK_MAX: u64 = 128 << 10;

/// Blocks that the program has freed and the allocator does not know of yet.
#[derive(Default, Debug)]
pub(crate) struct Withheld {
    /// Where functions begin that free their first argument.
    functions: BTreeSet<u64>,
    /// Addresses and sizes, those freed first in front.
    blocks: VecDeque<(u64, u64)>,
    bytes: u64,
    /// By thread: what it frees in place of a block. A function that only calls another one brings it there, too.
    given: BTreeMap<usize, u64>,
}

impl Withheld {
    /// Withholds what these functions are given.
    pub(crate) fn new(functions: &[u64]) -> Self {
        Withheld {
            functions: functions.iter().copied().collect(),
            ..Withheld::default()
        }
    }

    /// True if a function begins at `pc` whose argument is withheld.
    pub(crate) fn begins_at(&self, pc: u64) -> bool {
        self.functions.contains(&pc)
    }

    /// What a thread frees in place of a block of so many bytes.
    fn exchange(&mut self, thread: usize, block: u64, len: u64) -> u64 {
        if block == 0 || len > BLOCK_MAX || self.given.get(&thread) == Some(&block) {
            return block;
        }
        // What is freed twice would be given back twice.
        if !self.blocks.iter().any(|(known, _)| *known == block) {
            self.blocks.push_back((block, len));
            self.bytes += len;
        }
        let due = self.blocks.front().filter(|_| self.bytes > WITHHELD_MAX);
        let instead = match due.copied() {
            Some((oldest, len)) => {
                self.blocks.pop_front();
                self.bytes -= len;
                oldest
            }
            None => 0,
        };
        self.given.insert(thread, instead);
        instead
    }
}

impl Executor {
    /// The instruction at `pc` is about to run, with the thread's registers in place: if it is the first one of a function that
    /// frees, the function gets another block.
    pub(crate) fn withhold(&mut self, pc: u64) {
        if !self.watch.withheld.begins_at(pc) {
            return;
        }
        let thread = self.loaded;
        let block = self.context().gpr[Gpr::Rdi as usize];
        let len = self.size_of_block(block).unwrap_or(0);
        let instead = self.watch.withheld.exchange(thread, block, len);
        if instead != block {
            self.context().gpr[Gpr::Rdi as usize] = instead;
            self.kernel.note(&Entry::Withheld { block, instead });
        }
    }

    /// Gives the running thread what it was given then in place of a block.
    pub(crate) fn replay_withheld(&mut self) {
        let Some((block, instead)) = self.kernel.replay_withheld() else {
            return;
        };
        let thread = self.kernel.current as u32;
        self.tell_withheld(thread, block, instead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_given_back_in_the_order_in_which_they_were_freed() {
        let mut withheld = Withheld::new(&[7]);
        assert!(withheld.begins_at(7) && !withheld.begins_at(8));
        let blocks = WITHHELD_MAX / BLOCK_MAX;
        for nth in 1..=blocks {
            assert_eq!(withheld.exchange(0, nth << 20, BLOCK_MAX), 0);
        }
        assert_eq!(withheld.exchange(1, (blocks + 1) << 20, BLOCK_MAX), 1 << 20);
        assert_eq!(withheld.exchange(1, (blocks + 2) << 20, BLOCK_MAX), 2 << 20);
    }

    #[test]
    fn what_is_freed_instead_is_not_withheld_by_the_next_function() {
        let mut withheld = Withheld::new(&[7, 8]);
        for nth in 1..=WITHHELD_MAX / BLOCK_MAX {
            withheld.exchange(0, nth << 20, BLOCK_MAX);
        }
        let instead = withheld.exchange(0, 1 << 40, BLOCK_MAX);
        assert_eq!(instead, 1 << 20);
        assert_eq!(withheld.exchange(0, instead, BLOCK_MAX), instead);
    }

    #[test]
    fn a_block_that_is_freed_twice_is_given_back_once() {
        let mut withheld = Withheld::new(&[7]);
        assert_eq!(withheld.exchange(0, 1 << 20, 64), 0);
        assert_eq!(withheld.exchange(1, 1 << 20, 64), 0);
        assert_eq!(withheld.blocks.len(), 1);
    }

    #[test]
    fn mappings_and_nothing_are_freed_at_once() {
        let mut withheld = Withheld::new(&[7]);
        assert_eq!(withheld.exchange(0, 0, 0), 0);
        assert_eq!(withheld.exchange(0, 1 << 20, BLOCK_MAX + 1), 1 << 20);
        assert!(withheld.blocks.is_empty());
    }
}
