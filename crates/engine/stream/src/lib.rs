//! What an executor tells about a run while it runs, in the order in which it happened.
//!
//! The executor writes as little as it can: the words of the access log as they are, and once per block what they mean.
//! Whoever reads ([`StreamReader`]) puts them together on another core. Each [`Record`] is a kind, a length and a
//! payload; a stream that ends within a record was cut off, by a crash or by the user. They go through memory that both sides
//! share ([`ring()`]).

mod block;
mod bytes;
mod noted;
mod read;
mod record;
mod ring;
mod runtime;
mod sites;
mod write;

pub use block::BlockInfo;
pub use noted::NOTED_FUNCTIONS;
pub use read::{StreamError, StreamReader};
pub use record::{LOST, Mapped, MemoryUse, Record, SystemCall};
pub use ring::{RingEnds, RingReader, RingWriter, ring};
pub use runtime::{Runtime, runtime_of};
pub use verdict_translate::Site;
pub use write::StreamWriter;
