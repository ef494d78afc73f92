//! RoadRunner's event text, as printed by RAPID's `PrintSubsetTool`: `@  Rd(0,test/Test.x_I)  null  Test.java:12`.
//!
//! Documented in RAPID (github.com/umangm/rapid, `notes/Generate_RoadRunner_traces.md` and the tool beside it);
//! how each event is spelled is in the event classes of RoadRunner (github.com/stephenfreund/RoadRunner,
//! `src/rr/event`). A line that begins with `@` is one of
//!
//! | line | event |
//! | --- | --- |
//! | `Rd(t,x)`, `Wr(t,x)`, `ARd(t,x[i])`, `AWr(t,x[i])` | read, write |
//! | `VRd(t,x)`, `VWr(t,x)` | atomic load, store (`seq-cst`) of a volatile field |
//! | `Acquire(t,l)`, `Release(t,l)` | of a lock |
//! | `Start(t,u)`, `Join(t,u)` | fork, join |
//! | `Enter(t,method)`, `Exit(t,method)` | none: methods say nothing about memory |
//! | `... started ...` | none: what a `Start` line says again |
//!
//! Any event may be followed by two words, of which the second is its site; RAPID's parser allows them everywhere
//! and needs them after reads and writes. Lines in brackets (`[main: ...]`) are RoadRunner's own messages and no part of
//! the trace. Everything else is an error, also what the program itself printed: separate it first.

use std::io::Write;

use super::exported::{ExportedNames, inexpressible, no_control};
use super::std::plain_location;
use super::{LineError, LineFormat, TextNames, TextReader};
use crate::{Event, EventKind, LockMode, MemoryOrder, Names, TraceWriter, WriteError};

const EVENTS: &str = "Rd, Wr, ARd, AWr, VRd, VWr, Acquire, Release, Start, Join, Enter or Exit with `(thread,operand)`";

/// Reads RoadRunner text.
pub type RoadRunnerReader = TextReader<RoadRunner>;

/// How a line of RoadRunner reads.
#[derive(Default)]
pub struct RoadRunner;

impl LineFormat for RoadRunner {
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut TextNames,
        batch: &mut Vec<Event>,
    ) -> Result<(), LineError> {
        if is_message(line) {
            return Ok(());
        }
        let Some(text) = line.strip_prefix(b"@") else {
            return Err(LineError::new(
                "`@` and an event, or a message in brackets",
                line,
            ));
        };
        let text = text.trim_ascii();
        if is_start_notice(text) {
            return Ok(());
        }
        let [name, thread, rest] = split_event(text)?;
        if matches!(name, b"Enter" | b"Exit") {
            return Ok(());
        }
        let (operand, rest) = split_operand(rest)?;
        let words: Vec<&[u8]> = rest
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .collect();
        let thread = names.thread(thread)?;
        let kind = kind(name, operand, names)?;
        let is_plain = matches!(kind, EventKind::Read(_) | EventKind::Write(_));
        let is_volatile = matches!(kind, EventKind::AtomicLoad(..) | EventKind::AtomicStore(..));
        let site = match words.as_slice() {
            [_, site] => names.site(site)?,
            [] if !is_plain => names.site(b"")?,
            // The tool prints the shadow of a volatile field, but no site.
            [_] if is_volatile => names.site(b"")?,
            _ => {
                return Err(LineError::new(
                    "two words, the second being the site, after the event",
                    text,
                ));
            }
        };
        batch.push(Event { thread, site, kind });
        Ok(())
    }
}

/// `[main: RoadRunner Agent Loaded.]`
fn is_message(line: &[u8]) -> bool {
    line.starts_with(b"[") && line.ends_with(b"]")
}

/// `Thread-0[tid = 1] started by main[tid = 0].`
fn is_start_notice(text: &[u8]) -> bool {
    let find = |needle: &[u8]| memchr::memmem::find(text, needle);
    matches!((find(b"[tid = "), find(b"] started")), (Some(tid), Some(started)) if tid < started)
}

/// `Rd(0,x)  null  T.java:1` is `Rd`, `0` and `x)  null  T.java:1`.
fn split_event(text: &[u8]) -> Result<[&[u8]; 3], LineError> {
    let wrong = || LineError::new(EVENTS, text);
    let open = memchr::memchr(b'(', text).ok_or_else(wrong)?;
    let (name, inside) = (&text[..open], &text[open + 1..]);
    let comma = memchr::memchr(b',', inside).ok_or_else(wrong)?;
    Ok([name, &inside[..comma], &inside[comma + 1..]])
}

/// `x[1])  null  T.java:1` is `x[1]` and `  null  T.java:1`.
fn split_operand(rest: &[u8]) -> Result<(&[u8], &[u8]), LineError> {
    let end = rest
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(rest.len());
    match rest[..end].split_last() {
        Some((b')', operand)) if !operand.is_empty() && !operand.contains(&b',') => {
            Ok((operand, &rest[end..]))
        }
        _ => Err(LineError::new("an operand followed by `)`", rest)),
    }
}

fn kind(name: &[u8], operand: &[u8], names: &mut TextNames) -> Result<EventKind, LineError> {
    Ok(match name {
        b"Rd" | b"ARd" => EventKind::Read(names.access(operand)?),
        b"Wr" | b"AWr" => EventKind::Write(names.access(operand)?),
        b"VRd" => EventKind::AtomicLoad(names.access(operand)?, MemoryOrder::SeqCst),
        b"VWr" => EventKind::AtomicStore(names.access(operand)?, MemoryOrder::SeqCst),
        b"Acquire" => EventKind::Acquire(names.sync(operand)?, LockMode::Exclusive),
        b"Release" => EventKind::Release(names.sync(operand)?, LockMode::Exclusive),
        b"Start" => EventKind::Fork(names.thread(operand)?),
        b"Join" => EventKind::Join(names.thread(operand)?),
        _ => return Err(LineError::new(EVENTS, name)),
    })
}

/// Writes RoadRunner text.
pub struct RoadRunnerWriter<W> {
    out: W,
    names: ExportedNames,
    position: u64,
}

impl<W: Write> RoadRunnerWriter<W> {
    /// Starts a trace; `out` should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            out,
            names: ExportedNames::new(check_name, check_site),
            position: 0,
        }
    }

    fn line(&mut self, event: &Event, names: &dyn Names) -> Result<String, String> {
        let thread = self.names.thread(event.thread, names)?;
        let (name, operand) = match event.kind {
            EventKind::Read(a) => ("Rd", plain_location(&mut self.names, a, names)?),
            EventKind::Write(a) => ("Wr", plain_location(&mut self.names, a, names)?),
            EventKind::AtomicLoad(a, MemoryOrder::SeqCst) => {
                ("VRd", plain_location(&mut self.names, a, names)?)
            }
            EventKind::AtomicStore(a, MemoryOrder::SeqCst) => {
                ("VWr", plain_location(&mut self.names, a, names)?)
            }
            EventKind::Acquire(id, LockMode::Exclusive) => ("Acquire", self.names.sync(id, names)?),
            EventKind::Release(id, LockMode::Exclusive) => ("Release", self.names.sync(id, names)?),
            EventKind::Fork(thread) => ("Start", self.names.thread(thread, names)?),
            EventKind::Join(thread) => ("Join", self.names.thread(thread, names)?),
            _ => {
                let has = "it has only reads, writes, volatile accesses, locks, Start and Join";
                return Err(has.to_owned());
            }
        };
        let site = self.names.site(event.site, names)?;
        let is_plain = matches!(event.kind, EventKind::Read(_) | EventKind::Write(_));
        match site.is_empty() {
            true if is_plain => Err("its reads and writes must have sites".to_owned()),
            true => Ok(format!("@  {name}({thread},{operand})")),
            false => Ok(format!("@  {name}({thread},{operand})  null  {site}")),
        }
    }
}

impl<W: Write> TraceWriter for RoadRunnerWriter<W> {
    fn write(&mut self, events: &[Event], names: &dyn Names) -> Result<(), WriteError> {
        for event in events {
            let line = self.line(event, names);
            let line = line.map_err(|reason| {
                inexpressible("roadrunner", self.position, event, names, reason)
            })?;
            writeln!(self.out, "{line}")?;
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
    if name.contains(|c: char| c == ',' || c.is_ascii_whitespace()) {
        return Err("its names cannot have white space or commas");
    }
    no_control(name)
}

fn check_site(name: &str) -> Result<(), &'static str> {
    if name.contains(|c: char| c.is_ascii_whitespace()) {
        return Err("its sites cannot have white space");
    }
    no_control(name)
}
