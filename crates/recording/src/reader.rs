//! Reads a recording, frame by frame, as far as it goes.

use std::fmt;
use std::io::Read;

use crate::codec::{Codec, Input};
use crate::frame::{self, Found, MAGIC, PREFIX, VERSION};
use crate::{End, Entry, Header, Position, ReadError, Stamped};

/// How a recording ends that can be read to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As it should.
    Complete(Box<End>),
    /// Its writer was killed or had no room: it is good up to here, and what came after is lost.
    Cut {
        /// Instructions that all threads together had retired at the last entry.
        at: u64,
        /// The last whole frame ends here.
        byte: u64,
    },
}

/// Reads entries one after the other, and can look at the next one before it is due.
pub struct Reader<R> {
    source: R,
    header: Header,
    /// The next frame.
    position: Position,
    raw: Vec<u8>,
    /// How much of `raw` was read.
    read: usize,
    at: u64,
    next: Option<Stamped>,
    /// Entries handed out.
    entries: u64,
    ending: Option<Ending>,
    /// What was found damaged: there is nothing behind it.
    damage: Option<(Position, &'static str)>,
}

impl<R: Read> Reader<R> {
    /// Opens a recording and reads its header.
    pub fn open(mut source: R) -> Result<Self, ReadError> {
        read_prefix(&mut source)?;
        let mut position = Position {
            byte: PREFIX as u64,
            ..Position::default()
        };
        let mut raw = Vec::new();
        let Found::Frame { len } = frame::read_frame(&mut source, position, &mut raw)? else {
            return Err(ReadError::NothingRecorded);
        };
        let mut input = Input::new(&raw);
        let header = Header::decode(&mut input).and_then(|header| match input.remaining() {
            0 => Ok(header),
            _ => Err("a header and nothing else"),
        });
        let header = header.map_err(|what| position.damaged(what))?;
        position.frame = 1;
        position.byte += len;
        Ok(Self::resume(source, header, position))
    }

    /// Goes on where [`Self::position`] was asked for. `source` reads from that byte on.
    #[must_use]
    pub fn resume(source: R, header: Header, position: Position) -> Self {
        Self {
            source,
            header,
            position,
            raw: Vec::new(),
            read: 0,
            at: position.at,
            next: None,
            entries: 0,
            ending: None,
            damage: None,
        }
    }

    /// What was run.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next entry; `None` at the end, see [`Self::ending`].
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot stop at an error"
    )]
    pub fn next(&mut self) -> Result<Option<Stamped>, ReadError> {
        self.peek()?;
        let next = self.next.take();
        self.entries += u64::from(next.is_some());
        Ok(next)
    }

    /// The next entry, which stays the next one.
    pub fn peek(&mut self) -> Result<Option<&Stamped>, ReadError> {
        if let Some((position, what)) = self.damage {
            return Err(position.damaged(what));
        }
        if self.next.is_none() && self.ending.is_none() {
            self.next = self.decode_next().inspect_err(|error| {
                if let ReadError::Damaged { frame, byte, what } = *error {
                    let at = self.at;
                    self.damage = Some((Position { frame, byte, at }, what));
                }
            })?;
        }
        Ok(self.next.as_ref())
    }

    /// How it ends. Known when the last entry has been looked at.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// From where another reader could go on; `None` in the middle of a frame. After [`Entry::Exec`] there is always
    /// a place.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let between = self.next.is_none() && self.read == self.raw.len();
        between.then_some(Position {
            at: self.at,
            ..self.position
        })
    }

    /// Entries that were handed out.
    #[must_use]
    pub fn entries_read(&self) -> u64 {
        self.entries
    }

    /// Where it reads from.
    #[must_use]
    pub fn source(&self) -> &R {
        &self.source
    }

    /// Size of all frames read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.position.byte
    }

    fn decode_next(&mut self) -> Result<Option<Stamped>, ReadError> {
        if self.read == self.raw.len() && !self.read_frame()? {
            self.ending = Some(Ending::Cut {
                at: self.at,
                byte: self.position.byte,
            });
            return Ok(None);
        }
        let mut input = Input::new(&self.raw[self.read..]);
        let decoded = u64::decode(&mut input).and_then(|passed| {
            let at = self.at.checked_add(passed).ok_or("a smaller stamp")?;
            let entry = Entry::decode(&mut input)?;
            Ok(Stamped { at, entry })
        });
        let stamped = decoded.map_err(|what| self.last_frame().damaged(what))?;
        self.read = self.raw.len() - input.remaining();
        self.at = stamped.at;
        if let Entry::End { end } = &stamped.entry {
            self.ending = Some(Ending::Complete(end.clone()));
            self.expect_nothing_more()?;
        }
        Ok(Some(stamped))
    }

    /// Whether there is another whole frame.
    fn read_frame(&mut self) -> Result<bool, ReadError> {
        let expected = Position {
            at: self.at,
            ..self.position
        };
        match frame::read_frame(&mut self.source, expected, &mut self.raw)? {
            Found::Frame { .. } if self.raw.is_empty() => {
                Err(expected.damaged("a frame without entries"))
            }
            Found::Frame { len } => {
                self.read = 0;
                self.position.frame = expected.frame.wrapping_add(1);
                self.position.byte += len;
                Ok(true)
            }
            Found::Nothing | Found::Cut => {
                self.raw.clear();
                self.read = 0;
                Ok(false)
            }
        }
    }

    fn expect_nothing_more(&mut self) -> Result<(), ReadError> {
        let more = frame::read_up_to(&mut self.source, &mut [0])? > 0;
        if more || self.read < self.raw.len() {
            return Err(self.last_frame().damaged("something follows the end"));
        }
        Ok(())
    }

    /// The frame in `raw`, for a complaint.
    fn last_frame(&self) -> Position {
        Position {
            frame: self.position.frame.wrapping_sub(1),
            ..self.position
        }
    }
}

fn read_prefix(source: &mut impl Read) -> Result<(), ReadError> {
    let mut prefix = [0; PREFIX];
    let found = frame::read_up_to(source, &mut prefix)?;
    let magic = found.min(MAGIC.len());
    if prefix[..magic] != MAGIC[..magic] {
        return Err(ReadError::NotARecording);
    }
    // The beginning of a prefix, or no byte at all: the writer did not come further.
    if found < PREFIX {
        return Err(ReadError::NothingRecorded);
    }
    let version = u32::from_le_bytes(prefix[8..].try_into().expect("4 bytes"));
    if version != VERSION {
        return Err(ReadError::Version {
            found: version,
            supported: VERSION,
        });
    }
    Ok(())
}

impl<R> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Reader")
            .field("position", &self.position)
            .field("at", &self.at)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}
