//! The vocabulary of verdict: typed ids, events, and the sources that deliver them.
//!
//! A *trace* is a sequence of [`Event`]s in one global order. The position of an event is its index in
//! that sequence, counted from 0; it is not stored in the event, since every [`TraceSource`] delivers
//! events in order and without gaps.
#![forbid(unsafe_code)]

mod event;
mod ids;
mod source;

pub use event::{Access, Event, EventKind, LockMode, MemoryOrder};
pub use ids::{Addr, Position, SiteId, SyncId, ThreadId};
pub use source::{Names, TraceError, TraceSource};
