//! Where events come from: the seam between trace readers and everything that consumes traces.

use crate::native::Part;
use crate::{Addr, Digest, Event, SiteId, SyncId, ThreadId, TraceError};

/// A stream of events in trace order, from a file of any format or from a live replay.
pub trait TraceSource {
    /// Replaces the content of `batch` by the next events in trace order. Empty at the end of the trace.
    /// After an error nothing more can be read; the events of earlier batches stay valid.
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError>;

    /// Appends the next events in trace order to a digest, none at the end of the trace. After an error nothing more can be
    /// read, and of what came last, only a part may be there.
    fn next_digest(&mut self, digest: &mut Digest) -> Result<(), TraceError> {
        let mut batch = std::mem::take(&mut digest.batch);
        let read = self.next_batch(&mut batch);
        if read.is_ok() {
            digest.extend(&batch);
        }
        digest.batch = batch;
        read
    }

    /// Whether what comes next can be had in parts, which can be decoded elsewhere, several at a time.
    fn has_parts(&self) -> bool {
        false
    }

    /// The next part of a trace that [has such](TraceSource::has_parts), in the memory of one that is not needed any more.
    /// `None` at its end. After an error nothing more can be read.
    fn next_part(&mut self, _used: Option<Part>) -> Result<Option<Part>, TraceError> {
        Ok(None)
    }

    /// Names of what has been delivered so far.
    fn names(&self) -> &dyn Names;
}

impl<S: TraceSource + ?Sized> TraceSource for Box<S> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        (**self).next_batch(batch)
    }

    fn next_digest(&mut self, digest: &mut Digest) -> Result<(), TraceError> {
        (**self).next_digest(digest)
    }

    fn has_parts(&self) -> bool {
        (**self).has_parts()
    }

    fn next_part(&mut self, used: Option<Part>) -> Result<Option<Part>, TraceError> {
        (**self).next_part(used)
    }

    fn names(&self) -> &dyn Names {
        (**self).names()
    }
}

/// The names that a trace gives to its ids. What has no name of its own is shown by its number.
pub trait Names {
    /// The name the trace gives to a thread, if any.
    fn thread_name(&self, id: ThreadId) -> Option<&str>;
    /// The name the trace gives to a site, if any.
    fn site_name(&self, id: SiteId) -> Option<&str>;
    /// The name the trace gives to the memory at an address, if any.
    fn location_name(&self, addr: Addr) -> Option<&str>;
    /// The name the trace gives to a synchronisation object, if any.
    fn sync_name(&self, id: SyncId) -> Option<&str>;

    /// What to call a thread (`T0`, `main`).
    fn thread(&self, id: ThreadId) -> String {
        self.thread_name(id)
            .map_or_else(|| format!("T{id}"), str::to_owned)
    }
    /// What to call a site (`13`, `queue.c:40`).
    fn site(&self, id: SiteId) -> String {
        self.site_name(id)
            .map_or_else(|| id.to_string(), str::to_owned)
    }
    /// What to call a memory location (`V1`, `0x7f001234`).
    fn location(&self, addr: Addr) -> String {
        self.location_name(addr)
            .map_or_else(|| format!("{:#x}", addr.0), str::to_owned)
    }
    /// What to call a synchronisation object (`L1`).
    fn sync(&self, id: SyncId) -> String {
        self.sync_name(id)
            .map_or_else(|| format!("{:#x}", id.0), str::to_owned)
    }
}
