//! RAPID's STD text: `T0|w(V1)|13`.
//!
//! As documented in the README of RAPID (github.com/umangm/rapid, "STD (Standard) Format"): a line is
//! `thread|operation(operand)|location` with the operations `r`, `w` (memory location), `acq`, `rel`
//! (lock), `fork`, `join` (thread); its parser also takes `begin` and `end`, whose operand, if any, says
//! nothing. Names are any text without white space and `|`.
//!
//! Departs from RAPID: the location may be missing together with its `|`, which means the same as an empty one;
//! a line that is not an event is an error instead of being passed over.

use std::io::Write;
use std::rc::Rc;

use super::exported::{ExportedNames, inexpressible, no_control};
use super::{LineError, LineFormat, TextNames, TextReader, lines, location_access, swar};
use crate::{
    Access, Event, EventKind, LockMode, Names, SiteId, SyncId, ThreadId, TraceWriter, WriteError,
};

const OPERATIONS: &str =
    "an operation r(..), w(..), acq(..), rel(..), fork(..), join(..), begin or end";

/// Reads STD text.
pub type StdReader = TextReader<Std>;

/// How a line of STD reads.
#[derive(Default)]
pub struct Std;

impl LineFormat for Std {
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut TextNames,
        batch: &mut Vec<Event>,
    ) -> Result<(), LineError> {
        let mut fields = line.split(|&byte| byte == b'|');
        let (Some(thread), Some(operation)) = (fields.next(), fields.next()) else {
            return Err(LineError::new("`thread|operation(operand)|location`", line));
        };
        let site = fields.next().unwrap_or_default();
        if fields.next().is_some() {
            return Err(LineError::new(
                "at most three fields separated by `|`",
                line,
            ));
        }
        for name in [thread, operation] {
            if name.iter().any(u8::is_ascii_whitespace) {
                return Err(LineError::new("a name without white space", name));
            }
        }
        let thread = names.thread(thread)?;
        let kind = parse_operation(operation, names)?;
        let site = names.site(site)?;
        batch.push(Event { thread, site, kind });
        Ok(())
    }

    #[inline(always)]
    fn parse_usual(
        &self,
        window: &[u8; lines::WINDOW],
        names: &TextNames,
    ) -> Option<(Event, usize)> {
        let (thread, at) = swar::numbered(window, 0, b'|')?;
        let operation: &[u8; 4] = window.get(at..at + 4)?.try_into().ok()?;
        let is_access = operation[1] == b'(' && matches!(operation[0], b'r' | b'w');
        let is_lock = !is_access && matches!(operation, b"acq(" | b"rel(");
        if !is_access && !is_lock {
            return None;
        }
        let (operand, at) = swar::numbered(window, at + if is_access { 2 } else { 4 }, b')')?;
        if window.get(at) != Some(&b'|') {
            return None;
        }
        let (site, end) = swar::numbered(window, at + 1, b'\n')?;
        let kind = if is_access {
            let access = location_access(names.locations.find_numbered(operand)?);
            match operation[0] {
                b'r' => EventKind::Read(access),
                _ => EventKind::Write(access),
            }
        } else {
            let lock = SyncId(names.syncs.find_numbered(operand)?.into());
            match operation[0] {
                b'a' => EventKind::Acquire(lock, LockMode::Exclusive),
                _ => EventKind::Release(lock, LockMode::Exclusive),
            }
        };
        let thread = ThreadId(names.threads.find_numbered(thread)?);
        let site = SiteId(names.sites.find_numbered(site)?);
        Some((Event { thread, site, kind }, end))
    }
}

fn parse_operation(operation: &[u8], names: &mut TextNames) -> Result<EventKind, LineError> {
    let (name, operand) = split_operand(operation)?;
    let operand_of = |what: &str| match operand {
        Some([_, ..]) => Ok(operand.unwrap_or_default()),
        _ => Err(LineError::new(
            format!("the name of a {what} in parentheses"),
            operation,
        )),
    };
    Ok(match name {
        b"r" => EventKind::Read(names.access(operand_of("memory location")?)?),
        b"w" => EventKind::Write(names.access(operand_of("memory location")?)?),
        b"acq" => EventKind::Acquire(names.sync(operand_of("lock")?)?, LockMode::Exclusive),
        b"rel" => EventKind::Release(names.sync(operand_of("lock")?)?, LockMode::Exclusive),
        b"fork" => EventKind::Fork(names.thread(operand_of("thread")?)?),
        b"join" => EventKind::Join(names.thread(operand_of("thread")?)?),
        b"begin" => EventKind::Begin,
        b"end" => EventKind::End,
        _ => return Err(LineError::new(OPERATIONS, operation)),
    })
}

/// `w(V1)` is `w` and `V1`; `begin` is `begin` and nothing.
fn split_operand(operation: &[u8]) -> Result<(&[u8], Option<&[u8]>), LineError> {
    let Some(open) = memchr::memchr(b'(', operation) else {
        return Ok((operation, None));
    };
    match operation[open + 1..].split_last() {
        Some((b')', operand)) => Ok((&operation[..open], Some(operand))),
        _ => Err(LineError::new("`)` at the end of the operation", operation)),
    }
}

/// Writes STD text.
pub struct StdWriter<W> {
    out: W,
    names: ExportedNames,
    position: u64,
}

impl<W: Write> StdWriter<W> {
    /// Starts a trace; `out` should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            out,
            names: ExportedNames::new(check_name, check_site),
            position: 0,
        }
    }

    /// `w(V1)`, or what STD lacks.
    fn operation(&mut self, event: &Event, names: &dyn Names) -> Result<String, String> {
        Ok(match event.kind {
            EventKind::Read(a) => format!("r({})", self.location(a, names)?),
            EventKind::Write(a) => format!("w({})", self.location(a, names)?),
            EventKind::Acquire(id, LockMode::Exclusive) => {
                format!("acq({})", self.names.sync(id, names)?)
            }
            EventKind::Release(id, LockMode::Exclusive) => {
                format!("rel({})", self.names.sync(id, names)?)
            }
            EventKind::Fork(thread) => format!("fork({})", self.names.thread(thread, names)?),
            EventKind::Join(thread) => format!("join({})", self.names.thread(thread, names)?),
            EventKind::Begin => "begin".to_owned(),
            EventKind::End => "end".to_owned(),
            _ => return Err("it has only r, w, acq, rel, fork, join, begin and end".to_owned()),
        })
    }

    fn location(&mut self, access: Access, names: &dyn Names) -> Result<Rc<str>, String> {
        plain_location(&mut self.names, access, names)
    }
}

/// The name of a location in formats whose accesses have neither size nor value.
pub(super) fn plain_location(
    exported: &mut ExportedNames,
    access: Access,
    names: &dyn Names,
) -> Result<Rc<str>, String> {
    match access {
        Access {
            size: 1,
            value: None,
            addr,
        } => exported.location(addr, names),
        Access { value: None, .. } => Err("its accesses have no sizes".to_owned()),
        _ => Err("its accesses have no values".to_owned()),
    }
}

impl<W: Write> TraceWriter for StdWriter<W> {
    fn write(&mut self, events: &[Event], names: &dyn Names) -> Result<(), WriteError> {
        for event in events {
            let fields = self.names.thread(event.thread, names).and_then(|thread| {
                let operation = self.operation(event, names)?;
                Ok((thread, operation, self.names.site(event.site, names)?))
            });
            let (thread, operation, site) = fields
                .map_err(|reason| inexpressible("std", self.position, event, names, reason))?;
            writeln!(self.out, "{thread}|{operation}|{site}")?;
            self.position += 1;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _names: &dyn Names) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("its names cannot be empty");
    }
    if name.contains(|c: char| c == '|' || c.is_ascii_whitespace()) {
        return Err("its names cannot have white space or `|`");
    }
    no_control(name)
}

fn check_site(name: &str) -> Result<(), &'static str> {
    if name.contains('|') {
        return Err("its locations cannot have `|`");
    }
    no_control(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addr, TraceError, TraceSource};
    use std::io::Cursor;

    fn read(text: &[u8]) -> Result<(Vec<Event>, StdReader), TraceError> {
        let mut reader = StdReader::new("t.std".to_owned(), Box::new(Cursor::new(text.to_vec())));
        let (mut events, mut batch) = (Vec::new(), Vec::new());
        loop {
            reader.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok((events, reader));
            }
            events.append(&mut batch);
        }
    }

    #[test]
    fn every_operation() {
        let text = b"T0|fork(T1)|1\r\nT1|begin|2\n\nT1|acq(L1)|3\nT1|w(V1.x[0])|4\nT1|rel(L1)|5\nT1|end|6\n\
            T0|join(T1)|7\nT0|r(V1.x[0])\nT0|r(V2)|";
        let (events, reader) = read(text).unwrap();
        let access = |addr| Access {
            addr: Addr(addr),
            size: 1,
            value: None,
        };
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        let lock = SyncId(0);
        assert_eq!(
            kinds,
            [
                EventKind::Fork(ThreadId(1)),
                EventKind::Begin,
                EventKind::Acquire(lock, LockMode::Exclusive),
                EventKind::Write(access(0)),
                EventKind::Release(lock, LockMode::Exclusive),
                EventKind::End,
                EventKind::Join(ThreadId(1)),
                EventKind::Read(access(0)),
                EventKind::Read(access(1)),
            ]
        );
        assert_eq!(
            events[7].site, events[8].site,
            "no location is an empty location"
        );
        assert_eq!(reader.names().location(Addr(0)), "V1.x[0]");
        assert_eq!(reader.names().thread(ThreadId(1)), "T1");
        assert_eq!(reader.names().site(SiteId(6)), "7");
    }

    /// Long enough to go through the buffer several times, so that lines straddle its end.
    #[test]
    fn many_lines_through_one_buffer() {
        let mut text = Vec::new();
        for number in 0..100_000u64 {
            let variable = number * 7 % 5000;
            text.extend(format!("T{}|w(V{variable})|{}\n", number % 8, number % 100).bytes());
        }
        let (events, reader) = read(&text).unwrap();
        assert_eq!(events.len(), 100_000);
        for (number, event) in events.iter().enumerate() {
            let EventKind::Write(access) = event.kind else {
                panic!("{event:?}")
            };
            assert_eq!(
                reader.names().location(access.addr),
                format!("V{}", number * 7 % 5000)
            );
            assert_eq!(
                reader.names().thread(event.thread),
                format!("T{}", number % 8)
            );
            assert_eq!(reader.names().site(event.site), format!("{}", number % 100));
        }
    }
}
