//! The native trace format, `.vtrace`: compact, checked, written and read as a stream, and seekable.
//!
//! ```text
//! file    = file header, frame*, end frame
//! header  = magic (8 bytes), version u32, crc32 of the 12 bytes before
//! frame   = frame header (36 bytes, see `frame`), payload
//! payload = ids of the threads that occur (event frames only), body (compressed)
//! ```
//!
//! All integers are little endian; `varint` is LEB128. There are four kinds of frames:
//!
//! - **Names** of threads, sites, locations and synchronisation objects, before the first event that
//!   uses them (see `names_frame`).
//! - **Events**: up to 65536 consecutive events, in columns. What is the same for all events that one
//!   thread does at one site (the *shape*) stands in a table of the frame, as do the distinct addresses;
//!   an event is two small numbers (see `encode`). An event frame can be decoded alone.
//! - **Index**: where the other frames are, which positions they hold and which threads occur in them.
//! - **End**: how many events there are and where the index is. Always the last 52 bytes of a finished file.
//!
//! Every byte is covered by a checksum or compared with a constant. A reader that meets the end of the
//! bytes before the end frame has read every whole frame and says so
//! ([`TraceError::Incomplete`](crate::TraceError::Incomplete)); when the file has grown meanwhile it can go on.
//! Thread and site ids are dense: an event may only use ids that names frames before it have introduced.

mod codec;
mod decode;
mod encode;
mod frame;
mod index;
mod names_frame;
mod part;
mod reader;
mod seek;
mod shape;
pub mod varint;
mod writer;

pub use codec::Compression;
pub use part::{Part, PartDecoder};
pub use reader::NativeReader;
pub use seek::{NativeFile, ThreadEvents};
pub use writer::NativeWriter;

pub(crate) use frame::MAGIC;
