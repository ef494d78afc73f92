//! Whose memory an address is in. Asked for accesses of library code only.

use crate::modules::{Modules, Owner};
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of the heap, mappings, stacks.
#[derive(Default, Debug)]
pub(crate) struct Ownership {
    blocks: BTreeMap<u64, Block>,
    stacks: BTreeMap<u64, u64>,
    /// Buffers that the program gave to a library for good (`setvbuf`).
    given: Vec<Range<u64>>,
    /// Thread descriptors: by address, up to the end of their page.
    descriptors: BTreeMap<u64, u64>,
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
        self.given
            .retain(|given| given.end <= range.start || given.start >= range.end);
    }

    /// The block that began at an address, which is no more.
    pub(crate) fn freed(&mut self, address: u64) -> Option<Block> {
        self.blocks.remove(&address)
    }

    /// The block that holds an address, and its first byte.
    pub(crate) fn block_at(&self, address: u64) -> Option<(u64, Block)> {
        let (start, block) = below(&self.blocks, address)?;
        (address - start < block.len).then_some((start, *block))
    }

    pub(crate) fn stack(&mut self, range: Range<u64>) {
        self.stacks.insert(range.start, range.end);
    }

    pub(crate) fn descriptor(&mut self, address: u64) {
        if address != 0 {
            self.descriptors.insert(address, address + DESCRIPTOR_LEN);
        }
    }

    pub(crate) fn given(&mut self, range: Range<u64>) {
        self.given.push(range);
    }

    /// True if what library code does there, it does to the program's data.
    pub(crate) fn is_programs(&self, address: u64, modules: &Modules) -> bool {
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

fn below<V>(map: &BTreeMap<u64, V>, address: u64) -> Option<(u64, &V)> {
    map.range(..=address)
        .next_back()
        .map(|(start, value)| (*start, value))
}
