//! Where events come from: the seam between trace readers and everything that consumes traces.

use crate::{Addr, Event, SiteId, SyncId, ThreadId};

/// A stream of events in trace order, from a file of any format or from a live replay.
pub trait TraceSource {
    /// Replaces the content of `batch` by the next events in trace order. Empty at the end of the trace.
    /// After an error nothing more can be read; the events of earlier batches stay valid.
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError>;

    /// Names of what has been delivered so far.
    fn names(&self) -> &dyn Names;
}

/// The names that a trace gives to its ids.
pub trait Names {
    /// The name of a thread (`T0`, `main`).
    fn thread(&self, id: ThreadId) -> String;
    /// The name of a site (`13`, `queue.c:40`).
    fn site(&self, id: SiteId) -> String;
    /// The name of a memory location (`V1`, `0x7f00_1234`).
    fn location(&self, addr: Addr) -> String;
    /// The name of a synchronisation object (`L1`).
    fn sync(&self, id: SyncId) -> String;
}

/// Why a trace could not be read further. Each names the file, where in it, and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Reading the bytes failed.
    #[error("{file}: cannot be read: {source}")]
    Io {
        /// The file, or `<stdin>`.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of a text trace is not of its format.
    #[error("{file}:{line}: expected {expected}, found `{found}`")]
    Text {
        /// The file, or `<stdin>`.
        file: String,
        /// Line number from 1.
        line: u64,
        /// What the format allows here.
        expected: String,
        /// The text that is there, shortened.
        found: String,
    },
    /// Bytes of a binary trace are not of its format.
    #[error("{file}: at byte {offset}: {problem}")]
    Binary {
        /// The file, or `<stdin>`.
        file: String,
        /// Offset of the first byte that could not be understood.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
}
