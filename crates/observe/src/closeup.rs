//! A closer look at events that a first look at the same run has chosen: how the thread came there, what it held, whose
//! memory it was. The first look is fast because it remembers none of this.
//!
//! A run is the same every time, so an event is known by its position. All that is remembered of the rest is where
//! blocks that will be hit were allocated, and where locks were taken. What comes after the last of the events nobody asks for.

use std::collections::{BTreeMap, BTreeSet};

use verdict_events::{Addr, EventKind, LockMode, SiteId, ThreadId};

use crate::calls::Calls;
use crate::observer::Observer;
use crate::sites::Place;

/// Frames of a stack that are kept.
pub(crate) const FRAMES_MAX: usize = 64;
/// The same where it is not known whether anybody will want them.
const FRAMES_KEPT: usize = 16;
/// Static thread-local storage reaches this far below the thread pointer, at most.
const THREAD_LOCAL_BYTES: u64 = 64 << 10;

/// Which events, and which byte of each.
pub type Wanted = BTreeMap<u64, Addr>;

/// An event, seen closely.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closeup {
    /// Who.
    pub thread: ThreadId,
    /// What is to blame.
    pub site: SiteId,
    /// What was done.
    pub kind: EventKind,
    /// How the thread came there: the instruction itself, then the calls, innermost first.
    pub stack: Vec<Place>,
    /// The locks that the thread held, by address.
    pub locks: Vec<HeldLock>,
    /// Whose memory it was.
    pub memory: Memory,
}

/// A lock that a thread held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldLock {
    /// Where it is.
    pub address: u64,
    /// How it was held.
    pub mode: LockMode,
    /// Where it was taken, innermost first.
    pub taken_at: Vec<Place>,
    /// Whose memory it is in.
    pub memory: Memory,
}

/// Whose memory an address is in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Memory {
    /// A module's, or nobody knows.
    #[default]
    Static,
    /// A block's that somebody asked for.
    Block {
        /// First byte.
        start: u64,
        /// How many bytes.
        len: u64,
        /// Who asked for it.
        thread: Option<ThreadId>,
        /// Where, innermost first.
        allocated_at: Vec<Place>,
    },
    /// A thread's stack, with its thread-local variables above.
    Stack {
        /// Whose.
        thread: ThreadId,
        /// Its thread pointer.
        thread_pointer: u64,
    },
    /// Right below a thread's pointer, but not in its stack.
    ThreadLocal {
        /// Whose.
        thread: ThreadId,
        /// Its thread pointer.
        thread_pointer: u64,
    },
}

/// Events seen closely, by position.
pub type Closeups = BTreeMap<u64, Closeup>;

/// What is remembered while looking.
#[derive(Default, Debug)]
pub(crate) struct Looking {
    wanted: Wanted,
    /// The bytes of them all.
    bytes: BTreeSet<u64>,
    /// Events so far.
    position: u64,
    /// Where blocks that will be hit come from, by first byte.
    blocks: BTreeMap<u64, (ThreadId, Vec<u64>)>,
    /// Where locks were taken.
    locks: BTreeMap<(usize, u64), Vec<u64>>,
    /// The stacks of threads: first byte, end, whose.
    stacks: Vec<(u64, u64, ThreadId)>,
    pub(crate) seen: Closeups,
}

impl Looking {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Looking {
            bytes: wanted.values().map(|address| address.0).collect(),
            wanted,
            ..Looking::default()
        }
    }

    /// True if all events that are wanted have been told.
    pub(crate) fn is_over(&self) -> bool {
        let last = self.wanted.last_key_value();
        last.is_none_or(|(last, _)| *last < self.position)
    }

    fn wants_byte_of(&self, start: u64, len: u64) -> bool {
        let range = start..start.saturating_add(len);
        self.bytes.range(range).next().is_some()
    }
}

impl Observer {
    /// An event is about to be told.
    pub(crate) fn look_at(&mut self, index: usize, site: SiteId, kind: &EventKind) {
        let Some(looking) = &mut self.looking else {
            return;
        };
        let position = looking.position;
        looking.position += 1;
        let Some(&address) = looking.wanted.get(&position) else {
            return;
        };
        let thread = &self.threads[index];
        let at = if thread.at != 0 {
            thread.at
        } else {
            thread.last_own
        };
        let mut stack = vec![self.place(at)];
        // What a function is known to do is told when it is called: it is blamed on the call, and it is that call's frame.
        let above = calls(&thread.calls, FRAMES_MAX);
        let above = above.strip_prefix(&[at]).unwrap_or(&above);
        stack.extend(self.places(above));
        let closeup = Closeup {
            thread: ThreadId(index as u32),
            site,
            kind: *kind,
            stack,
            locks: self.locks_of(index),
            memory: self.memory_at(address.0),
        };
        if let Some(looking) = &mut self.looking {
            looking.seen.insert(position, closeup);
        }
    }

    pub(crate) fn places(&self, pcs: &[u64]) -> Vec<Place> {
        pcs.iter().map(|pc| self.place(*pc)).collect()
    }

    fn locks_of(&self, index: usize) -> Vec<HeldLock> {
        let Some(looking) = &self.looking else {
            return Vec::new();
        };
        let held = self.threads[index].held.iter();
        let mut locks: Vec<HeldLock> = held
            .map(|(&address, &(mode, _))| HeldLock {
                address,
                mode,
                taken_at: looking
                    .locks
                    .get(&(index, address))
                    .map_or_else(Vec::new, |pcs| self.places(pcs)),
                memory: self.memory_at(address),
            })
            .collect();
        locks.sort_by_key(|lock| lock.address);
        locks
    }

    fn memory_at(&self, address: u64) -> Memory {
        let Some(looking) = &self.looking else {
            return Memory::Static;
        };
        if let Some((start, block)) = self.ownership.block_at(address) {
            let origin = looking.blocks.get(&start);
            return Memory::Block {
                start,
                len: block.len,
                thread: origin.map(|(thread, _)| *thread),
                allocated_at: origin.map_or_else(Vec::new, |(_, pcs)| self.places(pcs)),
            };
        }
        let stack = looking
            .stacks
            .iter()
            .rev()
            .find(|(start, end, _)| (*start..*end).contains(&address));
        if let Some(&(_, _, thread)) = stack {
            let thread_pointer = self.threads[thread.0 as usize].fs_base;
            return Memory::Stack {
                thread,
                thread_pointer,
            };
        }
        let below = |pointer: u64| {
            pointer
                .checked_sub(address)
                .is_some_and(|distance| distance > 0 && distance <= THREAD_LOCAL_BYTES)
        };
        let owner = self.threads.iter().position(|thread| below(thread.fs_base));
        match owner {
            Some(index) if self.modules.holding(address).is_none() => Memory::ThreadLocal {
                thread: ThreadId(index as u32),
                thread_pointer: self.threads[index].fs_base,
            },
            _ => Memory::Static,
        }
    }

    /// A block was asked for.
    pub(crate) fn look_at_block(&mut self, index: usize, site: SiteId, start: u64, len: u64) {
        let wants = self
            .looking
            .as_ref()
            .is_some_and(|looking| looking.wants_byte_of(start, len));
        if !wants {
            return;
        }
        let pcs = self.stack_above(index, site, FRAMES_MAX);
        if let Some(looking) = &mut self.looking {
            looking.blocks.insert(start, (ThreadId(index as u32), pcs));
        }
    }

    /// A lock was taken.
    pub(crate) fn look_at_lock(&mut self, index: usize, site: SiteId, lock: u64) {
        if self.looking.is_none() {
            return;
        }
        let pcs = self.stack_above(index, site, FRAMES_KEPT);
        if let Some(looking) = &mut self.looking {
            looking.locks.insert((index, lock), pcs);
        }
    }

    /// A thread has a stack of its own.
    pub(crate) fn look_at_stack(&mut self, thread: u32, start: u64, end: u64) {
        if let Some(looking) = &mut self.looking {
            looking.stacks.push((start, end, ThreadId(thread)));
        }
    }

    /// A stack from the site that is to blame on: what a library did inside is left out.
    pub(crate) fn stack_above(&self, index: usize, site: SiteId, frames_max: usize) -> Vec<u64> {
        let Some(pc) = self.sites.infos.get(site.0 as usize).map(|info| info.pc) else {
            return Vec::new();
        };
        let all = calls(&self.threads[index].calls, FRAMES_MAX);
        let outside = match all.iter().position(|call| *call == pc) {
            Some(at) => &all[at + 1..],
            None => &all[..],
        };
        let frames = std::iter::once(pc).chain(outside.iter().copied());
        frames.take(frames_max).collect()
    }
}

fn calls(calls: &Calls, frames_max: usize) -> Vec<u64> {
    calls
        .innermost_first()
        .map(|frame| frame.call)
        .filter(|call| *call != 0)
        .take(frames_max)
        .collect()
}
