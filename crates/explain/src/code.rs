//! Places in code as frames with sources, each looked up once.

use std::collections::HashMap;
use std::path::Path;

use verdict_findings::{Excerpt, Frame, text_of_bytes};
use verdict_symbolize::{SourceTexts, Symbolizer};

use crate::CodePlace;

/// Lines of source that are kept on either side of an access.
const CONTEXT_LINES: u32 = 3;

/// Binaries and sources.
#[derive(Debug, Default)]
pub struct Code {
    pub(crate) symbolizer: Symbolizer,
    texts: SourceTexts,
    frames: HashMap<CodePlace, Vec<Frame>>,
}

impl Code {
    /// Looks for separate debug files where this one does.
    #[must_use]
    pub fn new(symbolizer: Symbolizer) -> Self {
        Self {
            symbolizer,
            ..Self::default()
        }
    }

    /// For questions that are not about races.
    pub fn symbolizer(&mut self) -> &mut Symbolizer {
        &mut self.symbolizer
    }

    /// The frames of a stack: more than there are places where functions were inlined.
    pub(crate) fn stack(&mut self, places: &[CodePlace]) -> Vec<Frame> {
        places
            .iter()
            .flat_map(|place| self.frames_at(place))
            .collect()
    }

    fn frames_at(&mut self, place: &CodePlace) -> Vec<Frame> {
        if let Some(frames) = self.frames.get(place) {
            return frames.clone();
        }
        let frames = look_up(&mut self.symbolizer, place);
        self.frames.insert(place.clone(), frames.clone());
        frames
    }

    /// The source around a line.
    pub(crate) fn excerpt(&mut self, file: &str, line: u32) -> Option<Excerpt> {
        let first_line = line.saturating_sub(CONTEXT_LINES).max(1);
        let lines: Vec<String> = (first_line..=line.saturating_add(CONTEXT_LINES))
            .map_while(|number| self.texts.line(Path::new(file), number).map(str::to_owned))
            .collect();
        // A file that has become shorter is not the one that was compiled.
        let own = usize::try_from(line - first_line).ok()?;
        (lines.len() > own).then_some(Excerpt { first_line, lines })
    }

    /// A line of source, without the spaces around it.
    pub(crate) fn trimmed_line(&mut self, file: &str, line: u32) -> Option<String> {
        let text = self.texts.line(Path::new(file), line)?;
        Some(text.trim().to_owned())
    }
}

fn look_up(symbolizer: &mut Symbolizer, place: &CodePlace) -> Vec<Frame> {
    let location = symbolizer.at_file_offset(&place.module, place.offset);
    let module = text_of_bytes(place.module.as_os_str().as_encoded_bytes());
    let here = Frame {
        module,
        offset: place.offset,
        ..Frame::default()
    };
    let last = location.frames.len().saturating_sub(1);
    let known = location.frames.iter().enumerate().map(|(index, frame)| {
        let source = frame.source.as_ref();
        Frame {
            function: frame
                .function
                .as_ref()
                .map(|function| function.name.clone()),
            file: source.map(|source| source.file.clone()),
            line: source.and_then(|source| source.line),
            column: source.and_then(|source| source.column),
            inlined: index < last,
            ..here.clone()
        }
    });
    let mut frames: Vec<Frame> = known.collect();
    if frames.is_empty() {
        frames.push(here);
    }
    frames
}
