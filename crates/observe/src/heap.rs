//! The heap of a run: which blocks there are, which have been freed, and which bytes nobody may touch.
//!
//! Bytes are forbidden where it is certain that they are nobody's: in a block of the program from `free` until the memory is
//! handed out again, and between the end of a block and the end of what the C library has set aside for it.
//! Nothing is known of memory that was handed out while nobody looked, so nothing is said of it.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use verdict_events::ThreadId;

/// Larger blocks are mappings of their own, which are gone once they are freed: whoever touches one crashes.
const FREED_MAX: u64 = 128 << 10;

/// A block that somebody asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HeapBlock {
    pub(crate) len: u64,
    /// The program asked for it, not a library for itself.
    pub(crate) of_program: bool,
    /// Where, innermost first.
    pub(crate) allocated_at: Vec<u64>,
}

/// A block that was the program's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FreedBlock {
    pub(crate) block: HeapBlock,
    pub(crate) by: ThreadId,
    /// Where, innermost first.
    pub(crate) freed_at: Vec<u64>,
}

/// What a forbidden byte is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Forbidden<'a> {
    /// Of a block that was freed.
    Freed(&'a FreedBlock),
    /// So many bytes behind the end of a block.
    Behind(&'a HeapBlock, u64),
}

/// What an address is to `free`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ToBeFreed {
    /// A block, or nobody knows.
    Fine,
    Twice(Box<FreedBlock>),
    /// So many bytes into a block.
    Inside(Box<HeapBlock>, u64),
}

/// Blocks and forbidden bytes.
#[derive(Default, Debug)]
pub(crate) struct Heap {
    live: BTreeMap<u64, HeapBlock>,
    freed: BTreeMap<u64, FreedBlock>,
    forbidden: ByteSet,
    /// Blocks that the program asked for.
    pub(crate) of_program: u64,
    /// Blocks that the program had freed and whose memory was handed out again.
    pub(crate) reused: u64,
}

impl Heap {
    /// A block was handed out.
    pub(crate) fn allocated(&mut self, start: u64, block: HeapBlock) {
        let end = start.saturating_add(block.len);
        let reserved = start.saturating_add(reserved(block.len));
        self.renewed(start, reserved);
        if block.of_program {
            self.of_program += 1;
            self.forbidden.insert(end, reserved);
        }
        self.live.insert(start, block);
    }

    /// Memory is somebody's anew.
    pub(crate) fn renewed(&mut self, start: u64, end: u64) {
        let over = |at: u64, len: u64| at < end && start < at.saturating_add(len.max(1));
        // Blocks do not overlap, so those that do are the last ones that begin before the end.
        let freed = self.freed.range(..end).rev();
        let gone: Vec<u64> = freed
            .take_while(|(at, freed)| over(**at, freed.block.len))
            .map(|(at, _)| *at)
            .collect();
        for at in gone {
            if let Some(freed) = self.freed.remove(&at) {
                self.reused += 1;
                self.forbidden.remove(at, at + freed.block.len);
            }
        }
        let live = self.live.range(..end).rev();
        let gone: Vec<u64> = live
            .take_while(|(at, block)| over(**at, block.len))
            .map(|(at, _)| *at)
            .collect();
        for at in gone {
            self.forget(at);
        }
        self.forbidden.remove(start, end);
    }

    /// What an address is that is about to be freed.
    pub(crate) fn to_be_freed(&self, address: u64) -> ToBeFreed {
        if self.live.contains_key(&address) {
            return ToBeFreed::Fine;
        }
        if let Some(freed) = self.freed.get(&address) {
            return ToBeFreed::Twice(Box::new(freed.clone()));
        }
        match self.live.range(..address).next_back() {
            Some((start, block)) if address - start < block.len && block.of_program => {
                ToBeFreed::Inside(Box::new(block.clone()), address - start)
            }
            _ => ToBeFreed::Fine,
        }
    }

    /// The block that begins there is no more.
    pub(crate) fn freed(&mut self, start: u64, by: ThreadId, freed_at: Vec<u64>) {
        let Some(block) = self.forget(start) else {
            return;
        };
        if !block.of_program || block.len > FREED_MAX {
            return;
        }
        self.forbidden.insert(start, start + block.len);
        let freed = FreedBlock {
            block,
            by,
            freed_at,
        };
        self.freed.insert(start, freed);
    }

    /// It is there after all: `realloc` could not do what it was asked for.
    pub(crate) fn not_freed(&mut self, start: u64) {
        if let Some(freed) = self.freed.get(&start) {
            let block = freed.block.clone();
            self.allocated(start, block);
            self.of_program -= 1;
            self.reused -= 1;
        }
    }

    /// A block has so many bytes, as it turns out.
    pub(crate) fn grown(&mut self, start: u64, len: u64) {
        if let Some(block) = self.live.get_mut(&start) {
            block.len = block.len.max(len);
            self.forbidden.remove(start, start + block.len);
        }
    }

    fn forget(&mut self, start: u64) -> Option<HeapBlock> {
        let block = self.live.remove(&start)?;
        if block.of_program {
            let end = start.saturating_add(block.len);
            let reserved = start.saturating_add(reserved(block.len));
            self.forbidden.remove(end, reserved);
        }
        Some(block)
    }

    /// False for sure if all bytes may be touched.
    #[inline(always)]
    pub(crate) fn may_forbid(&self, address: u64, size: u64) -> bool {
        self.forbidden.bounds.0 < address.wrapping_add(size)
            && address < self.forbidden.bounds.1
            && self.forbidden.first(address, size).is_some()
    }

    /// The first of some bytes that nobody may touch, and what it is.
    pub(crate) fn forbidden(&self, address: u64, size: u64) -> Option<(u64, Forbidden<'_>)> {
        let at = self.forbidden.first(address, size)?;
        if let Some((start, freed)) = self.freed.range(..=at).next_back()
            && at - start < freed.block.len
        {
            return Some((at, Forbidden::Freed(freed)));
        }
        let (start, block) = self.live.range(..=at).next_back()?;
        let behind = (at - start).checked_sub(block.len)?;
        Some((at, Forbidden::Behind(block, behind)))
    }
}

/// What the C library sets aside for a block at the least: its bytes and the eight of the size that is kept before the next one.
fn reserved(len: u64) -> u64 {
    const SMALLEST: u64 = 32;
    const HEADER: u64 = 8;
    const ALIGNMENT: u64 = 16;
    let whole = len.saturating_add(HEADER + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    whole.max(SMALLEST)
}

const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / 64) as usize;

/// A set of addresses, a bit for each, in pages.
#[derive(Default, Debug)]
struct ByteSet {
    pages: FxHashMap<u64, Box<[u64; WORDS]>>,
    /// Nothing is outside.
    bounds: (u64, u64),
}

impl ByteSet {
    fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.bounds = match self.bounds {
            (0, 0) => (start, end),
            (low, high) => (low.min(start), high.max(end)),
        };
        for (page, word, bits) in words(start, end) {
            let page = self
                .pages
                .entry(page)
                .or_insert_with(|| Box::new([0; WORDS]));
            page[word] |= bits;
        }
    }

    fn remove(&mut self, start: u64, end: u64) {
        let (start, end) = (start.max(self.bounds.0), end.min(self.bounds.1));
        for (page, word, bits) in words(start, end) {
            if let Some(page) = self.pages.get_mut(&page) {
                page[word] &= !bits;
            }
        }
    }

    /// The first of some bytes that is in the set.
    fn first(&self, start: u64, size: u64) -> Option<u64> {
        let end = start.saturating_add(size).min(self.bounds.1);
        let mut at = start.max(self.bounds.0);
        while at < end {
            let next = (at / PAGE + 1).saturating_mul(PAGE).min(end);
            let page = self.pages.get(&(at / PAGE));
            let found = page.and_then(|page| first_of(page, at, next));
            if found.is_some() {
                return found;
            }
            at = next;
        }
        None
    }
}

/// The first of some bytes of one page that is in the set.
fn first_of(page: &[u64; WORDS], start: u64, end: u64) -> Option<u64> {
    words(start, end).find_map(|(number, word, bits)| {
        let found = page[word] & bits;
        let bit = u64::from(found.trailing_zeros());
        (found != 0).then(|| number * PAGE + word as u64 * 64 + bit)
    })
}

/// The words that some addresses have their bits in: page, word, bits.
fn words(start: u64, end: u64) -> impl Iterator<Item = (u64, usize, u64)> {
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let next = (at / 64 + 1).saturating_mul(64).min(end);
        let count = next - at;
        let ones = if count == 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        };
        let found = (at / PAGE, (at % PAGE / 64) as usize, ones << (at % 64));
        at = next;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000_0000_0010;

    fn block(len: u64) -> HeapBlock {
        HeapBlock {
            len,
            of_program: true,
            allocated_at: Vec::new(),
        }
    }

    fn free(heap: &mut Heap, start: u64) {
        heap.freed(start, ThreadId(1), vec![7]);
    }

    #[test]
    fn what_is_set_aside_ends_where_the_next_block_begins() {
        let sizes = [(1, 32), (24, 32), (25, 48), (40, 48), (41, 64), (100, 112)];
        for (len, expected) in sizes {
            assert_eq!(reserved(len), expected, "{len}");
        }
    }

    #[test]
    fn a_freed_block_is_forbidden_until_it_is_handed_out_again() {
        let mut heap = Heap::default();
        heap.allocated(START, block(40));
        assert!(!heap.may_forbid(START, 40));
        free(&mut heap, START);
        let found = heap.forbidden(START + 8, 8);
        assert!(matches!(found, Some((_, Forbidden::Freed(freed))) if freed.by == ThreadId(1)));
        assert!(matches!(heap.to_be_freed(START), ToBeFreed::Twice(_)));
        heap.allocated(START + 16, block(8));
        assert!(!heap.may_forbid(START, 24), "half of it is another block");
        assert_eq!(heap.to_be_freed(START), ToBeFreed::Fine, "nobody knows");
        assert_eq!(heap.reused, 1);
    }

    #[test]
    fn bytes_behind_a_block_are_forbidden_up_to_the_next() {
        let mut heap = Heap::default();
        heap.allocated(START, block(20));
        heap.allocated(START + 32, block(24));
        assert!(!heap.may_forbid(START + 12, 8));
        let (at, what) = heap.forbidden(START + 16, 8).unwrap();
        assert_eq!((at, what), (START + 20, Forbidden::Behind(&block(20), 0)));
        assert!(!heap.may_forbid(START + 32, 24));
        let far = heap.forbidden(START + 32 + 28, 4).unwrap();
        assert_eq!(far.1, Forbidden::Behind(&block(24), 4));
        assert!(!heap.may_forbid(START + 64, 8), "nobody knows");
    }

    #[test]
    fn a_block_that_could_not_be_made_larger_is_there_still() {
        let mut heap = Heap::default();
        heap.allocated(START, block(20));
        free(&mut heap, START);
        heap.not_freed(START);
        assert!(!heap.may_forbid(START, 20));
        assert!(heap.may_forbid(START + 20, 1));
        assert_eq!((heap.of_program, heap.reused), (1, 0));
    }

    #[test]
    fn all_bytes_of_a_block_may_be_used_by_who_asks_how_many_there_are() {
        let mut heap = Heap::default();
        heap.allocated(START, block(20));
        heap.grown(START, 24);
        assert!(!heap.may_forbid(START, 24));
        assert!(heap.may_forbid(START + 24, 1));
    }

    #[test]
    fn only_what_is_inside_of_a_block_is_known_not_to_be_one() {
        let mut heap = Heap::default();
        heap.allocated(START, block(64));
        assert!(matches!(
            heap.to_be_freed(START + 16),
            ToBeFreed::Inside(_, 16)
        ));
        assert_eq!(heap.to_be_freed(START + 4096), ToBeFreed::Fine);
    }

    #[test]
    fn sets_of_addresses_end_where_they_were_told_to() {
        let mut set = ByteSet::default();
        let (start, end) = (PAGE * 5 - 70, PAGE * 5 + 3);
        set.insert(start, end);
        assert_eq!(set.first(start - 8, 8), None);
        assert_eq!(set.first(start - 8, 9), Some(start));
        assert_eq!(set.first(end - 1, 8), Some(end - 1));
        assert_eq!(set.first(end, 8), None);
        set.remove(start, end - 1);
        assert_eq!(set.first(start, 200), Some(end - 1));
    }
}
