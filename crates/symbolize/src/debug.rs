//! The debug information of one module: source lines through `addr2line`, everything else through [`Units`].

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::Dwarf;

use crate::location::{Frame, Function, Source};
use crate::module::Reader;
use crate::split::{SplitFiles, Wanted};
use crate::units::Units;

pub(crate) struct Debug {
    lines: Context<Reader>,
    split: Rc<SplitFiles>,
    units: Units,
}

impl Debug {
    /// None where it makes no sense.
    pub(crate) fn new(dwarf: Dwarf<Reader>, split: SplitFiles) -> Option<Self> {
        let dwarf = Arc::new(dwarf);
        let split = Rc::new(split);
        Some(Self {
            lines: Context::from_arc_dwarf(dwarf.clone()).ok()?,
            units: Units::new(dwarf, split.clone()),
            split,
        })
    }

    pub(crate) fn units(&self) -> &Units {
        &self.units
    }

    /// The functions at an address, the innermost first.
    pub(crate) fn frames(&self, address: u64) -> Vec<Frame> {
        let Ok(mut found) = self.finish(self.lines.find_frames(address)) else {
            return Vec::new();
        };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            frames.push(Frame {
                function: frame.function.as_ref().and_then(|function| {
                    let name = function.demangle().ok()?.into_owned();
                    Some(Function { name, offset: None })
                }),
                source: frame.location.and_then(source),
            });
        }
        // A unit that covers the address and knows nothing of it is no frame.
        frames.retain(|frame| frame.function.is_some() || frame.source.is_some());
        frames
    }

    /// The source line of an instruction, without the functions it is in.
    pub(crate) fn source(&self, address: u64) -> Option<Source> {
        self.lines.find_location(address).ok()?.and_then(source)
    }

    /// All rows of the line table: addresses, as linked, and the source of each.
    pub(crate) fn rows(&self) -> Vec<(Range<u64>, Option<Source>)> {
        let Ok(rows) = self.lines.find_location_range(0, u64::MAX) else {
            return Vec::new();
        };
        rows.map(|(start, len, location)| (start..start + len, source(location)))
            .collect()
    }

    /// Reads the files of split units that a lookup comes across.
    fn finish<L: LookupContinuation<Buf = Reader>>(&self, lookup: LookupResult<L>) -> L::Output {
        let mut lookup = lookup;
        loop {
            lookup = match lookup {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    let wanted = Wanted {
                        id: load.dwo_id,
                        folder: load.comp_dir,
                        name: load.path,
                    };
                    continuation.resume(self.split.find(&load.parent, &wanted))
                }
            };
        }
    }
}

fn source(location: addr2line::Location<'_>) -> Option<Source> {
    Some(Source {
        file: location.file?.to_owned(),
        line: location.line,
        // Assemblers state columns of 0: none.
        column: location.column.filter(|&column| column > 0),
    })
}
