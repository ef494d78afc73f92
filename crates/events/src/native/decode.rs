//! The body of an event frame into events. See [`super::encode`] for the layout.

use super::encode::sign_first;
use super::shape::{OperandKind, READ, Shape, WRITE};
use super::varint::{Cursor, Expected};
use crate::digest::{End, low_bits};
use crate::{Access, Addr, Digest, Event, EventKind, SiteId, ThreadId};

/// How many threads and sites have been named: events may use no others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) threads: usize,
    pub(crate) sites: usize,
}

/// Events decoded at a time.
const CHUNK: usize = 256;

/// One event frame being delivered.
pub(crate) struct FrameEvents {
    body: Vec<u8>,
    cells: Vec<Cell>,
    /// Indexed by operand number. As long as a two-byte number can reach, so that no index can be out of bounds;
    /// only the first `operand_count` are of this frame.
    operands: Box<[u64; 1 << 16]>,
    operand_count: usize,
    known: Known,
    /// Offset of the columns in `body`.
    columns: usize,
    /// Offset of the next extra in `body`.
    extras: usize,
    events: usize,
    next: usize,
}

/// A shape, and where its events are. Small, so that the table of a frame with thousands of shapes stays in the second-level
/// cache.
struct Cell {
    thread: ThreadId,
    site: SiteId,
    size: u32,
    /// Number of the operand its last event had.
    last: u16,
    code: u8,
    detail: u8,
    /// If it is one of plain accesses, what a digest says of it.
    low: u8,
}

impl FrameEvents {
    pub(crate) fn new() -> Self {
        let operands = vec![0; 1 << 16].into_boxed_slice();
        Self {
            body: Vec::new(),
            cells: Vec::new(),
            operands: operands.try_into().expect("65536 operands"),
            operand_count: 0,
            known: Known {
                threads: 0,
                sites: 0,
            },
            columns: 0,
            extras: 0,
            events: 0,
            next: 0,
        }
    }

    /// The buffer for the next body; to be followed by [`FrameEvents::start`].
    pub(crate) fn body_mut(&mut self) -> &mut Vec<u8> {
        self.next = 0;
        self.events = 0;
        &mut self.body
    }

    /// Reads the tables of the body.
    pub(crate) fn start(&mut self, events: usize, known: Known) -> Result<(), Expected> {
        self.known = known;
        let mut cursor = Cursor::new(&self.body);
        read_shapes(&mut cursor, &mut self.cells, known)?;
        self.operand_count = read_operands(&mut cursor, &mut self.operands)?;
        self.columns = self.body.len() - cursor.remaining();
        cursor
            .bytes(4 * events)
            .map_err(|_| "four bytes an event")?;
        self.extras = self.columns + 4 * events;
        self.events = events;
        Ok(())
    }

    /// Events not delivered yet.
    pub(crate) fn remaining(&self) -> usize {
        self.events - self.next
    }

    /// Replaces the content of `batch` by the next events, at most `limit`.
    pub(crate) fn take(&mut self, limit: usize, batch: &mut Vec<Event>) -> Result<(), Expected> {
        // What is left of an earlier batch is written over, and not cleared before.
        batch.resize(limit.min(self.remaining()), NOTHING);
        for events in batch.chunks_mut(CHUNK) {
            self.decode(events)?;
        }
        self.check_end()
    }

    /// Appends the next events to a digest, at most `limit`.
    pub(crate) fn take_digest(
        &mut self,
        limit: usize,
        digest: &mut Digest,
    ) -> Result<(), Expected> {
        let mut left = limit.min(self.remaining());
        let mut end = digest.end(left);
        while left > 0 {
            let count = left.min(CHUNK);
            self.decode_digest(count, &mut end)?;
            left -= count;
        }
        self.check_end()
    }

    fn check_end(&self) -> Result<(), Expected> {
        if self.remaining() == 0 && self.extras != self.body.len() {
            return Err("the end of the body after its last event");
        }
        Ok(())
    }

    /// Writes the next events over `events`, at most [`CHUNK`].
    fn decode(&mut self, events: &mut [Event]) -> Result<(), Expected> {
        let [shapes, steps] = [0, 2].map(|plane| self.numbers(plane, events.len()));
        let mut extras = Extras {
            body: &self.body,
            at: self.extras,
        };
        let mut operand_max = 0;
        for (event, (&shape, &step)) in events.iter_mut().zip(shapes.iter().zip(&steps)) {
            let cell = self.cells.get_mut(usize::from(shape));
            let cell = cell.ok_or("the number of a shape")?;
            cell.last = cell.last.wrapping_add(sign_first(step));
            operand_max = operand_max.max(cell.last);
            let operand = self.operands[usize::from(cell.last)];
            *event = match cell.plain_access(operand) {
                Some(plain) => {
                    debug_assert_eq!(cell.shape().event(operand, 0), Ok(plain));
                    plain
                }
                None => cell.unusual(operand, &mut extras, self.known)?,
            };
        }
        if usize::from(operand_max) >= self.operand_count {
            return Err("the number of an operand");
        }
        self.extras = extras.at;
        self.next += events.len();
        Ok(())
    }

    /// As [`FrameEvents::decode`], without making events of plain accesses.
    fn decode_digest(&mut self, count: usize, end: &mut End<'_>) -> Result<(), Expected> {
        let [shapes, steps] = [0, 2].map(|plane| self.numbers(plane, count));
        let mut extras = Extras {
            body: &self.body,
            at: self.extras,
        };
        let mut operand_max = 0;
        for (&shape, &step) in shapes[..count].iter().zip(&steps[..count]) {
            let cell = self.cells.get_mut(usize::from(shape));
            let cell = cell.ok_or("the number of a shape")?;
            cell.last = cell.last.wrapping_add(sign_first(step));
            operand_max = operand_max.max(cell.last);
            let operand = self.operands[usize::from(cell.last)];
            let low = cell.low;
            if low != 0 && end.access(cell.thread, cell.site, operand, low) {
                continue;
            }
            let event = match cell.plain_access(operand) {
                Some(plain) => plain,
                None => cell.unusual(operand, &mut extras, self.known)?,
            };
            end.event(&event);
        }
        if usize::from(operand_max) >= self.operand_count {
            return Err("the number of an operand");
        }
        self.extras = extras.at;
        self.next += count;
        Ok(())
    }

    /// The numbers of the next `count` events whose low bytes are in one plane, and the high bytes in the one after it.
    #[inline(always)]
    fn numbers(&self, low: usize, count: usize) -> [u16; CHUNK] {
        let plane = |plane| &self.body[self.columns + plane * self.events + self.next..][..count];
        let bytes = plane(low).iter().zip(plane(low + 1));
        let mut numbers = [0; CHUNK];
        for (number, (&low, &high)) in numbers.iter_mut().zip(bytes) {
            *number = u16::from_le_bytes([low, high]);
        }
        numbers
    }

    /// Passes over the next events, at most `limit`.
    pub(crate) fn skip(&mut self, limit: usize) -> Result<(), Expected> {
        self.take(limit, &mut Vec::new())
    }
}

/// Stands for an event that could not be made, in a batch that is then not delivered.
const NOTHING: Event = Event {
    thread: ThreadId(0),
    site: SiteId(0),
    kind: EventKind::Begin,
};

impl Cell {
    /// The usual case: a read or write without a value.
    #[inline(always)]
    fn plain_access(&self, operand: u64) -> Option<Event> {
        if self.code > WRITE || self.detail != 0 {
            return None;
        }
        let access = Access {
            addr: Addr(operand),
            size: self.size,
            value: None,
        };
        let kind = match self.code {
            READ => EventKind::Read(access),
            _ => EventKind::Write(access),
        };
        Some(Event {
            thread: self.thread,
            site: self.site,
            kind,
        })
    }

    fn shape(&self) -> Shape {
        Shape {
            thread: self.thread,
            site: self.site,
            code: self.code,
            detail: self.detail,
            size: self.size,
        }
    }

    #[inline(never)]
    fn unusual(
        &self,
        operand: u64,
        extras: &mut Extras<'_>,
        known: Known,
    ) -> Result<Event, Expected> {
        let shape = self.shape();
        let extra = match shape.has_extra() {
            true => extras.next()?,
            false => 0,
        };
        if shape.operand_kind() == OperandKind::Thread && operand >= known.threads as u64 {
            return Err("a thread that has a name");
        }
        shape.event(operand, extra)
    }
}

/// The numbers that some events have besides their operand.
struct Extras<'a> {
    body: &'a [u8],
    at: usize,
}

impl Extras<'_> {
    fn next(&mut self) -> Result<u64, Expected> {
        let mut cursor = Cursor::new(&self.body[self.at..]);
        let extra = cursor.varint()?;
        self.at = self.body.len() - cursor.remaining();
        Ok(extra)
    }
}

fn read_shapes(
    cursor: &mut Cursor<'_>,
    cells: &mut Vec<Cell>,
    known: Known,
) -> Result<(), Expected> {
    cells.clear();
    let count = cursor.count()?;
    if count > 1 << 16 {
        return Err("at most 65536 shapes");
    }
    let mut site_before = 0;
    for _ in 0..count {
        let shape = read_shape(cursor, site_before)?;
        if shape.thread.0 as usize >= known.threads || shape.site.0 as usize >= known.sites {
            return Err("a thread and a site that have names");
        }
        site_before = shape.site.0.into();
        shape.check()?;
        cells.push(Cell {
            thread: shape.thread,
            site: shape.site,
            size: shape.size,
            last: 0,
            code: shape.code,
            detail: shape.detail,
            low: match (shape.code, shape.detail) {
                (READ | WRITE, 0) => low_bits(shape.size, shape.code == WRITE),
                _ => 0,
            },
        });
    }
    Ok(())
}

fn read_shape(cursor: &mut Cursor<'_>, site_before: i64) -> Result<Shape, Expected> {
    let thread = ThreadId(cursor.varint_u32()?);
    let code = cursor.byte()?;
    let detail = cursor.byte()?;
    let size = cursor.varint_u32()?;
    let site = site_before.wrapping_add(cursor.signed()?);
    let site = u32::try_from(site).map_err(|_| "a site number")?;
    Ok(Shape {
        thread,
        site: SiteId(site),
        code,
        detail,
        size,
    })
}

fn read_operands(
    cursor: &mut Cursor<'_>,
    operands: &mut [u64; 1 << 16],
) -> Result<usize, Expected> {
    let count = cursor.count()?;
    if count > operands.len() {
        return Err("at most 65536 operands");
    }
    let mut before = 0u64;
    for operand in &mut operands[..count] {
        before = before
            .checked_add(cursor.varint()?)
            .ok_or("an operand of at most 64 bits")?;
        *operand = before;
    }
    Ok(count)
}
