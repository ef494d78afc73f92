//! Events for tests, in few words.

use crate::{Access, Addr, Event, EventKind, SiteId, ThreadId};

/// Every thread has a site of its own, so that a test notices when sites are mixed up.
pub(crate) fn event(thread: u32, kind: EventKind) -> Event {
    Event {
        thread: ThreadId(thread),
        site: SiteId(7 + thread),
        kind,
    }
}

fn access(addr: u64, size: u32) -> Access {
    Access {
        addr: Addr(addr),
        size,
        value: None,
    }
}

pub(crate) fn read(thread: u32, addr: u64, size: u32) -> Event {
    event(thread, EventKind::Read(access(addr, size)))
}

pub(crate) fn write(thread: u32, addr: u64, size: u32) -> Event {
    event(thread, EventKind::Write(access(addr, size)))
}
