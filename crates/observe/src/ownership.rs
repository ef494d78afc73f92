//! Whose memory an address is in. Asked for accesses of library code only.

use crate::answered::Answered;
use crate::modules::{Modules, Owner};
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// Blocks of the heap, mappings, stacks.
#[derive(Default, Debug)]
pub(crate) struct Ownership {
    blocks: BTreeMap<u64, Block>,
    stacks: BTreeMap<u64, u64>,
    /// Buffers that the program gave to a library for good (`setvbuf`).
    given: Vec<Range<u64>>,
    /// Thread descriptors: by address, up to the end of their page.
    descriptors: BTreeMap<u64, u64>,
    /// What was asked lately.
    answered: Answered,
}

/// Memory that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) len: u64,
    /// The program asked for it, not a library for itself.
    pub(crate) of_program: bool,
}

/// The C library's `struct pthread` is smaller.
const DESCRIPTOR_LEN: u64 = 4096;

impl Ownership {
    pub(crate) fn allocated(&mut self, address: u64, block: Block) {
        self.blocks.insert(address, block);
        let range = address..address + block.len;
        self.answered.changed(range.clone());
        self.given
            .retain(|given| given.end <= range.start || given.start >= range.end);
    }

    /// The block that began at an address, which is no more.
    pub(crate) fn freed(&mut self, address: u64) -> Option<Block> {
        let freed = self.blocks.remove(&address)?;
        match below(&self.blocks, address) {
            // What it was in, nobody knows how, may be in sight again beyond its end.
            Some((start, block)) if start + block.len > address => self.answered.forget(),
            _ => self.answered.changed(address..address + freed.len),
        }
        Some(freed)
    }

    /// The block that holds an address, and its first byte.
    pub(crate) fn block_at(&self, address: u64) -> Option<(u64, Block)> {
        let (start, block) = below(&self.blocks, address)?;
        (address - start < block.len).then_some((start, *block))
    }

    pub(crate) fn stack(&mut self, range: Range<u64>) {
        self.answered.forget();
        self.stacks.insert(range.start, range.end);
    }

    pub(crate) fn descriptor(&mut self, address: u64) {
        let end = address.saturating_add(DESCRIPTOR_LEN);
        if address != 0 && self.descriptors.insert(address, end) != Some(end) {
            self.answered.forget();
        }
    }

    pub(crate) fn given(&mut self, range: Range<u64>) {
        self.answered.forget();
        self.given.push(range);
    }

    /// Code or data of a file is somewhere else than it was.
    pub(crate) fn modules_changed(&self) {
        self.answered.forget();
    }

    /// True if what library code does there, it does to the program's data.
    #[inline(always)]
    pub(crate) fn is_programs(&self, address: u64, modules: &Modules) -> bool {
        if let Some(known) = self.answered.get(address) {
            debug_assert_eq!(known, self.look_up(address, modules));
            return known;
        }
        self.ask(address, modules)
    }

    #[inline(never)]
    fn ask(&self, address: u64, modules: &Modules) -> bool {
        if self.given.is_empty()
            && let Some((start, block)) = self.block_at(address)
        {
            let end = (start + block.len).min(next(&self.blocks, address));
            self.answered.add(start..end, block.of_program);
            return block.of_program;
        }
        let answer = self.look_up(address, modules);
        if let Some(range) = self.alike(address, modules) {
            self.answered.add(range, answer);
        }
        answer
    }

    /// Addresses around one that is in no block for which the answer is the same: between the same blocks of a stack.
    fn alike(&self, address: u64, modules: &Modules) -> Option<Range<u64>> {
        if !self.given.is_empty() {
            return None;
        }
        let (stack, stack_end) = below(&self.stacks, address)?;
        let gap = modules.gap(address)?;
        let after_block = below(&self.blocks, address).map(|(start, block)| start + block.len);
        let after_descriptor = below(&self.descriptors, address).map(|(_, end)| *end);
        let starts = [after_block, after_descriptor, Some(gap.start)];
        let start = starts.into_iter().flatten().fold(stack, u64::max);
        let ends = [
            next(&self.blocks, address),
            next(&self.descriptors, address),
            next(&self.stacks, address),
            gap.end,
        ];
        let end = ends.into_iter().fold(*stack_end, u64::min);
        (start..end).contains(&address).then_some(start..end)
    }

    fn look_up(&self, address: u64, modules: &Modules) -> bool {
        if self.given.iter().any(|given| given.contains(&address)) {
            return false;
        }
        if let Some((_, block)) = self.block_at(address) {
            return block.of_program;
        }
        if let Some(module) = modules.holding(address) {
            return module.owner == Owner::Program
                && !module.holds_library
                && !module.is_copied(address);
        }
        let in_descriptor =
            below(&self.descriptors, address).is_some_and(|(_, end)| address < *end);
        !in_descriptor && below(&self.stacks, address).is_some_and(|(_, end)| address < *end)
    }
}

/// The first start after an address.
fn next<V>(map: &BTreeMap<u64, V>, address: u64) -> u64 {
    let after = (Bound::Excluded(address), Bound::Unbounded);
    map.range(after)
        .next()
        .map_or(u64::MAX, |(start, _)| *start)
}

fn below<V>(map: &BTreeMap<u64, V>, address: u64) -> Option<(u64, &V)> {
    map.range(..=address)
        .next_back()
        .map(|(start, value)| (*start, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_same_however_often_something_is_asked() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let modules = Modules::default();
        for _ in 0..200 {
            let mut ownership = Ownership::default();
            for _ in 0..300 {
                let address = 1 + 16 * random(2000);
                match random(30) {
                    0 => ownership.stack(address..address + 64 * random(200)),
                    1 => ownership.descriptor(address),
                    2 if random(10) == 0 => ownership.given(address..address + random(100)),
                    3..8 => {
                        let block = Block {
                            len: 1 + random(200),
                            of_program: random(2) == 0,
                        };
                        ownership.allocated(address, block);
                    }
                    8..12 => {
                        let known = ownership.blocks.keys().copied();
                        let known: Vec<u64> = known.collect();
                        if let Some(start) = known.get(random(20) as usize) {
                            ownership.freed(*start);
                        }
                    }
                    _ => {}
                }
                for _ in 0..20 {
                    let address = random(40_000);
                    let expected = ownership.look_up(address, &modules);
                    assert_eq!(ownership.is_programs(address, &modules), expected);
                }
            }
        }
    }
}
