//! The file header and the frame header.
//!
//! ```text
//! offset  size
//!      0     1  kind: 1 names, 2 events, 3 index, 4 end
//!      1     1  compression of the body: 0 none, 1 LZ4, 2 Zstandard
//!      2     2  zero
//!      4     4  bytes of the payload as stored
//!      8     4  bytes of the body when decompressed
//!     12     4  number of events
//!     16     8  position of the first event
//!     24     4  bytes of the thread list, with which the payload begins
//!     28     4  crc32 of the payload
//!     32     4  crc32 of the 32 bytes before
//! ```

use super::codec::Compression;

/// Neither text nor any other common format; a transfer that changes line ends damages it.
pub(crate) const MAGIC: [u8; 8] = *b"\x89VTRC\r\n\x1a";

/// The only version so far.
pub(crate) const VERSION: u32 = 1;

pub(crate) const FILE_HEADER_BYTES: usize = 16;
pub(crate) const FRAME_HEADER_BYTES: usize = 36;

/// Events in a frame at most, so that two bytes number the shapes and operands of a frame.
pub(crate) const FRAME_EVENTS_MAX: usize = 1 << 16;

/// No frame needs more: 65536 events of at most 60 bytes each in their tables and columns.
pub(crate) const BODY_BYTES_MAX: u32 = 4 << 20;

/// A payload is a body, not made larger by compression, and a list of at most 65536 threads of 5 bytes.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = BODY_BYTES_MAX + (5 << 16);

pub(crate) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

pub(crate) fn check_file_header(header: &[u8; FILE_HEADER_BYTES]) -> Result<(), String> {
    if header[..8] != MAGIC {
        return Err("expected the signature of a native trace".to_owned());
    }
    if read_u32(header, 12) != crc32fast::hash(&header[..12]) {
        return Err("the file header is damaged: its checksum does not match".to_owned());
    }
    match read_u32(header, 8) {
        VERSION => Ok(()),
        version => Err(format!(
            "the trace is of version {version}, this program reads version {VERSION}"
        )),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    Names,
    Events,
    Index,
    End,
}

const KINDS: [(u8, FrameKind); 4] = [
    (1, FrameKind::Names),
    (2, FrameKind::Events),
    (3, FrameKind::Index),
    (4, FrameKind::End),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) compression: Compression,
    pub(crate) payload_bytes: u32,
    pub(crate) body_bytes: u32,
    pub(crate) events: u32,
    pub(crate) first: u64,
    pub(crate) threads_bytes: u32,
    pub(crate) payload_sum: u32,
}

impl FrameHeader {
    pub(crate) fn to_bytes(self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        let (code, _) = KINDS
            .into_iter()
            .find(|&(_, kind)| kind == self.kind)
            .expect("every kind has a code");
        bytes[0] = code;
        bytes[1] = self.compression.code();
        bytes[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.events.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.threads_bytes.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.payload_sum.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Self, &'static str> {
        if read_u32(bytes, 32) != crc32fast::hash(&bytes[..32]) {
            return Err("the frame header is damaged: its checksum does not match");
        }
        let kind = KINDS.into_iter().find(|&(code, _)| code == bytes[0]);
        let (_, kind) = kind.ok_or("expected a frame of known kind")?;
        let header = Self {
            kind,
            compression: Compression::from_code(bytes[1]).ok_or("expected a known compression")?,
            payload_bytes: read_u32(bytes, 4),
            body_bytes: read_u32(bytes, 8),
            events: read_u32(bytes, 12),
            first: u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes")),
            threads_bytes: read_u32(bytes, 24),
            payload_sum: read_u32(bytes, 28),
        };
        header.check(bytes)?;
        Ok(header)
    }

    fn check(&self, bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<(), &'static str> {
        if bytes[2..4] != [0, 0] {
            return Err("expected zero in the reserved bytes of the frame header");
        }
        if self.body_bytes > BODY_BYTES_MAX || self.payload_bytes > PAYLOAD_BYTES_MAX {
            return Err("the frame is larger than any frame can be");
        }
        if self.threads_bytes > self.payload_bytes {
            return Err("the thread list is longer than the frame");
        }
        let is_events = self.kind == FrameKind::Events;
        if self.events as usize > FRAME_EVENTS_MAX || is_events != (self.events > 0) {
            return Err("the frame has an impossible number of events");
        }
        if !is_events && self.threads_bytes != 0 {
            return Err("the frame has a thread list but no events");
        }
        Ok(())
    }
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}
