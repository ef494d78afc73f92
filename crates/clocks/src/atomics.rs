//! Atomic accesses and fences, by the C11 rules as a trace shows them.
//!
//! A load is taken to read the store that comes last before it in the trace at the same first byte. A release
//! store starts a release sequence there; read-modify-writes continue it, any other store ends it. An acquire
//! load that reads from the sequence receives what its head posted. A release fence lends its post to later
//! relaxed stores of its thread; an acquire fence receives what earlier relaxed loads of its thread
//! read. Relaxed accesses by themselves order nothing.
//!
//! Departs from C11: `SeqCst` orders like `AcqRel` (their single total order adds no happens-before);
//! consume does not exist; atomics of different sizes synchronise only if they start at the same byte.

use rustc_hash::FxHashMap;
use verdict_events::{Addr, MemoryOrder, ThreadId};

use crate::{Posted, VectorClock};

#[derive(Debug, Default)]
pub(crate) struct Atomics {
    /// What the release sequence that a load would read from posted.
    sequences: FxHashMap<Addr, Posted>,
    fences: FxHashMap<ThreadId, Fences>,
}

/// What fences of one thread remember between accesses.
#[derive(Debug, Default)]
struct Fences {
    /// What the last release fence posted.
    released: Posted,
    /// What relaxed loads have read and no acquire fence has received yet.
    unreceived: Posted,
}

pub(crate) fn acquires(order: MemoryOrder) -> bool {
    matches!(
        order,
        MemoryOrder::Acquire | MemoryOrder::AcqRel | MemoryOrder::SeqCst
    )
}

pub(crate) fn releases(order: MemoryOrder) -> bool {
    matches!(
        order,
        MemoryOrder::Release | MemoryOrder::AcqRel | MemoryOrder::SeqCst
    )
}

impl Atomics {
    pub fn load_acquire(&self, addr: Addr, clock: &mut VectorClock) {
        if let Some(sequence) = self.sequences.get(&addr) {
            sequence.receive(clock);
        }
    }

    pub fn load_relaxed(&mut self, addr: Addr, thread: ThreadId) {
        if let Some(sequence) = self.sequences.get(&addr) {
            self.fences
                .entry(thread)
                .or_default()
                .unreceived
                .join(sequence);
        }
    }

    pub fn store_release(&mut self, addr: Addr, thread: ThreadId, clock: &VectorClock) {
        self.sequences
            .entry(addr)
            .or_default()
            .replace(thread, clock);
    }

    pub fn store_relaxed(&mut self, addr: Addr, thread: ThreadId) {
        if let Some(sequence) = self.sequences.get_mut(&addr) {
            sequence.clear();
        }
        self.update_relaxed(addr, thread);
    }

    pub fn update_release(&mut self, addr: Addr, thread: ThreadId, clock: &VectorClock) {
        self.sequences.entry(addr).or_default().post(thread, clock);
    }

    pub fn update_relaxed(&mut self, addr: Addr, thread: ThreadId) {
        if let Some(fences) = self.fences.get(&thread) {
            self.sequences
                .entry(addr)
                .or_default()
                .join(&fences.released);
        }
    }

    pub fn fence_acquire(&mut self, thread: ThreadId, clock: &mut VectorClock) {
        if let Some(fences) = self.fences.get_mut(&thread) {
            fences.unreceived.receive(clock);
            fences.unreceived.clear();
        }
    }

    pub fn fence_release(&mut self, thread: ThreadId, clock: &VectorClock) {
        self.fences
            .entry(thread)
            .or_default()
            .released
            .replace(thread, clock);
    }

    /// What is posted and may still be received, in no particular order.
    pub fn posted(&self) -> impl Iterator<Item = &Posted> {
        let fences = self
            .fences
            .values()
            .flat_map(|fences| [&fences.released, &fences.unreceived]);
        self.sequences.values().chain(fences)
    }

    pub fn len(&self) -> usize {
        self.sequences.len() + 2 * self.fences.len()
    }
}
