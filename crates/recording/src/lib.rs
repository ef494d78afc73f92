//! Recordings: everything needed to repeat one execution, as a file (Narayanasamy et al. 2007, section 3; Kasikci et
//! al. 2015, section 4.1).
//!
//! The engine is deterministic: between two answers of the outside world a program does the same in every run. So
//! a recording is short. It is a [`Header`] (what was run, on which CPU, with which files) and a journal of [`Entry`]s,
//! each stamped with the number of instructions that all threads together had retired when it happened: who ran from
//! there on, what the outside answered, which signals came.
//! Departs from iDNA, which logs the loads of each thread: here the journal holds only what came from outside. The
//! papers' sequencers need no entries of their own either: one stamp orders the entries of all threads.
//!
//! # The file
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | magic |
//! | 4 | version |
//! | frames | the first holds the header, the others entries, the last ends in [`Entry::End`] |
//!
//! A frame is compressed and protected: its own header has the frame's number, its lengths, the stamp it starts from, and
//! checksums of itself and of what follows. So every changed byte is noticed, and so is a frame that is missing,
//! doubled or out of place. A writer that is killed, or whose disk is full, leaves whole frames and perhaps a beginning
//! of one: such a file is *cut* ([`Ending::Cut`]), not damaged, and is good up to its last whole frame.
#![forbid(unsafe_code)]

mod codec;
mod digest;
mod end;
mod entry;
mod error;
mod frame;
mod header;
mod identity;
mod info;
mod pack;
mod reader;
mod summary;
mod writer;

pub use digest::{OutputDigest, digest, digest_words};
pub use end::{End, EndOutcome, OutputSum};
pub use entry::{Entry, FileId, MemoryWrite, Output, Stamped, WaitKind};
pub use error::{ReadError, WriteError};
pub use frame::{Position, prefix};
pub use header::{Clock, CpuIdentity, CpuidWord, Document, Header, SchedulePolicy, Started};
pub use identity::{ContentHash, FileIdentity, IdentityError};
pub use info::{Info, InfoFile, KindCount};
pub use pack::{PackError, pack};
pub use reader::{Ending, Reader};
pub use summary::Summary;
pub use writer::{Room, Writer, WriterOptions};

/// True if the file begins as a recording does.
pub fn is_recording(path: &std::path::Path) -> bool {
    use std::io::Read;
    let mut start = [0; frame::MAGIC.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == frame::MAGIC
}
