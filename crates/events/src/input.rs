//! The bytes of a trace file: from a path or standard input, decompressed where they are compressed.
//!
//! Compression is recognised by its magic bytes, never by the file's name.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use crate::TraceError;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How much of the (decompressed) content is looked at to recognise its format.
const SNIFF_BYTES: usize = 64 * 1024;

/// Decompressed bytes of a trace, its first ones already looked at.
pub(crate) struct Input {
    /// What to call it in errors: the path, or `<stdin>`.
    pub(crate) file: String,
    /// The first bytes, up to [`SNIFF_BYTES`]; `bytes` delivers them again.
    pub(crate) start: Vec<u8>,
    /// All bytes.
    pub(crate) bytes: Box<dyn Read + Send>,
}

impl Input {
    /// Opens a path, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        if path.as_os_str() == "-" {
            return Self::new("<stdin>".to_owned(), Box::new(io::stdin()));
        }
        let file = path.display().to_string();
        match File::open(path) {
            Ok(bytes) => Self::new(file, Box::new(bytes)),
            Err(source) => Err(TraceError::Io { file, source }),
        }
    }

    /// Decompresses and looks at the first bytes of any source.
    pub(crate) fn new(file: String, bytes: Box<dyn Read + Send>) -> Result<Self, TraceError> {
        Self::sniff(bytes)
            .map(|(start, bytes)| Self {
                file: file.clone(),
                start,
                bytes,
            })
            .map_err(|source| TraceError::Io { file, source })
    }

    fn sniff(mut bytes: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
        let start = read_up_to(&mut bytes, ZSTD_MAGIC.len())?;
        let raw = Box::new(Cursor::new(start.clone()).chain(bytes));
        let mut plain: Box<dyn Read + Send> = if start.starts_with(&GZIP_MAGIC) {
            Box::new(flate2::read::MultiGzDecoder::new(raw))
        } else if start.starts_with(&ZSTD_MAGIC) {
            Box::new(zstd::stream::read::Decoder::new(raw)?)
        } else {
            raw
        };
        let start = read_up_to(&mut plain, SNIFF_BYTES)?;
        let bytes = Box::new(Cursor::new(start.clone()).chain(plain));
        Ok((start, bytes))
    }
}

/// Reads until `limit` bytes or the end. Short reads, as from a pipe, are continued.
pub(crate) fn read_up_to(bytes: &mut dyn Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    bytes.take(limit as u64).read_to_end(&mut start)?;
    Ok(start)
}
