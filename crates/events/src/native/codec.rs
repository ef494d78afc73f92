//! Compression of frame bodies.

use std::io;

/// How the body of a frame is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// Not at all: for bodies that do not get smaller.
    None,
    /// LZ4: the fastest to read.
    Lz4,
    /// Zstandard: smaller.
    Zstd,
}

/// Fast, and within a few percent of the size that the levels around the usual 3 reach on event columns.
const ZSTD_LEVEL: i32 = 1;

impl Compression {
    pub(crate) fn code(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Compression::None, Compression::Lz4, Compression::Zstd]
            .into_iter()
            .find(|compression| compression.code() == code)
    }
}

/// Appends the compressed body to `out`, and says how it is compressed: not at all if that is smallest.
pub(crate) fn compress(
    wanted: Compression,
    body: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<Compression> {
    let compressed = match wanted {
        Compression::None => body.to_vec(),
        Compression::Lz4 => lz4_flex::block::compress(body),
        Compression::Zstd => zstd::bulk::compress(body, ZSTD_LEVEL)?,
    };
    if compressed.len() < body.len() {
        out.extend_from_slice(&compressed);
        Ok(wanted)
    } else {
        out.extend_from_slice(body);
        Ok(Compression::None)
    }
}

/// Decompresses bodies, keeping what can be reused.
pub(crate) struct Decompressor {
    zstd: zstd::bulk::Decompressor<'static>,
}

impl Decompressor {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            zstd: zstd::bulk::Decompressor::new()?,
        })
    }

    /// Fills `body` with exactly `raw_bytes` bytes, or says no.
    pub(crate) fn decompress(
        &mut self,
        compression: Compression,
        stored: &[u8],
        raw_bytes: usize,
        body: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        const WRONG: &str = "a body that decompresses to the length that its header says";
        body.resize(raw_bytes, 0);
        let length = match compression {
            Compression::None if stored.len() == raw_bytes => {
                body.copy_from_slice(stored);
                raw_bytes
            }
            Compression::None => return Err(WRONG),
            Compression::Lz4 => {
                lz4_flex::block::decompress_into(stored, body).map_err(|_| WRONG)?
            }
            Compression::Zstd => self
                .zstd
                .decompress_to_buffer(stored, body.as_mut_slice())
                .map_err(|_| WRONG)?,
        };
        if length == raw_bytes {
            Ok(())
        } else {
            Err(WRONG)
        }
    }
}
