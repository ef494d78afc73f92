//! Which block precedes which.

use std::hint::black_box;
use std::sync::{Mutex, OnceLock};

use crate::frame::Blocks;
use crate::index::Index;
use crate::load::FrameId;
use crate::parallel::Workers;

/// How many blocks [`Order::glance`] looks at: about as many as a processor can wait for at once.
pub(crate) const GLANCE: usize = 32;

/// The blocks of some threads, with their clocks.
pub struct Order {
    /// By number: a [`Known`] as it is kept.
    blocks: Vec<[u32; 4]>,
    /// By number: first positions, which only races ask for.
    starts: Vec<u64>,
    frames: Vec<Blocks>,
    /// By thread: which of `frames` is its first.
    first_frames: Vec<u32>,
    /// By thread: its blocks, in order, each with its number of entries. Only pairs of threads ask for them.
    threads: OnceLock<Vec<Vec<(u32, u32)>>>,
}

/// What is known of one block.
#[derive(Clone, Copy, Default)]
struct Known {
    thread: u32,
    posts: u32,
    frame: u32,
    clock: u32,
}

/// Where a block stands.
pub(crate) struct Moment<'a> {
    pub thread: u32,
    /// How many posts its thread had made.
    pub posts: u32,
    clock: u32,
    frame: &'a Blocks,
}

impl Moment<'_> {
    /// As [`Order::known`].
    #[inline]
    pub(crate) fn known(&self, thread: u32) -> u32 {
        self.frame.clock(self.clock, thread)
    }
}

/// So many blocks are put in order as one job: enough that to look for them in all frames costs nothing.
const PART_BLOCKS: usize = 1 << 14;

impl Order {
    /// From frames in order. Nothing if the blocks of a thread are out of order.
    pub(crate) fn new(
        index: &Index,
        frames: Vec<(FrameId, Blocks)>,
        workers: &Workers,
    ) -> Option<Order> {
        if !are_in_order(&frames, index.blocks) {
            return None;
        }
        let count = index.blocks as usize;
        // Zeros of numbers, not of structures: these come from the system, page by page, to whoever is the first to write there.
        let (mut blocks, mut starts) = (vec![[0; 4]; count], vec![0; count]);
        let parts: Vec<_> = blocks
            .chunks_mut(PART_BLOCKS)
            .zip(starts.chunks_mut(PART_BLOCKS))
            .map(Mutex::new)
            .collect();
        let fill = |(): &mut (), job: usize| {
            let mut part = parts[job].lock().expect("nobody panics with it");
            let (blocks, starts) = &mut *part;
            fill_part(&frames, (job * PART_BLOCKS) as u32, blocks, starts);
            Ok(())
        };
        workers.run(parts.len(), || (), fill).ok()?;
        drop(parts);
        let mut first_frames = vec![0; index.threads.len()];
        for (nth, (id, _)) in frames.iter().enumerate() {
            if id.frame == 0 {
                first_frames[id.thread as usize] = nth as u32;
            }
        }
        Some(Order {
            blocks,
            starts,
            frames: frames.into_iter().map(|(_, frame)| frame).collect(),
            first_frames,
            threads: OnceLock::new(),
        })
    }

    #[inline]
    fn at(&self, block: u32) -> Known {
        let [thread, posts, frame, clock] = self.blocks[block as usize];
        Known {
            thread,
            posts,
            frame,
            clock,
        }
    }

    pub(crate) fn frame(&self, id: FrameId) -> &Blocks {
        &self.frames[(self.first_frames[id.thread as usize] + id.frame) as usize]
    }

    /// Numbers and numbers of entries of the blocks of a thread, in order.
    pub(crate) fn blocks_of(&self, thread: u32) -> &[(u32, u32)] {
        let of_all = || {
            let mut threads = vec![Vec::new(); self.first_frames.len()];
            for block in self.frames.iter().flat_map(|frame| &frame.blocks) {
                let own: &mut Vec<(u32, u32)> = &mut threads[self.thread(block.number) as usize];
                own.push((block.number, block.entries));
            }
            threads
        };
        &self.threads.get_or_init(of_all)[thread as usize]
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> u32 {
        self.first_frames.len() as u32
    }

    #[inline]
    pub(crate) fn thread(&self, block: u32) -> u32 {
        self.at(block).thread
    }

    #[inline]
    pub(crate) fn posts(&self, block: u32) -> u32 {
        self.at(block).posts
    }

    #[inline]
    pub(crate) fn start(&self, block: u32) -> u64 {
        self.starts[block as usize]
    }

    /// How many posts of `thread` precede `block`: what that thread did with fewer behind it precedes the block.
    #[inline]
    pub(crate) fn known(&self, block: u32, thread: u32) -> u32 {
        let block = self.at(block);
        self.frames[block.frame as usize].clock(block.clock, thread)
    }

    /// Where a block stands, to compare it with several.
    #[inline]
    pub(crate) fn moment(&self, block: u32) -> Moment<'_> {
        let block = self.at(block);
        Moment {
            thread: block.thread,
            posts: block.posts,
            clock: block.clock,
            frame: &self.frames[block.frame as usize],
        }
    }

    /// [`Order::known`] of all threads, in pieces; a few zeros may follow.
    #[inline]
    pub(crate) fn known_of_all(&self, block: u32) -> impl Iterator<Item = &[u32]> {
        let block = self.at(block);
        self.frames[block.frame as usize].pieces(block.clock)
    }

    /// Reads what it takes to compare each block with the one before it. With many blocks all of that lies in cold memory, each
    /// piece where the one before it says: like this, the processor waits for all blocks at once and not for each in turn.
    #[inline]
    pub(crate) fn glance(&self, blocks: impl Iterator<Item = u32>) {
        let mut known = [Known::default(); GLANCE];
        let mut count = 0;
        for (block, known) in blocks.zip(&mut known) {
            *known = self.at(block);
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

    /// How many bytes it takes in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let frames: u64 = self.frames.iter().map(Blocks::bytes).sum();
        let each = size_of::<Known>() + size_of::<u64>() + size_of::<(u32, u32)>();
        frames + (self.blocks.len() * each) as u64
    }
}

/// Whether blocks ascend along each thread and are all of the trace. Within a frame they do, or it could not be decoded.
fn are_in_order(frames: &[(FrameId, Blocks)], blocks: u32) -> bool {
    let ends = |frame: &Blocks| {
        let [first, .., last] = &frame.blocks[..] else {
            let only = frame.blocks.first()?;
            return Some((only.number, only.number));
        };
        Some((first.number, last.number))
    };
    let mut before: Option<(u32, u32)> = None;
    for (id, frame) in frames {
        let Some((first, last)) = ends(frame) else {
            continue;
        };
        let follows = |(thread, number)| thread != id.thread || number < first;
        if last >= blocks || !before.is_none_or(follows) {
            return false;
        }
        before = Some((id.thread, last));
    }
    true
}

/// Puts down what is known of the blocks from `from` on, as many as there is room for.
fn fill_part(frames: &[(FrameId, Blocks)], from: u32, known: &mut [[u32; 4]], starts: &mut [u64]) {
    let to = from + known.len() as u32;
    for (nth, (id, frame)) in frames.iter().enumerate() {
        if frame.blocks.last().is_none_or(|last| last.number < from) {
            continue;
        }
        let first = frame.blocks.partition_point(|block| block.number < from);
        for block in frame.blocks[first..]
            .iter()
            .take_while(|block| block.number < to)
        {
            let at = (block.number - from) as usize;
            known[at] = [id.thread, block.posts, nth as u32, block.clock];
            starts[at] = block.start;
        }
    }
}
