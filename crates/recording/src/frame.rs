//! Frames: what is written at once, and is there whole or not at all.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::ReadError;

pub(crate) const MAGIC: [u8; 8] = *b"\x89VREC\r\n\x1a";
pub(crate) const VERSION: u32 = 2;
/// Magic and version.
pub(crate) const PREFIX: usize = 12;
/// Number, stored length, raw length: 4 bytes each; stamp, checksum of what follows, checksum of these: 8 each.
pub(crate) const FRAME_HEADER: usize = 36;
const SUMMED: usize = FRAME_HEADER - 8;
/// zstd makes at most 128 KiB of a block, and a block takes at least 4 bytes: what claims more is a lie, and believing
/// it would cost memory.
const EXPANSION_MAX: u64 = (128 << 10) / 4;

/// A place between two frames, from which writing or reading can go on, in another process if need be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Position {
    /// The next frame's number.
    pub frame: u32,
    /// Where it begins in the file.
    pub byte: u64,
    /// The stamp it starts from.
    pub at: u64,
}

impl Position {
    /// What is there is not what was written.
    pub(crate) fn damaged(self, what: &'static str) -> ReadError {
        ReadError::Damaged {
            frame: self.frame,
            byte: self.byte,
            what,
        }
    }
}

/// What every recording of this version begins with.
#[must_use]
pub fn prefix() -> [u8; PREFIX] {
    let mut bytes = [0; PREFIX];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// The frame's header. `stored` is the compressed form of `raw_len` bytes.
pub(crate) fn frame_header(position: Position, stored: &[u8], raw_len: u32) -> [u8; FRAME_HEADER] {
    let stored_len = u32::try_from(stored.len()).expect("less than compress_bound of a u32");
    let mut bytes = [0; FRAME_HEADER];
    bytes[0..4].copy_from_slice(&position.frame.to_le_bytes());
    bytes[4..8].copy_from_slice(&stored_len.to_le_bytes());
    bytes[8..12].copy_from_slice(&raw_len.to_le_bytes());
    bytes[12..20].copy_from_slice(&position.at.to_le_bytes());
    bytes[20..28].copy_from_slice(&XxHash3_64::oneshot(stored).to_le_bytes());
    let sum = XxHash3_64::oneshot(&bytes[..SUMMED]);
    bytes[SUMMED..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What is found where a frame should be.
pub(crate) enum Found {
    /// A whole frame; its bytes are in the buffer.
    Frame {
        /// What it takes in the file.
        len: u64,
    },
    /// Nothing: the file ends between two frames.
    Nothing,
    /// The beginning of a frame.
    Cut,
}

/// Reads the frame at `position` into `raw`.
pub(crate) fn read_frame(
    source: &mut impl Read,
    position: Position,
    raw: &mut Vec<u8>,
) -> Result<Found, ReadError> {
    let damaged = |what| position.damaged(what);
    let header = match read_header(source, position)? {
        Ok(header) => header,
        Err(found) => return Ok(found),
    };
    if header.at != position.at {
        return Err(damaged(OTHER_FRAME));
    }
    let (stored_len, raw_len) = (header.stored_len, header.raw_len);
    let mut stored = Vec::new();
    // Grows with what is there, not with what is claimed.
    source.take(stored_len).read_to_end(&mut stored)?;
    if (stored.len() as u64) < stored_len {
        return Ok(Found::Cut);
    }
    if header.sum != XxHash3_64::oneshot(&stored) {
        return Err(damaged("its content has another checksum"));
    }
    if raw_len > stored_len.saturating_mul(EXPANSION_MAX) {
        return Err(damaged("it claims more than it can hold"));
    }
    let raw_len = raw_len as usize;
    raw.resize(raw_len, 0);
    match zstd::bulk::decompress_to_buffer(&stored, raw) {
        Ok(len) if len == raw_len => Ok(Found::Frame {
            len: FRAME_HEADER as u64 + stored_len,
        }),
        Ok(_) => Err(damaged("it holds another number of bytes than it says")),
        Err(_) => Err(damaged("it cannot be decompressed")),
    }
}

/// What a frame's header says.
struct FrameHeader {
    stored_len: u64,
    raw_len: u64,
    at: u64,
    sum: u64,
}

const OTHER_FRAME: &str = "another frame belongs there";

/// Reads the header of the frame at `position`; or says that there is no whole one.
fn read_header(
    source: &mut impl Read,
    position: Position,
) -> Result<Result<FrameHeader, Found>, ReadError> {
    let mut header = [0; FRAME_HEADER];
    match read_up_to(source, &mut header)? {
        0 => return Ok(Err(Found::Nothing)),
        FRAME_HEADER => {}
        _ => return Ok(Err(Found::Cut)),
    }
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    if long(SUMMED) != XxHash3_64::oneshot(&header[..SUMMED]) {
        return Err(position.damaged("its header has another checksum"));
    }
    if word(0) != position.frame {
        return Err(position.damaged(OTHER_FRAME));
    }
    Ok(Ok(FrameHeader {
        stored_len: u64::from(word(4)),
        raw_len: u64::from(word(8)),
        at: long(12),
        sum: long(20),
    }))
}

/// What is found where a frame should be that is not read.
pub(crate) enum Skipped {
    /// A whole frame.
    Frame {
        /// The stamp it starts from.
        at: u64,
        /// Where the next one begins; its stamp is not known.
        after: Position,
    },
    /// Nothing, or the beginning of a frame.
    End,
}

/// Reads only the header of the frame at `position`, of which number and byte count, in a file of `len` bytes.
pub(crate) fn skip_frame(
    source: &mut impl Read,
    position: Position,
    len: u64,
) -> Result<Skipped, ReadError> {
    let Ok(header) = read_header(source, position)? else {
        return Ok(Skipped::End);
    };
    let end = position.byte + FRAME_HEADER as u64 + header.stored_len;
    if end > len {
        return Ok(Skipped::End);
    }
    let after = Position {
        frame: position.frame.wrapping_add(1),
        byte: end,
        ..position
    };
    Ok(Skipped::Frame {
        at: header.at,
        after,
    })
}

/// As many bytes as there are, at most all of `bytes`.
pub(crate) fn read_up_to(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
