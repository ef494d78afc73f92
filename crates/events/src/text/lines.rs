//! Lines from a byte stream through one buffer, whatever the size of the stream.

use std::io::Read;

use crate::TraceError;

/// Longest line accepted: no event needs one, and a file without line ends must not fill the memory.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// Bytes looked at for a line of usual shape, all of which are then known to be in the buffer.
pub(crate) const WINDOW: usize = 64;

/// First size of the buffer: it is read through the second-level cache.
const BUFFER_BYTES: usize = 256 * 1024;

/// Why there is no next line.
pub(crate) enum LinesError {
    Io(std::io::Error),
    TooLong { line: u64, start: Vec<u8> },
}

impl LinesError {
    pub(crate) fn into_trace_error(self, file: &str) -> TraceError {
        let file = file.to_owned();
        match self {
            LinesError::Io(source) => TraceError::Io { file, source },
            LinesError::TooLong { line, start } => TraceError::Text {
                file,
                line,
                expected: format!("a line of at most {LINE_BYTES_MAX} bytes"),
                found: super::shown(&start),
            },
        }
    }
}

pub(crate) struct Lines {
    bytes: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The unread bytes are `buffer[at..filled]`.
    at: usize,
    filled: usize,
    ended: bool,
    /// Number of lines taken.
    number: u64,
}

impl Lines {
    pub(crate) fn new(bytes: Box<dyn Read + Send>) -> Self {
        Self {
            bytes,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            filled: 0,
            ended: false,
            number: 0,
        }
    }

    /// The number of the line taken last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next bytes, where that many are in the buffer.
    #[inline(always)]
    pub(crate) fn window(&self) -> Option<&[u8; WINDOW]> {
        self.buffer[..self.filled][self.at..].first_chunk()
    }

    /// Takes a line whose length with its end is known from a look at the window.
    #[inline(always)]
    pub(crate) fn consume_line(&mut self, bytes: usize) {
        self.at += bytes;
        self.number += 1;
    }

    /// Takes the next line, without its end.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, LinesError> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.at..self.filled];
            if let Some(end) = memchr::memchr(b'\n', &unread[searched..]) {
                let bytes = searched + end;
                let start = self.at;
                self.consume_line(bytes + 1);
                return Ok(Some(without_cr(&self.buffer[start..start + bytes])));
            }
            searched = unread.len();
            if searched > LINE_BYTES_MAX {
                let line = self.number + 1;
                let start = unread[..256].to_vec();
                return Err(LinesError::TooLong { line, start });
            }
            if self.ended {
                return Ok(self.last_line());
            }
            self.fill().map_err(LinesError::Io)?;
        }
    }

    /// What remains when there is no further line end.
    fn last_line(&mut self) -> Option<&[u8]> {
        if self.at == self.filled {
            return None;
        }
        let start = self.at;
        self.consume_line(self.filled - start);
        Some(without_cr(&self.buffer[start..self.filled]))
    }

    /// Reads more bytes behind the unread ones.
    fn fill(&mut self) -> std::io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.bytes.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(bytes) => self.filled += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
