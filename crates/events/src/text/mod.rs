//! Text traces: one event a line. The formats differ in how a line reads; everything else is here.
//!
//! Rules common to all: lines end in LF or CRLF, the last one may lack its end, empty lines are
//! allowed, text is UTF-8, and a line has at most [`lines::LINE_BYTES_MAX`] bytes. Names get numbers in
//! order of first appearance; a named memory location becomes one byte at an address of its own.

pub(crate) mod csv;
mod exported;
mod lines;
pub(crate) mod roadrunner;
pub(crate) mod rv_predict;
pub(crate) mod std;
mod swar;

use ::std::io::Read;

use crate::intern::Interner;
use crate::{
    Access, Addr, Event, NameTable, Names, SiteId, SyncId, ThreadId, TraceError, TraceSource,
};
use lines::Lines;

/// Events in one batch: enough to make the call cheap, few enough to stay in the second-level cache.
const BATCH_EVENTS: usize = 2048;

/// What one line of a format means.
pub trait LineFormat: Default + Send {
    /// Understands one line (not empty, without its end), which adds at most one event.
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut TextNames,
        batch: &mut Vec<Event>,
    ) -> Result<(), LineError>;

    /// A quick look at the line that starts `window`. `None` whenever anything is unusual; otherwise
    /// exactly what [`LineFormat::parse`] would have found, and the number of bytes of the line with
    /// its end.
    #[inline(always)]
    fn parse_usual(
        &self,
        _window: &[u8; lines::WINDOW],
        _names: &TextNames,
    ) -> Option<(Event, usize)> {
        None
    }
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub struct LineError {
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl LineError {
    pub(crate) fn new(expected: impl Into<String>, found: &[u8]) -> Self {
        Self {
            expected: expected.into(),
            found: shown(found),
        }
    }
}

/// Reads a text trace of one line format.
pub struct TextReader<F> {
    file: String,
    lines: Lines,
    format: F,
    names: TextNames,
    /// What is wrong with the line after the events delivered last.
    problem: Option<TraceError>,
}

impl<F: LineFormat> TextReader<F> {
    /// Reads from `bytes`, which errors call `file`.
    pub fn new(file: String, bytes: Box<dyn Read + Send>) -> Self {
        Self {
            file,
            lines: Lines::new(bytes),
            format: F::default(),
            names: TextNames::new(),
            problem: None,
        }
    }

    /// Whether a line is one of the format.
    pub(crate) fn recognises(line: &[u8]) -> bool {
        let (names, batch) = (&mut TextNames::new(), &mut Vec::new());
        F::default().parse(line, names, batch).is_ok()
    }

    /// Takes lines off the buffer for as long as they are of the usual shape.
    fn parse_usual_lines(&mut self, batch: &mut Vec<Event>) {
        while batch.len() < BATCH_EVENTS {
            let Some(window) = self.lines.window() else {
                return;
            };
            let Some((event, bytes)) = self.format.parse_usual(window, &self.names) else {
                return;
            };
            #[cfg(debug_assertions)]
            {
                let line = window[..bytes].trim_ascii_end().to_vec();
                let mut slow = Vec::new();
                self.format
                    .parse(&line, &mut self.names, &mut slow)
                    .expect("a usual line is a valid line");
                debug_assert_eq!(slow, [event]);
            }
            batch.push(event);
            self.lines.consume_line(bytes);
        }
    }

    /// Takes one line of any shape. False at the end of the trace.
    fn parse_next_line(&mut self, batch: &mut Vec<Event>) -> Result<bool, TraceError> {
        let line = match self.lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(error) => return Err(error.into_trace_error(&self.file)),
        };
        if line.trim_ascii().is_empty() {
            return Ok(true);
        }
        match self.format.parse(line, &mut self.names, batch) {
            Ok(()) => Ok(true),
            Err(error) => Err(TraceError::Text {
                file: self.file.clone(),
                line: self.lines.number(),
                expected: error.expected,
                found: error.found,
            }),
        }
    }
}

impl<F: LineFormat> TraceSource for TextReader<F> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        batch.reserve(BATCH_EVENTS);
        while batch.len() < BATCH_EVENTS {
            self.parse_usual_lines(batch);
            if batch.len() >= BATCH_EVENTS {
                break;
            }
            match self.parse_next_line(batch) {
                Ok(true) => {}
                Ok(false) => break,
                // What comes before a bad line is delivered before it is told.
                Err(problem) if !batch.is_empty() => {
                    self.problem = Some(problem);
                    break;
                }
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }

    fn names(&self) -> &dyn Names {
        &self.names
    }
}

/// The names in a text trace.
pub struct TextNames {
    pub(crate) threads: Interner,
    pub(crate) sites: Interner,
    pub(crate) locations: Interner,
    pub(crate) syncs: Interner,
    /// Names of locations and synchronisation objects that have numbers of their own, in formats that give them.
    pub(crate) numbered: NameTable,
}

impl TextNames {
    pub(crate) fn new() -> Self {
        Self {
            threads: Interner::new(),
            sites: Interner::new(),
            locations: Interner::new(),
            syncs: Interner::new(),
            numbered: NameTable::new(),
        }
    }

    pub(crate) fn thread(&mut self, name: &[u8]) -> Result<ThreadId, LineError> {
        if name.is_empty() {
            return Err(LineError::new("a thread name", name));
        }
        Ok(ThreadId(self.threads.intern(utf8(name)?)))
    }

    pub(crate) fn site(&mut self, name: &[u8]) -> Result<SiteId, LineError> {
        Ok(SiteId(self.sites.intern(utf8(name)?)))
    }

    pub(crate) fn access(&mut self, name: &[u8]) -> Result<Access, LineError> {
        let id = self.locations.intern(utf8(name)?);
        Ok(location_access(id))
    }

    pub(crate) fn sync(&mut self, name: &[u8]) -> Result<SyncId, LineError> {
        Ok(SyncId(self.syncs.intern(utf8(name)?).into()))
    }
}

/// An access to the location with this number.
#[inline(always)]
pub(crate) fn location_access(number: u32) -> Access {
    Access {
        addr: Addr(number.into()),
        size: 1,
        value: None,
    }
}

impl Names for TextNames {
    fn thread_name(&self, id: ThreadId) -> Option<&str> {
        self.threads.name(id.0 as usize)
    }

    fn site_name(&self, id: SiteId) -> Option<&str> {
        self.sites.name(id.0 as usize)
    }

    fn location_name(&self, addr: Addr) -> Option<&str> {
        let interned = usize::try_from(addr.0).ok();
        interned
            .and_then(|id| self.locations.name(id))
            .or_else(|| self.numbered.location_name(addr))
    }

    fn sync_name(&self, id: SyncId) -> Option<&str> {
        let interned = usize::try_from(id.0).ok();
        interned
            .and_then(|id| self.syncs.name(id))
            .or_else(|| self.numbered.sync_name(id))
    }
}

pub(crate) fn utf8(text: &[u8]) -> Result<&str, LineError> {
    ::std::str::from_utf8(text).map_err(|_| LineError::new("UTF-8 text", text))
}

/// Text as shown in an error: one line, shortened, unprintable characters escaped.
pub(crate) fn shown(text: &[u8]) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN_CHARS_MAX + 4)]);
    let mut short: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        .flat_map(|c| {
            let escaped = if c.is_control() {
                c.escape_default().to_string()
            } else {
                c.to_string()
            };
            escaped.chars().collect::<Vec<_>>()
        })
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}
