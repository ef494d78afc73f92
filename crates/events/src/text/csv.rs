//! Comma-separated values that can hold every event: verdict's own layout.
//!
//! The first line is `thread,event,object,name,size,value,order,site`, then comes one event a line:
//!
//! | column | holds |
//! | --- | --- |
//! | `thread` | name of the thread |
//! | `event` | `read`, `write`, `atomic-load`, `atomic-store`, `atomic-rmw`, `fence`, `acquire`, `release`, `fork`, `begin`, `end`, `join`, `wait`, `notify`, `barrier-enter`, `barrier-leave`, `semaphore-post`, `semaphore-wait`, `allocate`, `free`, `output` |
//! | `object` | address, or number of the synchronisation object; the thread of `fork` and `join`; the stream of `output` |
//! | `name` | name of the location or the synchronisation object, if it has one |
//! | `size` | bytes of the access (1 if empty), of the block, of the output |
//! | `value` | value read or written, if it is known |
//! | `order` | memory order of atomics and fences (`relaxed`, `acquire`, `release`, `acq-rel`, `seq-cst`); `shared` for a lock held with others |
//! | `site` | name of the site |
//!
//! Numbers are decimal or, after `0x`, hexadecimal. A trace written by hand may leave all of `object` empty for
//! locations and name them instead; each name is then one byte of its own (and likewise for
//! synchronisation objects), but the two ways cannot be mixed. A cell with a comma or a quote is put in quotes and its
//! quotes doubled (RFC 4180); line ends in cells are not supported.
//!
//! Threads and sites are numbered by first appearance, so reading a trace that was written from one
//! numbered otherwise renumbers them; everything else is kept exactly.

use std::borrow::Cow;
use std::io::Write;

use super::exported::{ExportedNames, inexpressible, no_control};
use super::{LineError, LineFormat, TextNames, TextReader, location_access, utf8};
use crate::{
    Access, Addr, Event, EventKind, LockMode, MemoryOrder, Names, SyncId, TraceWriter, WriteError,
};

pub(crate) const HEADER: &str = "thread,event,object,name,size,value,order,site";
const COLUMNS: usize = 8;

/// Reads CSV.
pub type CsvReader = TextReader<Csv>;

/// How a trace tells its objects apart.
#[derive(Clone, Copy, PartialEq)]
enum Identity {
    Numbers,
    Names,
}

/// How a line of CSV reads: the first, then the others.
#[derive(Default)]
pub struct Csv {
    header_read: bool,
    locations: Option<Identity>,
    syncs: Option<Identity>,
}

/// The cells of one line.
struct Row<'a> {
    event: Cow<'a, str>,
    object: Cow<'a, str>,
    name: Cow<'a, str>,
    size: Cow<'a, str>,
    value: Cow<'a, str>,
    order: Cow<'a, str>,
}

impl LineFormat for Csv {
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut TextNames,
        batch: &mut Vec<Event>,
    ) -> Result<(), LineError> {
        let line = utf8(line)?;
        if !self.header_read {
            if line != HEADER {
                return Err(LineError::new(
                    format!("the header `{HEADER}`"),
                    line.as_bytes(),
                ));
            }
            self.header_read = true;
            return Ok(());
        }
        let [thread, event, object, name, size, value, order, site] = split_cells(line)?;
        let row = Row {
            event,
            object,
            name,
            size,
            value,
            order,
        };
        let thread = names.thread(thread.as_bytes())?;
        let kind = self.kind(&row, names)?;
        row.check_unused(&kind)?;
        let site = names.site(site.as_bytes())?;
        batch.push(Event { thread, site, kind });
        Ok(())
    }
}

impl Csv {
    fn kind(&mut self, row: &Row<'_>, names: &mut TextNames) -> Result<EventKind, LineError> {
        Ok(match &*row.event {
            "read" => EventKind::Read(self.access(row, names)?),
            "write" => EventKind::Write(self.access(row, names)?),
            "atomic-load" => EventKind::AtomicLoad(self.access(row, names)?, row.order()?),
            "atomic-store" => EventKind::AtomicStore(self.access(row, names)?, row.order()?),
            "atomic-rmw" => EventKind::AtomicRmw(self.access(row, names)?, row.order()?),
            "fence" => EventKind::Fence(row.order()?),
            "acquire" => EventKind::Acquire(self.sync(row, names)?, row.mode()?),
            "release" => EventKind::Release(self.sync(row, names)?, row.mode()?),
            "fork" => EventKind::Fork(names.thread(row.object.as_bytes())?),
            "begin" => EventKind::Begin,
            "end" => EventKind::End,
            "join" => EventKind::Join(names.thread(row.object.as_bytes())?),
            "wait" => EventKind::Wait(self.sync(row, names)?),
            "notify" => EventKind::Notify(self.sync(row, names)?),
            "barrier-enter" => EventKind::BarrierEnter(self.sync(row, names)?),
            "barrier-leave" => EventKind::BarrierLeave(self.sync(row, names)?),
            "semaphore-post" => EventKind::SemaphorePost(self.sync(row, names)?),
            "semaphore-wait" => EventKind::SemaphoreWait(self.sync(row, names)?),
            "allocate" => EventKind::Allocate {
                addr: self.location(row, names)?,
                size: number(&row.size, "a size")?,
            },
            "free" => EventKind::Free {
                addr: self.location(row, names)?,
                size: number(&row.size, "a size")?,
            },
            "output" => EventKind::Output {
                stream: number_u32(&row.object, "the number of a stream")?,
                bytes: number(&row.size, "a number of bytes")?,
            },
            _ => {
                let expected = format!("an event ({})", EventKind::NAMES.join(", "));
                return Err(LineError::new(expected, row.event.as_bytes()));
            }
        })
    }

    fn access(&mut self, row: &Row<'_>, names: &mut TextNames) -> Result<Access, LineError> {
        let size = match &*row.size {
            "" => 1,
            text => number_u32(text, "a size of at least 1")?,
        };
        if size == 0 {
            return Err(LineError::new("a size of at least 1", row.size.as_bytes()));
        }
        let value = match &*row.value {
            "" => None,
            text => Some(number(text, "a value of at most 64 bits")?),
        };
        let addr = self.location(row, names)?;
        Ok(Access { addr, size, value })
    }

    fn location(&mut self, row: &Row<'_>, names: &mut TextNames) -> Result<Addr, LineError> {
        match row.identity(&mut self.locations, "an address")? {
            Identity::Names => {
                let number = names.locations.intern(&row.name);
                Ok(location_access(number).addr)
            }
            Identity::Numbers => {
                let addr = Addr(number(&row.object, "an address")?);
                if !row.name.is_empty() {
                    match names.numbered.location_name(addr) {
                        None => names.numbered.name_location(addr, &row.name),
                        Some(known) => row.check_name(known)?,
                    }
                }
                Ok(addr)
            }
        }
    }

    fn sync(&mut self, row: &Row<'_>, names: &mut TextNames) -> Result<SyncId, LineError> {
        match row.identity(&mut self.syncs, "the number of a synchronisation object")? {
            Identity::Names => Ok(SyncId(names.syncs.intern(&row.name).into())),
            Identity::Numbers => {
                let id = SyncId(number(
                    &row.object,
                    "the number of a synchronisation object",
                )?);
                if !row.name.is_empty() {
                    match names.numbered.sync_name(id) {
                        None => names.numbered.name_sync(id, &row.name),
                        Some(known) => row.check_name(known)?,
                    }
                }
                Ok(id)
            }
        }
    }
}

impl Row<'_> {
    /// Whether this row and all before it give numbers, or all give names only.
    fn identity(&self, before: &mut Option<Identity>, what: &str) -> Result<Identity, LineError> {
        let here = match (self.object.is_empty(), self.name.is_empty()) {
            (false, _) => Identity::Numbers,
            (true, false) => Identity::Names,
            (true, true) => return Err(LineError::new(format!("{what} or a name"), b"")),
        };
        match *before.get_or_insert(here) {
            known if known == here => Ok(here),
            Identity::Numbers => Err(LineError::new(
                format!("{what}, as in the rows before"),
                self.name.as_bytes(),
            )),
            Identity::Names => Err(LineError::new(
                "a name without number, as in the rows before",
                self.object.as_bytes(),
            )),
        }
    }

    fn check_name(&self, known: &str) -> Result<(), LineError> {
        match known == self.name {
            true => Ok(()),
            false => Err(LineError::new(
                format!("the name `{known}`, which {} already has", self.object),
                self.name.as_bytes(),
            )),
        }
    }

    fn order(&self) -> Result<MemoryOrder, LineError> {
        let orders = [
            MemoryOrder::Relaxed,
            MemoryOrder::Acquire,
            MemoryOrder::Release,
            MemoryOrder::AcqRel,
            MemoryOrder::SeqCst,
        ];
        let known = orders.into_iter().find(|order| order.name() == self.order);
        known.ok_or_else(|| {
            let names = orders.map(MemoryOrder::name).join(", ");
            LineError::new(format!("a memory order ({names})"), self.order.as_bytes())
        })
    }

    fn mode(&self) -> Result<LockMode, LineError> {
        match &*self.order {
            "" => Ok(LockMode::Exclusive),
            "shared" => Ok(LockMode::Shared),
            other => Err(LineError::new(
                "nothing or `shared` as the order of a lock",
                other.as_bytes(),
            )),
        }
    }

    /// Cells that mean nothing for an event must be empty: nothing is passed over in silence.
    fn check_unused(&self, kind: &EventKind) -> Result<(), LineError> {
        use EventKind as E;
        let (object, name, size, value, order) = match kind {
            E::Read(_) | E::Write(_) => (true, true, true, true, false),
            E::AtomicLoad(..) | E::AtomicStore(..) | E::AtomicRmw(..) => {
                (true, true, true, true, true)
            }
            E::Fence(_) => (false, false, false, false, true),
            E::Acquire(..) | E::Release(..) => (true, true, false, false, true),
            E::Fork(_) | E::Join(_) => (true, false, false, false, false),
            E::Begin | E::End => (false, false, false, false, false),
            E::Allocate { .. } | E::Free { .. } => (true, true, true, false, false),
            E::Output { .. } => (true, false, true, false, false),
            _ => (true, true, false, false, false),
        };
        let cells = [
            (object, &self.object, "object"),
            (name, &self.name, "name"),
            (size, &self.size, "size"),
            (value, &self.value, "value"),
            (order, &self.order, "order"),
        ];
        for (used, cell, column) in cells {
            if !used && !cell.is_empty() {
                let expected = format!("nothing in the column `{column}` of `{}`", kind.name());
                return Err(LineError::new(expected, cell.as_bytes()));
            }
        }
        Ok(())
    }
}

fn number(text: &str, what: &str) -> Result<u64, LineError> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| LineError::new(what, text.as_bytes()))
}

fn number_u32(text: &str, what: &str) -> Result<u32, LineError> {
    let number = number(text, what)?;
    u32::try_from(number)
        .map_err(|_| LineError::new(format!("{what}, below 2^32"), text.as_bytes()))
}

fn split_cells(line: &str) -> Result<[Cow<'_, str>; COLUMNS], LineError> {
    let mut cells = Vec::with_capacity(COLUMNS);
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (cell, after) = split_cell(text)?;
        cells.push(cell);
        rest = after;
    }
    cells.try_into().map_err(|cells: Vec<_>| {
        let expected = format!("{COLUMNS} cells separated by commas, not {}", cells.len());
        LineError::new(expected, line.as_bytes())
    })
}

/// The first cell, and what follows its comma.
fn split_cell(text: &str) -> Result<(Cow<'_, str>, Option<&str>), LineError> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Ok(match text.split_once(',') {
            Some((cell, rest)) => (Cow::Borrowed(cell), Some(rest)),
            None => (Cow::Borrowed(text), None),
        });
    };
    let mut cell = String::new();
    let mut rest = quoted;
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            return Err(LineError::new("a closing quote", text.as_bytes()));
        };
        cell.push_str(part);
        match after.as_bytes().first() {
            None => return Ok((Cow::Owned(cell), None)),
            Some(b',') => return Ok((Cow::Owned(cell), Some(&after[1..]))),
            Some(b'"') => cell.push('"'),
            Some(_) => {
                return Err(LineError::new(
                    "a comma after the closing quote",
                    after.as_bytes(),
                ));
            }
        }
        rest = &after[1..];
    }
}

/// Writes CSV.
pub struct CsvWriter<W> {
    out: W,
    names: ExportedNames,
    position: u64,
}

impl<W: Write> CsvWriter<W> {
    /// Starts a trace with the header line; `out` should be buffered.
    pub fn new(mut out: W) -> Result<Self, WriteError> {
        writeln!(out, "{HEADER}")?;
        Ok(Self {
            out,
            names: ExportedNames::new(check_name, no_control),
            position: 0,
        })
    }

    fn row(&mut self, event: &Event, names: &dyn Names) -> Result<String, String> {
        let thread = self.names.thread(event.thread, names)?;
        let mut cells = [const { String::new() }; COLUMNS - 3];
        self.fill(&mut cells, event, names)?;
        let [object, name, size, value, order] = cells;
        let site = self.names.site(event.site, names)?;
        no_control(&name).map_err(str::to_owned)?;
        Ok(format!(
            "{},{},{},{},{size},{value},{order},{}",
            quoted(&thread),
            event.kind.name(),
            quoted(&object),
            quoted(&name),
            quoted(&site)
        ))
    }

    fn fill(
        &mut self,
        [object, name, size, value, order]: &mut [String; COLUMNS - 3],
        event: &Event,
        names: &dyn Names,
    ) -> Result<(), String> {
        let mut location = |addr: Addr| {
            *object = format!("{:#x}", addr.0);
            *name = names.location_name(addr).unwrap_or_default().to_owned();
        };
        match event.kind {
            EventKind::Read(access)
            | EventKind::Write(access)
            | EventKind::AtomicLoad(access, _)
            | EventKind::AtomicStore(access, _)
            | EventKind::AtomicRmw(access, _) => {
                location(access.addr);
                *size = access.size.to_string();
                *value = access
                    .value
                    .map(|value| format!("{value:#x}"))
                    .unwrap_or_default();
            }
            EventKind::Allocate { addr, size: bytes } | EventKind::Free { addr, size: bytes } => {
                location(addr);
                *size = bytes.to_string();
            }
            EventKind::Acquire(id, _)
            | EventKind::Release(id, _)
            | EventKind::Wait(id)
            | EventKind::Notify(id)
            | EventKind::BarrierEnter(id)
            | EventKind::BarrierLeave(id)
            | EventKind::SemaphorePost(id)
            | EventKind::SemaphoreWait(id) => {
                *object = format!("{:#x}", id.0);
                *name = names.sync_name(id).unwrap_or_default().to_owned();
            }
            EventKind::Fork(thread) | EventKind::Join(thread) => {
                *object = self.names.thread(thread, names)?.to_string();
            }
            EventKind::Output { stream, bytes } => {
                *object = stream.to_string();
                *size = bytes.to_string();
            }
            EventKind::Fence(_) | EventKind::Begin | EventKind::End => {}
        }
        match event.kind {
            EventKind::AtomicLoad(_, memory_order)
            | EventKind::AtomicStore(_, memory_order)
            | EventKind::AtomicRmw(_, memory_order)
            | EventKind::Fence(memory_order) => memory_order.name().clone_into(order),
            EventKind::Acquire(_, LockMode::Shared) | EventKind::Release(_, LockMode::Shared) => {
                "shared".clone_into(order);
            }
            _ => {}
        }
        Ok(())
    }
}

impl<W: Write> TraceWriter for CsvWriter<W> {
    fn write(&mut self, events: &[Event], names: &dyn Names) -> Result<(), WriteError> {
        for event in events {
            let row = self.row(event, names);
            let row =
                row.map_err(|reason| inexpressible("csv", self.position, event, names, reason))?;
            writeln!(self.out, "{row}")?;
            self.position += 1;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _names: &dyn Names) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }
}

fn quoted(cell: &str) -> Cow<'_, str> {
    match cell.contains(['"', ',']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => Cow::Borrowed(cell),
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    match name.is_empty() {
        true => Err("its threads must have names"),
        false => no_control(name),
    }
}
