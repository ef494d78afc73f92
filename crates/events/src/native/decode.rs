//! The body of an event frame into events. See [`super::encode`] for the layout.

use super::encode::sign_first;
use super::shape::{OperandKind, READ, Shape, WRITE};
use super::varint::{Cursor, Expected};
use crate::digest::{Append, End, Filter, Plain, has_room, low_bits, low_is_write, low_size};
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
    /// By number. As long as a two-byte number can reach, so that no index can be out of bounds; only the first `cell_count` are
    /// of this frame.
    cells: Box<[Cell; NUMBERS]>,
    cell_count: usize,
    /// Shapes of events that a digest has no steps for.
    others: Vec<Shape>,
    /// By number, as the cells.
    operands: Box<[u64; NUMBERS]>,
    operand_count: usize,
    known: Known,
    /// Offset of the columns in `body`.
    columns: usize,
    /// Offset of the next extra in `body`.
    extras: usize,
    events: usize,
    next: usize,
}

/// How many shapes or operands two bytes number.
const NUMBERS: usize = 1 << 16;

/// A shape, and where its events are. Small, so that the table of a frame with thousands of shapes stays in the second-level
/// cache.
#[derive(Clone, Copy)]
struct Cell {
    /// Whose accesses they are, or [`OTHER`] if they are not such as a digest has steps for.
    thread: ThreadId,
    /// Where in the program, or the number among the other shapes.
    site: SiteId,
    /// Number of the operand its last event had.
    last: u16,
    /// What a digest says of the accesses.
    low: u8,
}

/// Stands for a thread. There are fewer.
const OTHER: ThreadId = ThreadId(u32::MAX);

const UNUSED: Cell = Cell {
    thread: OTHER,
    site: SiteId(0),
    last: 0,
    low: 0,
};

impl FrameEvents {
    pub(crate) fn new() -> Self {
        Self {
            body: Vec::new(),
            cells: table(UNUSED),
            cell_count: 0,
            others: Vec::new(),
            operands: table(0),
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
        self.cell_count = read_shapes(&mut cursor, &mut self.cells, &mut self.others, known)?;
        self.operand_count = read_operands(&mut cursor, &mut self.operands)?;
        // They rise, so that the last says whether all have room in a step.
        let last = self.operands[..self.operand_count].last();
        if last.is_some_and(|&last| !has_room(last)) {
            let cells = &mut self.cells[..self.cell_count];
            cells
                .iter_mut()
                .for_each(|cell| cell.set_apart(&mut self.others));
        }
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
        let count = limit.min(self.remaining());
        digest.append(count, NextEvents(self, count))?;
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
        let (shapes, steps) = self.numbers(events.len())?;
        let mut extras = Extras {
            body: &self.body,
            at: self.extras,
        };
        let mut operand_max = 0;
        for (event, (&shape, &step)) in events.iter_mut().zip(shapes.iter().zip(&steps)) {
            let cell = &mut self.cells[usize::from(shape)];
            cell.last = cell.last.wrapping_add(step);
            operand_max = operand_max.max(cell.last);
            let operand = self.operands[usize::from(cell.last)];
            *event = match cell.thread {
                OTHER => unusual(cell.shape(&self.others), operand, &mut extras, self.known)?,
                _ => cell.access(operand),
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
    ///
    /// What has to be fetched from far away is fetched in loops that do little else: the processor then waits for many at a
    /// time.
    fn decode_digest(
        &mut self,
        count: usize,
        end: &mut End<'_, impl Filter>,
    ) -> Result<(), Expected> {
        let (shapes, mut numbers) = self.numbers(count)?;
        let (shapes, numbers) = (&shapes[..count], &mut numbers[..count]);
        let mut operand_max = 0;
        for (&shape, number) in shapes.iter().zip(&mut *numbers) {
            let cell = &mut self.cells[usize::from(shape)];
            cell.last = cell.last.wrapping_add(*number);
            *number = cell.last;
            operand_max = operand_max.max(cell.last);
        }
        if usize::from(operand_max) >= self.operand_count {
            return Err("the number of an operand");
        }
        let mut operands = [0; CHUNK];
        for (operand, &number) in operands.iter_mut().zip(&*numbers) {
            *operand = self.operands[usize::from(number)];
        }
        let mut extras = Extras {
            body: &self.body,
            at: self.extras,
        };
        let mut done = 0;
        while done < count {
            let accesses = shapes[done..].iter().zip(&operands[done..]);
            let cells = &self.cells;
            done += end.accesses(accesses.map(|(&shape, &operand)| {
                let cell = &cells[usize::from(shape)];
                Plain {
                    thread: cell.thread,
                    site: cell.site,
                    addr: operand,
                    low: cell.low,
                }
            }));
            let Some(&shape) = shapes.get(done) else {
                break;
            };
            let cell = &self.cells[usize::from(shape)];
            if cell.thread != OTHER {
                end.begin(cell.thread);
                continue;
            }
            let shape = cell.shape(&self.others);
            let event = unusual(shape, operands[done], &mut extras, self.known)?;
            end.event(&event);
            done += 1;
        }
        self.extras = extras.at;
        self.next += count;
        Ok(())
    }

    /// The numbers of the shapes of the next `count` events, and the steps between the numbers of their operands.
    #[inline(always)]
    fn numbers(&self, count: usize) -> Result<([u16; CHUNK], [u16; CHUNK]), Expected> {
        let plane = |plane| &self.body[self.columns + plane * self.events + self.next..][..count];
        let (mut shapes, mut steps) = ([0; CHUNK], [0; CHUNK]);
        let mut shape_max = 0;
        for (shape, (&low, &high)) in shapes.iter_mut().zip(plane(0).iter().zip(plane(1))) {
            *shape = u16::from_le_bytes([low, high]);
            shape_max = shape_max.max(*shape);
        }
        for (step, (&low, &high)) in steps.iter_mut().zip(plane(2).iter().zip(plane(3))) {
            *step = sign_first(u16::from_le_bytes([low, high]));
        }
        match usize::from(shape_max) < self.cell_count {
            true => Ok((shapes, steps)),
            false => Err("the number of a shape"),
        }
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

/// The next so many events of a frame.
struct NextEvents<'a>(&'a mut FrameEvents, usize);

impl Append for NextEvents<'_> {
    type Error = Expected;

    fn append_to(self, end: &mut End<'_, impl Filter>) -> Result<(), Expected> {
        let NextEvents(frame, mut left) = self;
        while left > 0 {
            let count = left.min(CHUNK);
            frame.decode_digest(count, end)?;
            left -= count;
        }
        Ok(())
    }
}

impl Cell {
    /// For a shape of a thread that has a name.
    #[inline(always)]
    fn new(shape: Shape, others: &mut Vec<Shape>) -> Cell {
        let low = match (shape.code, shape.detail) {
            (READ | WRITE, 0) => low_bits(shape.size, shape.code == WRITE),
            _ => 0,
        };
        let mut cell = Cell {
            thread: shape.thread,
            site: shape.site,
            last: 0,
            low,
        };
        if low == 0 {
            cell.put_apart(shape, others);
        }
        cell
    }

    /// Treats its events as other than plain accesses.
    fn set_apart(&mut self, others: &mut Vec<Shape>) {
        if self.thread != OTHER {
            self.put_apart(self.shape(others), others);
        }
    }

    fn put_apart(&mut self, shape: Shape, others: &mut Vec<Shape>) {
        self.thread = OTHER;
        // At most 65536.
        self.site = SiteId(others.len() as u32);
        others.push(shape);
    }

    fn shape(&self, others: &[Shape]) -> Shape {
        match self.thread {
            OTHER => others[self.site.0 as usize],
            thread => Shape {
                thread,
                site: self.site,
                code: low_is_write(self.low).into(),
                detail: 0,
                size: low_size(self.low),
            },
        }
    }

    /// The event of a plain access.
    #[inline(always)]
    fn access(&self, operand: u64) -> Event {
        let access = Access {
            addr: Addr(operand),
            size: low_size(self.low),
            value: None,
        };
        let event = Event {
            thread: self.thread,
            site: self.site,
            kind: match low_is_write(self.low) {
                false => EventKind::Read(access),
                true => EventKind::Write(access),
            },
        };
        debug_assert_eq!(self.shape(&[]).event(operand, 0), Ok(event));
        event
    }
}

#[inline(never)]
fn unusual(
    shape: Shape,
    operand: u64,
    extras: &mut Extras<'_>,
    known: Known,
) -> Result<Event, Expected> {
    let extra = match shape.has_extra() {
        true => extras.next()?,
        false => 0,
    };
    if shape.operand_kind() == OperandKind::Thread && operand >= known.threads as u64 {
        return Err("a thread that has a name");
    }
    shape.event(operand, extra)
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

/// A table with a place for every number.
fn table<T: Copy>(unused: T) -> Box<[T; NUMBERS]> {
    let places = vec![unused; NUMBERS].into_boxed_slice();
    let Ok(places) = places.try_into() else {
        unreachable!("as many as there are numbers");
    };
    places
}

/// Answers with how many there are.
fn read_shapes(
    cursor: &mut Cursor<'_>,
    cells: &mut [Cell; NUMBERS],
    others: &mut Vec<Shape>,
    known: Known,
) -> Result<usize, Expected> {
    others.clear();
    let count = cursor.count()?;
    if count > cells.len() {
        return Err("at most 65536 shapes");
    }
    let mut site_before = 0;
    for cell in &mut cells[..count] {
        let shape = match cursor.take_if(is_plain_shape) {
            Some([thread, code, _, size, site]) => Shape {
                thread: ThreadId(thread.into()),
                site: near(site_before, site)?,
                code,
                detail: 0,
                size: size.into(),
            },
            None => read_shape(cursor, site_before)?,
        };
        if shape.thread.0 as usize >= known.threads || shape.site.0 as usize >= known.sites {
            return Err("a thread and a site that have names");
        }
        site_before = shape.site.0.into();
        *cell = Cell::new(shape, others);
    }
    Ok(count)
}

/// Whether a shape of five bytes, one for each number, is that of the usual reads and writes.
#[inline(always)]
fn is_plain_shape([thread, code, detail, size, site]: [u8; 5]) -> bool {
    (thread | size | site) < 0x80 && code <= WRITE && detail == 0 && size > 0
}

/// The site that a signed number of one byte leads to.
#[inline(always)]
fn near(before: i64, step: u8) -> Result<SiteId, Expected> {
    let site = before + (i64::from(step >> 1) ^ -i64::from(step & 1));
    let site = u32::try_from(site).map_err(|_| "a site number")?;
    Ok(SiteId(site))
}

#[inline(never)]
fn read_shape(cursor: &mut Cursor<'_>, site_before: i64) -> Result<Shape, Expected> {
    let thread = ThreadId(cursor.varint_u32()?);
    let code = cursor.byte()?;
    let detail = cursor.byte()?;
    let size = cursor.varint_u32()?;
    let site = site_before.wrapping_add(cursor.signed()?);
    let site = u32::try_from(site).map_err(|_| "a site number")?;
    let shape = Shape {
        thread,
        site: SiteId(site),
        code,
        detail,
        size,
    };
    shape.check()?;
    Ok(shape)
}

fn read_operands(
    cursor: &mut Cursor<'_>,
    operands: &mut [u64; NUMBERS],
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
