//! The reader's end.

use crate::bytes::Reader;
use crate::record::kind;
use crate::{Mapped, MemoryUse, Record, SystemCall, block, sites};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Why a stream cannot be read on.
#[derive(thiserror::Error, Debug)]
pub enum StreamError {
    /// The bytes are not what an executor writes.
    #[error("what the executor tells about the run is damaged")]
    Damaged,
    /// The ring or file failed.
    #[error("what the executor tells about the run cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// More than any record: a slice's log is a few megabytes.
const PAYLOAD_MAX: u32 = 256 << 20;

/// Reads records in order.
#[derive(Debug)]
pub struct StreamReader<R> {
    from: R,
    payload: Vec<u8>,
}

impl<R: Read> StreamReader<R> {
    /// Reads from a ring, or from what was kept of one.
    pub fn new(from: R) -> Self {
        StreamReader {
            from,
            payload: Vec::new(),
        }
    }

    /// The next record; `None` at the end, also where the stream was cut off within a record.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, StreamError> {
        let mut head = [0; 8];
        if !fill(&mut self.from, &mut head)? {
            return Ok(None);
        }
        let (kind, len) = head.split_at(4);
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let (kind, len) = (number(kind), number(len));
        if len > PAYLOAD_MAX {
            return Err(StreamError::Damaged);
        }
        // What there is of it is written over: to clear it first would cost as much again.
        if self.payload.len() < len as usize {
            self.payload.resize(len as usize, 0);
        }
        let payload = &mut self.payload[..len as usize];
        if !fill(&mut self.from, payload)? {
            return Ok(None);
        }
        parse(kind, &mut Reader(payload)).map(Some)
    }
}

/// Fills the buffer; false if the source ends before.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn parse<'a>(kind: u32, from: &mut Reader<'a>) -> Result<Record<'a>, StreamError> {
    Ok(match kind {
        kind::BLOCK => Record::Block {
            id: from.u32()?,
            block: block::read(from)?,
        },
        kind::LOG => Record::Log {
            thread: from.u32()?,
            fs_base: from.u64()?,
            gs_base: from.u64()?,
            words: words(from.0)?,
        },
        kind::SITES => Record::Sites {
            first: from.u32()?,
            sites: from.list(sites::BYTES_MIN, sites::read)?,
        },
        kind::RUN => Record::Run {
            site: from.u32()?,
            run: sites::read_run(from)?,
        },
        kind::PASSED => Record::Passed {
            thread: from.u32()?,
            fs_base: from.u64()?,
            words: words(from.0)?,
        },
        kind::MAPPED => Record::Mapped(mapped(from)?),
        kind::FUNCTION => Record::Function {
            address: from.u64()?,
            name: String::from_utf8_lossy(from.text()?).into_owned(),
        },
        kind::THREAD_CREATED => Record::ThreadCreated {
            parent: from.u32()?,
            child: from.u32()?,
            fs_base: from.u64()?,
            stack: (from.u64()?, from.u64()?),
            tid_word: from.u64()?,
        },
        kind::THREAD_ENDED => Record::ThreadEnded {
            thread: from.u32()?,
        },
        kind::SYSTEM_CALL => Record::SystemCall(system_call(from)?),
        kind::JUMPED => Record::Jumped {
            thread: from.u32()?,
            pc: from.u64()?,
        },
        kind::PART => Record::Part {
            told: from.u8()? != 0,
        },
        kind::WITHHELD => Record::Withheld {
            thread: from.u32()?,
            block: from.u64()?,
            instead: from.u64()?,
        },
        _ => return Err(StreamError::Damaged),
    })
}

fn words(bytes: &[u8]) -> Result<&[[u8; 8]], StreamError> {
    let (words, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(StreamError::Damaged);
    }
    Ok(words)
}

fn mapped(from: &mut Reader<'_>) -> Result<Mapped, StreamError> {
    Ok(Mapped {
        start: from.u64()?,
        end: from.u64()?,
        executable: from.u8()? != 0,
        file: match from.u8()? {
            0 => None,
            _ => Some((PathBuf::from(OsStr::from_bytes(from.text()?)), from.u64()?)),
        },
    })
}

fn system_call(from: &mut Reader<'_>) -> Result<SystemCall, StreamError> {
    let (thread, pc, number) = (from.u32()?, from.u64()?, from.u64()?);
    let mut args = [0; 6];
    for argument in &mut args {
        *argument = from.u64()?;
    }
    Ok(SystemCall {
        thread,
        pc,
        number,
        args,
        result: from.u64()? as i64,
        memory: from.list(8 + 8 + 1, |from| {
            Ok(MemoryUse {
                address: from.u64()?,
                len: from.u64()?,
                written: from.u8()? != 0,
            })
        })?,
    })
}
