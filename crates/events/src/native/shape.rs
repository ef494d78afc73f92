//! An event taken apart into what its thread and site decide and what differs each time.

use super::varint::Expected;
use crate::{Access, Addr, Event, EventKind, LockMode, MemoryOrder, SiteId, SyncId, ThreadId};

/// What an operand is, and so which names it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandKind {
    None,
    Location,
    Sync,
    Thread,
}

/// The part of an event that repeats: the same thread doing the same thing at the same site.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    pub(crate) thread: ThreadId,
    pub(crate) site: SiteId,
    /// Which [`EventKind`]; the constants below.
    pub(crate) code: u8,
    /// Memory order or lock mode, and [`HAS_VALUE`].
    pub(crate) detail: u8,
    /// Size of an access, or the stream of an output.
    pub(crate) size: u32,
}

/// An event is a shape, an operand (0 where there is none) and perhaps one number more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    pub(crate) shape: Shape,
    pub(crate) operand: u64,
    pub(crate) extra: Option<u64>,
}

pub(crate) const READ: u8 = 0;
pub(crate) const WRITE: u8 = 1;
const ATOMIC_LOAD: u8 = 2;
const ATOMIC_STORE: u8 = 3;
const ATOMIC_RMW: u8 = 4;
const FENCE: u8 = 5;
const ACQUIRE: u8 = 6;
const RELEASE: u8 = 7;
const FORK: u8 = 8;
const BEGIN: u8 = 9;
const END: u8 = 10;
const JOIN: u8 = 11;
const WAIT: u8 = 12;
const NOTIFY: u8 = 13;
const BARRIER_ENTER: u8 = 14;
const BARRIER_LEAVE: u8 = 15;
const SEMAPHORE_POST: u8 = 16;
const SEMAPHORE_WAIT: u8 = 17;
const ALLOCATE: u8 = 18;
const FREE: u8 = 19;
const OUTPUT: u8 = 20;

/// Bit of `detail`: the value of the access follows as the extra number.
const HAS_VALUE: u8 = 0x80;

const ORDERS: [MemoryOrder; 5] = [
    MemoryOrder::Relaxed,
    MemoryOrder::Acquire,
    MemoryOrder::Release,
    MemoryOrder::AcqRel,
    MemoryOrder::SeqCst,
];

const MODES: [LockMode; 2] = [LockMode::Exclusive, LockMode::Shared];

/// Takes an event apart.
pub(crate) fn split(event: &Event) -> Parts {
    let access = |code, access: Access, detail| {
        let flag = if access.value.is_some() { HAS_VALUE } else { 0 };
        (
            code,
            detail | flag,
            access.size,
            access.addr.0,
            access.value,
        )
    };
    let plain = |code, operand| (code, 0, 0, operand, None);
    let (code, detail, size, operand, extra) = match event.kind {
        EventKind::Read(a) => access(READ, a, 0),
        EventKind::Write(a) => access(WRITE, a, 0),
        EventKind::AtomicLoad(a, order) => access(ATOMIC_LOAD, a, order as u8),
        EventKind::AtomicStore(a, order) => access(ATOMIC_STORE, a, order as u8),
        EventKind::AtomicRmw(a, order) => access(ATOMIC_RMW, a, order as u8),
        EventKind::Fence(order) => (FENCE, order as u8, 0, 0, None),
        EventKind::Acquire(id, mode) => (ACQUIRE, mode as u8, 0, id.0, None),
        EventKind::Release(id, mode) => (RELEASE, mode as u8, 0, id.0, None),
        EventKind::Fork(thread) => plain(FORK, thread.0.into()),
        EventKind::Begin => plain(BEGIN, 0),
        EventKind::End => plain(END, 0),
        EventKind::Join(thread) => plain(JOIN, thread.0.into()),
        EventKind::Wait(id) => plain(WAIT, id.0),
        EventKind::Notify(id) => plain(NOTIFY, id.0),
        EventKind::BarrierEnter(id) => plain(BARRIER_ENTER, id.0),
        EventKind::BarrierLeave(id) => plain(BARRIER_LEAVE, id.0),
        EventKind::SemaphorePost(id) => plain(SEMAPHORE_POST, id.0),
        EventKind::SemaphoreWait(id) => plain(SEMAPHORE_WAIT, id.0),
        EventKind::Allocate { addr, size } => (ALLOCATE, 0, 0, addr.0, Some(size)),
        EventKind::Free { addr, size } => (FREE, 0, 0, addr.0, Some(size)),
        EventKind::Output { stream, bytes } => (OUTPUT, 0, stream, 0, Some(bytes)),
    };
    let shape = Shape {
        thread: event.thread,
        site: event.site,
        code,
        detail,
        size,
    };
    Parts {
        shape,
        operand,
        extra,
    }
}

impl Shape {
    /// All of it in two words, which hash faster than five fields.
    pub(crate) fn key(self) -> [u64; 2] {
        let kind = u64::from(self.code) << 40 | u64::from(self.detail) << 32 | u64::from(self.size);
        [
            u64::from(self.thread.0) << 32 | u64::from(self.site.0),
            kind,
        ]
    }

    /// Whether an extra number follows each event of this shape.
    pub(crate) fn has_extra(self) -> bool {
        matches!(self.code, ALLOCATE | FREE | OUTPUT) || self.detail & HAS_VALUE != 0
    }

    pub(crate) fn operand_kind(self) -> OperandKind {
        match self.code {
            READ..=ATOMIC_RMW | ALLOCATE | FREE => OperandKind::Location,
            ACQUIRE | RELEASE | WAIT..=SEMAPHORE_WAIT => OperandKind::Sync,
            FORK | JOIN => OperandKind::Thread,
            _ => OperandKind::None,
        }
    }

    /// Whether there can be events of this shape.
    #[inline(always)]
    pub(crate) fn check(self) -> Result<(), Expected> {
        match self.code <= WRITE && self.detail == 0 && self.size > 0 {
            true => Ok(()),
            false => self.event(0, 0).map(|_| ()),
        }
    }

    /// The event of this shape; the inverse of [`split`].
    pub(crate) fn event(self, operand: u64, extra: u64) -> Result<Event, Expected> {
        Ok(Event {
            thread: self.thread,
            site: self.site,
            kind: self.kind(operand, extra)?,
        })
    }

    fn kind(self, operand: u64, extra: u64) -> Result<EventKind, Expected> {
        let sync = SyncId(operand);
        let addr = Addr(operand);
        Ok(match self.code {
            READ => EventKind::Read(self.access(operand, extra, Detail::None)?),
            WRITE => EventKind::Write(self.access(operand, extra, Detail::None)?),
            ATOMIC_LOAD => EventKind::AtomicLoad(self.atomic(operand, extra)?, self.order()?),
            ATOMIC_STORE => EventKind::AtomicStore(self.atomic(operand, extra)?, self.order()?),
            ATOMIC_RMW => EventKind::AtomicRmw(self.atomic(operand, extra)?, self.order()?),
            FENCE => EventKind::Fence(self.order()?),
            ACQUIRE => EventKind::Acquire(sync, self.mode()?),
            RELEASE => EventKind::Release(sync, self.mode()?),
            _ if self.detail != 0 => return Err("an event without details"),
            FORK => EventKind::Fork(thread(operand)?),
            BEGIN => EventKind::Begin,
            END => EventKind::End,
            JOIN => EventKind::Join(thread(operand)?),
            WAIT => EventKind::Wait(sync),
            NOTIFY => EventKind::Notify(sync),
            BARRIER_ENTER => EventKind::BarrierEnter(sync),
            BARRIER_LEAVE => EventKind::BarrierLeave(sync),
            SEMAPHORE_POST => EventKind::SemaphorePost(sync),
            SEMAPHORE_WAIT => EventKind::SemaphoreWait(sync),
            ALLOCATE => EventKind::Allocate { addr, size: extra },
            FREE => EventKind::Free { addr, size: extra },
            OUTPUT => EventKind::Output {
                stream: self.size,
                bytes: extra,
            },
            _ => return Err("a known kind of event"),
        })
    }

    fn atomic(self, operand: u64, extra: u64) -> Result<Access, Expected> {
        self.access(operand, extra, Detail::Order)
    }

    fn access(self, operand: u64, extra: u64, detail: Detail) -> Result<Access, Expected> {
        if self.size == 0 {
            return Err("an access of at least one byte");
        }
        if detail == Detail::None && self.detail & !HAS_VALUE != 0 {
            return Err("a plain access without memory order");
        }
        Ok(Access {
            addr: Addr(operand),
            size: self.size,
            value: (self.detail & HAS_VALUE != 0).then_some(extra),
        })
    }

    fn order(self) -> Result<MemoryOrder, Expected> {
        let number = usize::from(self.detail & !HAS_VALUE);
        ORDERS.get(number).copied().ok_or("a memory order")
    }

    fn mode(self) -> Result<LockMode, Expected> {
        let mode = MODES.get(usize::from(self.detail));
        mode.copied().ok_or("a lock mode")
    }
}

#[derive(PartialEq)]
enum Detail {
    None,
    Order,
}

fn thread(operand: u64) -> Result<ThreadId, Expected> {
    let id = u32::try_from(operand).map_err(|_| "a thread number")?;
    Ok(ThreadId(id))
}
