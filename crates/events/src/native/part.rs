//! Event frames as they were stored, to be decoded elsewhere than where they are read.

use super::codec::Decompressor;
use super::decode::{FrameEvents, Known};
use super::frame::{FRAME_HEADER_BYTES, FrameHeader};
use super::reader::BATCH_EVENTS;
use crate::{Digest, TraceError};

/// Some events that follow each other in a trace, not decoded yet.
pub struct Part {
    pub(super) file: String,
    /// Where its frame starts.
    pub(super) offset: u64,
    /// The whole frame, as it is stored.
    pub(super) frame: Vec<u8>,
    pub(super) header: FrameHeader,
    pub(super) known: Known,
}

impl Part {
    /// The body, as it is stored.
    fn stored(&self) -> &[u8] {
        &self.frame[FRAME_HEADER_BYTES + self.header.threads_bytes as usize..]
    }

    fn end(&self) -> u64 {
        self.offset + self.frame.len() as u64
    }
}

/// Decodes parts, in any order. Keeps its tables from one to the next.
pub struct PartDecoder {
    decompressor: Decompressor,
    frame: FrameEvents,
}

impl PartDecoder {
    /// One that has decoded nothing yet.
    pub fn new() -> std::io::Result<PartDecoder> {
        Ok(PartDecoder {
            decompressor: Decompressor::new()?,
            frame: FrameEvents::new(),
        })
    }

    /// Appends the events of a part to a digest.
    pub fn digest(&mut self, part: &Part, digest: &mut Digest) -> Result<(), TraceError> {
        let error = |offset, problem| TraceError::Binary {
            file: part.file.clone(),
            offset,
            problem,
        };
        let (header, events) = (part.header, part.header.events as usize);
        let body = self.frame.body_mut();
        self.decompressor
            .decompress(
                header.compression,
                part.stored(),
                header.body_bytes as usize,
                body,
            )
            .and_then(|()| self.frame.start(events, part.known))
            .map_err(|expected| error(part.offset, format!("expected {expected}")))?;
        digest.reserve(events);
        // Bit by bit, so that memory for accesses that are left out is not even touched.
        while self.frame.remaining() > 0 {
            self.frame
                .take_digest(BATCH_EVENTS, digest)
                .map_err(|expected| error(part.end(), in_the_frame(expected)))?;
        }
        Ok(())
    }
}

/// What is wrong where the events of a frame end.
pub(super) fn in_the_frame(expected: &str) -> String {
    format!("expected {expected} in the frame that ends here")
}
