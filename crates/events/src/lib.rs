//! The vocabulary of verdict: typed ids, events, the sources that deliver them, and trace files.
//!
//! A *trace* is a sequence of [`Event`]s in one global order. The position of an event is its index in
//! that sequence, counted from 0; it is not stored in the event, since every [`TraceSource`] delivers
//! events in order and without gaps.
//!
//! [`open()`] reads a trace file of any supported [`Format`]; [`create`] writes one.
#![forbid(unsafe_code)]

mod describe;
mod digest;
mod error;
mod event;
mod export;
pub mod generate;
mod ids;
mod input;
mod intern;
mod names;
pub mod native;
mod open;
mod repeats;
mod source;
#[cfg(test)]
mod test_events;
mod text;

pub use digest::{Between, Digest, Mark, Step};
pub use error::{TraceError, WriteError};
pub use event::{Access, Event, EventKind, LockMode, MemoryOrder};
pub use export::{TraceWriter, create};
pub use ids::{Addr, Position, SiteId, SyncId, ThreadId};
pub use names::NameTable;
pub use open::{Format, open, open_stream, read_as, recognise};
pub use repeats::Repeats;
pub use source::{Names, TraceSource};
pub use text::csv::{CsvReader, CsvWriter};
pub use text::roadrunner::{RoadRunnerReader, RoadRunnerWriter};
pub use text::rv_predict::RvPredictReader;
pub use text::std::{StdReader, StdWriter};
