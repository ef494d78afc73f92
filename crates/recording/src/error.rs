//! What can go wrong with a recording's file.

use std::io;

/// Why a recording cannot be read, or not any further.
#[derive(thiserror::Error, Debug)]
pub enum ReadError {
    /// The file itself failed.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("is not a recording")]
    NotARecording,
    /// It is from another version of the format.
    #[error("is a recording of format {found}, and only format {supported} is known")]
    Version {
        /// What it says.
        found: u32,
        /// What can be read.
        supported: u32,
    },
    /// It was cut before anything was recorded.
    #[error("holds no execution: recording was stopped before the program began")]
    NothingRecorded,
    /// Bytes are not what was written.
    #[error("is damaged in frame {frame}, at byte {byte}: {what}")]
    Damaged {
        /// Which frame, from 0.
        frame: u32,
        /// Where it begins.
        byte: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// Why a recording cannot be written, or not any further. Whatever was flushed before stays good.
#[derive(thiserror::Error, Debug)]
pub enum WriteError {
    /// No room.
    #[error(
        "the disk is full: the recording has {bytes} bytes and ends at instruction {at} ({error})"
    )]
    DiskFull {
        /// What the last whole frame ends with.
        at: u64,
        /// Size of all whole frames.
        bytes: u64,
        /// What the system said.
        error: io::Error,
    },
    /// Anything else.
    #[error("the recording cannot be written, and ends at instruction {at}: {error}")]
    Io {
        /// What the last whole frame ends with.
        at: u64,
        /// What the system said.
        error: io::Error,
    },
    /// Not even its header fits.
    #[error("--max-size {max_size} is too small: a recording of this program needs {needed} bytes")]
    NoRoom {
        /// What was allowed.
        max_size: u64,
        /// What is needed at least.
        needed: u64,
    },
    /// More than a frame can hold.
    #[error("one entry of {len} bytes is too large for a recording")]
    EntryTooLarge {
        /// Its size.
        len: u64,
    },
}
