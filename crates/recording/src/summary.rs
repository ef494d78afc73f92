//! How much is inside, without reading all of it: what a recorder says when it is done.

use std::io::{Read, Seek, SeekFrom};

use crate::frame::{self, Skipped};
use crate::info::bits_per_instruction;
use crate::{Ending, Position, ReadError, Reader};

/// The least that is to be known of a recording. Only its last frame is decoded: that nothing before it is damaged is
/// for those to check who read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// How it ended.
    pub ending: Ending,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Size of the file, up to its last whole frame.
    pub bytes: u64,
}

impl Summary {
    /// Of a recording from its beginning.
    pub fn of(mut source: impl Read + Seek) -> Result<Self, ReadError> {
        let reader = Reader::open(&mut source)?;
        let header = reader.header().clone();
        let first = reader.position().expect("a header is a frame of its own");
        let len = source.seek(SeekFrom::End(0))?;
        let (mut last, mut next) = (first, first);
        loop {
            source.seek(SeekFrom::Start(next.byte))?;
            let Skipped::Frame { at, after } = frame::skip_frame(&mut source, next, len)? else {
                break;
            };
            last = Position { at, ..next };
            next = after;
        }
        source.seek(SeekFrom::Start(last.byte))?;
        let mut reader = Reader::resume(source, header, last);
        let mut instructions = last.at;
        while let Some(stamped) = reader.next()? {
            instructions = stamped.at;
        }
        let ending = reader.ending().expect("read to its end").clone();
        Ok(Self {
            ending,
            instructions,
            bytes: reader.bytes_read(),
        })
    }

    /// Size of the recording for each instruction recorded, attached files included.
    #[must_use]
    pub fn bits_per_instruction(&self) -> f64 {
        bits_per_instruction(self.bytes, self.instructions)
    }
}
