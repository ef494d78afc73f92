//! Events for people: one line of plain words.

use std::fmt::Write;

use crate::{Access, Event, EventKind, LockMode, MemoryOrder, Names};

impl MemoryOrder {
    /// The name as used in output and in CSV traces.
    pub fn name(self) -> &'static str {
        match self {
            MemoryOrder::Relaxed => "relaxed",
            MemoryOrder::Acquire => "acquire",
            MemoryOrder::Release => "release",
            MemoryOrder::AcqRel => "acq-rel",
            MemoryOrder::SeqCst => "seq-cst",
        }
    }
}

impl EventKind {
    /// The kinds' names, in the order in which they are listed in output.
    pub const NAMES: [&'static str; 21] = [
        "read",
        "write",
        "atomic-load",
        "atomic-store",
        "atomic-rmw",
        "fence",
        "acquire",
        "release",
        "fork",
        "begin",
        "end",
        "join",
        "wait",
        "notify",
        "barrier-enter",
        "barrier-leave",
        "semaphore-post",
        "semaphore-wait",
        "allocate",
        "free",
        "output",
    ];

    /// The kind's place in [`EventKind::NAMES`].
    pub fn number(&self) -> usize {
        match self {
            EventKind::Read(_) => 0,
            EventKind::Write(_) => 1,
            EventKind::AtomicLoad(..) => 2,
            EventKind::AtomicStore(..) => 3,
            EventKind::AtomicRmw(..) => 4,
            EventKind::Fence(_) => 5,
            EventKind::Acquire(..) => 6,
            EventKind::Release(..) => 7,
            EventKind::Fork(_) => 8,
            EventKind::Begin => 9,
            EventKind::End => 10,
            EventKind::Join(_) => 11,
            EventKind::Wait(_) => 12,
            EventKind::Notify(_) => 13,
            EventKind::BarrierEnter(_) => 14,
            EventKind::BarrierLeave(_) => 15,
            EventKind::SemaphorePost(_) => 16,
            EventKind::SemaphoreWait(_) => 17,
            EventKind::Allocate { .. } => 18,
            EventKind::Free { .. } => 19,
            EventKind::Output { .. } => 20,
        }
    }

    /// The kind's name (`read`, `atomic-load`, `barrier-enter`).
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.number()]
    }
}

impl Event {
    /// The event in words: `T1 write V3 at 13`, `T2 acquire L1 (shared) at queue.c:40`.
    pub fn describe(&self, names: &dyn Names) -> String {
        let mut text = format!("{} {}", names.thread(self.thread), self.kind.name());
        let out = &mut text;
        let written = match self.kind {
            EventKind::Read(access) | EventKind::Write(access) => put_access(out, access, names),
            EventKind::AtomicLoad(access, order)
            | EventKind::AtomicStore(access, order)
            | EventKind::AtomicRmw(access, order) => {
                put_access(out, access, names).and_then(|()| write!(out, " ({})", order.name()))
            }
            EventKind::Fence(order) => write!(out, " ({})", order.name()),
            EventKind::Acquire(id, mode) | EventKind::Release(id, mode) => {
                let mode = if mode == LockMode::Shared {
                    " (shared)"
                } else {
                    ""
                };
                write!(out, " {}{mode}", names.sync(id))
            }
            EventKind::Fork(thread) | EventKind::Join(thread) => {
                write!(out, " {}", names.thread(thread))
            }
            EventKind::Begin | EventKind::End => Ok(()),
            EventKind::Wait(id)
            | EventKind::Notify(id)
            | EventKind::BarrierEnter(id)
            | EventKind::BarrierLeave(id)
            | EventKind::SemaphorePost(id)
            | EventKind::SemaphoreWait(id) => write!(out, " {}", names.sync(id)),
            EventKind::Allocate { addr, size } | EventKind::Free { addr, size } => {
                write!(out, " {} size {size}", names.location(addr))
            }
            EventKind::Output { stream, bytes } => write!(out, " {bytes} bytes to {stream}"),
        };
        written.expect("writing to a string cannot fail");
        let site = names.site(self.site);
        if !site.is_empty() {
            text.push_str(" at ");
            text.push_str(&site);
        }
        text
    }
}

/// A size of one byte, which every text trace has, goes without saying.
fn put_access(out: &mut String, access: Access, names: &dyn Names) -> std::fmt::Result {
    write!(out, " {}", names.location(access.addr))?;
    if access.size != 1 {
        write!(out, " size {}", access.size)?;
    }
    match access.value {
        Some(value) => write!(out, " value {value:#x}"),
        None => Ok(()),
    }
}
