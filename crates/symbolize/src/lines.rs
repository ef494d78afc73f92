//! From source lines to instructions.

use std::ops::Range;
use std::path::Path;

use crate::debug::Debug;
use crate::location::Source;

/// The code of a source line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineCode {
    /// Some code comes from the file.
    pub file_known: bool,
    /// Parts of the module's file that come from the line, ascending. Code of other lines that was inlined there counts.
    pub parts: Vec<Range<u64>>,
}

impl Debug {
    /// Addresses, as linked, of the code of a line, and whether any code is of the file at all. `file` may leave out
    /// folders in front.
    pub(crate) fn code_of_line(&self, file: &Path, line: u32) -> (bool, Vec<Range<u64>>) {
        let is_file = |source: &Source| Path::new(&source.file).ends_with(file);
        let is_line = |source: &Source| source.line == Some(line) && is_file(source);
        let mut file_known = false;
        let mut found: Vec<Range<u64>> = Vec::new();
        for (range, source) in self.rows() {
            file_known |= source.as_ref().is_some_and(is_file);
            let own = source.as_ref().is_some_and(is_line);
            // An inlined function's line is not the line it was inlined at.
            let inlined = || {
                let frames = self.frames(range.start);
                frames
                    .iter()
                    .skip(1)
                    .filter_map(|frame| frame.source.as_ref())
                    .any(is_line)
            };
            if !own && !inlined() {
                continue;
            }
            match found.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => found.push(range),
            }
        }
        found.sort_by_key(|range| range.start);
        (file_known || !found.is_empty(), found)
    }
}
