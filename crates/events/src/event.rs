//! One dynamic step of a thread.

use crate::{Addr, SiteId, SyncId, ThreadId};

/// One step of one thread, as every detector sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// Who did it.
    pub thread: ThreadId,
    /// Where in the program.
    pub site: SiteId,
    /// What was done.
    pub kind: EventKind,
}

/// The bytes an access touches and, where it is known, the value read or written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// First byte.
    pub addr: Addr,
    /// Number of bytes, at least 1.
    pub size: u32,
    /// The value, zero-extended, for accesses of at most 8 bytes whose value was recorded.
    pub value: Option<u64>,
}

/// How strongly an atomic operation orders memory (C11 names).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MemoryOrder {
    /// No ordering.
    Relaxed,
    /// Receives what a release published.
    Acquire,
    /// Publishes what came before.
    Release,
    /// Both.
    AcqRel,
    /// Both, and one total order over all such operations.
    SeqCst,
}

/// Whether others may hold the lock at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockMode {
    /// One holder (mutex, write lock).
    Exclusive,
    /// Many holders (read lock).
    Shared,
}

/// What an event does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventKind {
    /// Plain read.
    Read(Access),
    /// Plain write.
    Write(Access),
    /// Atomic load.
    AtomicLoad(Access, MemoryOrder),
    /// Atomic store.
    AtomicStore(Access, MemoryOrder),
    /// Atomic read-modify-write.
    AtomicRmw(Access, MemoryOrder),
    /// Memory fence.
    Fence(MemoryOrder),
    /// Lock taken (logged after it is taken).
    Acquire(SyncId, LockMode),
    /// Lock given up (logged before it is given up).
    Release(SyncId, LockMode),
    /// This thread creates another.
    Fork(ThreadId),
    /// First event of a thread.
    Begin,
    /// Last event of a thread.
    End,
    /// This thread has waited for the end of another.
    Join(ThreadId),
    /// A wait on a condition has returned; it receives what notifications posted.
    Wait(SyncId),
    /// A notification of a condition.
    Notify(SyncId),
    /// Arrival at a barrier.
    BarrierEnter(SyncId),
    /// Departure from a barrier: ordered after every arrival of the same round.
    BarrierLeave(SyncId),
    /// Semaphore up.
    SemaphorePost(SyncId),
    /// Semaphore down has returned.
    SemaphoreWait(SyncId),
    /// Memory becomes a fresh object: what happened to its bytes before does not conflict with later accesses.
    Allocate {
        /// First byte.
        addr: Addr,
        /// Number of bytes.
        size: u64,
    },
    /// Memory is given back. It conflicts like a write of the whole block.
    Free {
        /// First byte.
        addr: Addr,
        /// Number of bytes.
        size: u64,
    },
    /// Bytes handed to an output system call.
    Output {
        /// The descriptor written to.
        stream: u32,
        /// How many bytes.
        bytes: u64,
    },
}
