//! Which block precedes which.

use std::hint::black_box;

use crate::frame::Blocks;
use crate::index::Index;
use crate::load::FrameId;

/// How many blocks [`Order::glance`] looks at: about as many as a processor can wait for at once.
pub(crate) const GLANCE: usize = 32;

/// The blocks of some threads, with their clocks.
pub struct Order {
    /// By number.
    blocks: Vec<Known>,
    frames: Vec<Blocks>,
    /// By thread: which of `frames` is its first.
    first_frames: Vec<u32>,
    /// By thread: its blocks, in order, each with its number of entries.
    threads: Vec<Vec<(u32, u32)>>,
}

/// What is known of one block.
#[derive(Clone, Copy, Default)]
struct Known {
    start: u64,
    thread: u32,
    posts: u32,
    frame: u32,
    clock: u32,
}

impl Order {
    /// From frames in order. Nothing if the blocks of a thread are out of order.
    pub(crate) fn new(index: &Index, frames: Vec<(FrameId, Blocks)>) -> Option<Order> {
        let threads = index.threads.len();
        let mut order = Order {
            blocks: vec![Known::default(); index.blocks as usize],
            frames: Vec::with_capacity(frames.len()),
            first_frames: vec![0; threads],
            threads: vec![Vec::new(); threads],
        };
        for (id, frame) in frames {
            let thread = id.thread as usize;
            if id.frame == 0 {
                order.first_frames[thread] = order.frames.len() as u32;
            }
            for block in &frame.blocks {
                let last = order.threads[thread].last();
                if last.is_some_and(|&(number, _)| number >= block.number) {
                    return None;
                }
                order.threads[thread].push((block.number, block.entries));
                *order.blocks.get_mut(block.number as usize)? = Known {
                    start: block.start,
                    thread: id.thread,
                    posts: block.posts,
                    frame: order.frames.len() as u32,
                    clock: block.clock,
                };
            }
            order.frames.push(frame);
        }
        Some(order)
    }

    pub(crate) fn frame(&self, id: FrameId) -> &Blocks {
        &self.frames[(self.first_frames[id.thread as usize] + id.frame) as usize]
    }

    /// Numbers and numbers of entries of the blocks of a thread, in order.
    pub(crate) fn blocks_of(&self, thread: u32) -> &[(u32, u32)] {
        &self.threads[thread as usize]
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    #[inline]
    pub(crate) fn thread(&self, block: u32) -> u32 {
        self.blocks[block as usize].thread
    }

    #[inline]
    pub(crate) fn posts(&self, block: u32) -> u32 {
        self.blocks[block as usize].posts
    }

    #[inline]
    pub(crate) fn start(&self, block: u32) -> u64 {
        self.blocks[block as usize].start
    }

    /// How many posts of `thread` precede `block`: what that thread did with fewer behind it precedes the block.
    #[inline]
    pub(crate) fn known(&self, block: u32, thread: u32) -> u32 {
        let block = &self.blocks[block as usize];
        self.frames[block.frame as usize].clock(block.clock, thread)
    }

    /// Reads what it takes to compare each block with the one before it. With many blocks all of that lies in cold memory, each
    /// piece where the one before it says: like this, the processor waits for all blocks at once and not for each in turn.
    #[inline]
    pub(crate) fn glance(&self, blocks: impl Iterator<Item = u32>) {
        let mut known = [Known::default(); GLANCE];
        let mut count = 0;
        for (block, known) in blocks.zip(&mut known) {
            *known = self.blocks[block as usize];
            count += 1;
        }
        let mut pieces = [0; GLANCE];
        let mut before = 0;
        for (block, piece) in known[..count].iter().zip(&mut pieces) {
            *piece = self.frames[block.frame as usize].piece(block.clock, before);
            before = block.thread;
        }
        let (mut before, mut seen) = (0, 0);
        for (block, &piece) in known[..count].iter().zip(&pieces) {
            seen ^= self.frames[block.frame as usize].in_piece(piece, before);
            before = block.thread;
        }
        black_box(seen);
    }

    /// Whether `earlier` precedes `later`, which begins after it.
    #[inline]
    pub(crate) fn precedes(&self, earlier: u32, later: u32) -> bool {
        let first = &self.blocks[earlier as usize];
        first.thread == self.thread(later) || first.posts < self.known(later, first.thread)
    }

    /// How many bytes it takes in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let frames: u64 = self.frames.iter().map(Blocks::bytes).sum();
        let each = size_of::<Known>() + size_of::<(u32, u32)>();
        frames + (self.blocks.len() * each) as u64
    }
}
