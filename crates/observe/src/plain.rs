//! Blocks that have nothing but plain accesses of the program: most of what runs. They are kept close together, and read by
//! whoever wants to know nothing but addresses.

use crate::blocks::Known;
use crate::log::{Word, number};
use crate::modules::Owner;
use verdict_translate::{AccessKind, AddressWord, LoggedAccess, Segment};

/// A plain access of the program at an address in the log, or at a constant one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlainAccess {
    pub(crate) displacement: u64,
    /// The word with the base; 0 if there is none.
    pub(crate) word: u16,
    pub(crate) size: u16,
    /// The instruction that does it.
    pub(crate) instruction: u16,
    pub(crate) is_write: bool,
}

impl PlainAccess {
    /// `None` if there is more to it.
    pub(crate) fn of(access: &LoggedAccess) -> Option<PlainAccess> {
        let is_plain = !access.locked
            && access.segment == Segment::Flat
            && access.bit.is_none()
            && access.repeat.is_none()
            && access.size > 0;
        if !is_plain {
            return None;
        }
        Some(PlainAccess {
            displacement: access.displacement,
            word: match access.base {
                AddressWord::Constant => 0,
                AddressWord::Logged(word) => word.checked_add(1)?,
            },
            size: u16::try_from(access.size).ok()?,
            instruction: access.instruction,
            is_write: access.kind != AccessKind::Read,
        })
    }

    /// The address, of what a block has logged.
    #[inline(always)]
    pub(crate) fn address(&self, logged: &[Word]) -> u64 {
        let base = match self.word {
            0 => 0,
            word => number(logged[usize::from(word)]),
        };
        base.wrapping_add(self.displacement)
    }
}

impl PlainAccess {
    /// The same of an access of a shape, see [`crate::shapes`].
    #[inline(always)]
    pub(crate) fn address_in_shape(&self, words: &[Word]) -> u64 {
        number(words[usize::from(self.word)]).wrapping_add(self.displacement)
    }
}

/// A block of plain accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainBlock {
    /// Words that it logs if it runs to its end, the header included. 0 if it is not plain.
    pub(crate) len: u16,
    count: u16,
    first: u32,
    first_words: u32,
}

const NOT_PLAIN: PlainBlock = PlainBlock {
    len: 0,
    count: 0,
    first: 0,
    first_words: 0,
};

/// All of them, by id.
#[derive(Default, Debug)]
pub(crate) struct PlainBlocks {
    blocks: Vec<PlainBlock>,
    accesses: Vec<PlainAccess>,
    /// Of each block: words logged once so many instructions have run.
    words: Vec<u16>,
}

impl PlainBlocks {
    pub(crate) fn insert(&mut self, id: u32, block: &Known) {
        let index = id as usize;
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, NOT_PLAIN);
        }
        self.blocks[index] = self.plain(block).unwrap_or(NOT_PLAIN);
    }

    fn plain(&mut self, block: &Known) -> Option<PlainBlock> {
        let own = block
            .code
            .iter()
            .all(|code| code.owner == Owner::Program && !code.stub && !code.atomic);
        if !own || !block.info.control.is_empty() {
            return None;
        }
        let accesses: Vec<PlainAccess> = block
            .info
            .accesses
            .iter()
            .map(PlainAccess::of)
            .collect::<Option<_>>()?;
        let plain = PlainBlock {
            len: u16::try_from(block.words(block.len())).ok()?,
            count: u16::try_from(accesses.len()).ok()?,
            first: u32::try_from(self.accesses.len()).ok()?,
            first_words: u32::try_from(self.words.len()).ok()?,
        };
        self.accesses.extend(accesses);
        let executed = 0..=block.len();
        self.words
            .extend(executed.map(|executed| block.words(executed) as u16));
        Some(plain)
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: u32) -> Option<PlainBlock> {
        let block = self.blocks.get(id as usize).copied()?;
        (block.len != 0).then_some(block)
    }

    /// Words that a block logs, the header included, if so many of its instructions run.
    #[inline(always)]
    pub(crate) fn words(&self, block: PlainBlock, executed: usize) -> usize {
        let words = self.words.get(block.first_words as usize + executed);
        words.map_or(1, |words| usize::from(*words))
    }

    #[inline(always)]
    pub(crate) fn accesses(&self, block: PlainBlock) -> &[PlainAccess] {
        let first = block.first as usize;
        &self.accesses[first..first + usize::from(block.count)]
    }
}
