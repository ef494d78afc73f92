//! From sites to source lines.

use std::collections::HashMap;
use std::path::PathBuf;

use verdict_findings::Frame;
use verdict_observe::{Place, is_system_source};
use verdict_symbolize::{Location, Symbolizer};

/// Remembers what was asked.
#[derive(Default, Debug)]
pub struct PlaceTable {
    symbolizer: Symbolizer,
    known: HashMap<(Option<PathBuf>, u64), Location>,
}

impl PlaceTable {
    /// What is at a place.
    pub fn location(&mut self, place: &Place) -> &Location {
        let key = (place.module.clone(), place.offset);
        let symbolizer = &mut self.symbolizer;
        self.known
            .entry(key)
            .or_insert_with(|| match &place.module {
                Some(module) => symbolizer.at_file_offset(module, place.offset),
                None => Location {
                    module: PathBuf::new(),
                    file_offset: None,
                    frames: Vec::new(),
                },
            })
    }

    /// The frames at a place, innermost first, those of the language's own source left out where others remain.
    pub fn frames(&mut self, place: &Place) -> Vec<Frame> {
        let module = place
            .module
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string());
        let location = self.location(place);
        let own = location.frames.iter().position(|frame| {
            let source = frame.source.as_ref();
            source.is_some_and(|source| !is_system_source(&source.file))
        });
        let frames = &location.frames[own.unwrap_or(0)..];
        let last = frames.len().saturating_sub(1);
        let mut shown: Vec<Frame> = frames
            .iter()
            .enumerate()
            .map(|(index, frame)| Frame {
                function: frame
                    .function
                    .as_ref()
                    .map(|function| function.name.clone()),
                file: frame.source.as_ref().map(|source| source.file.clone()),
                line: frame.source.as_ref().and_then(|source| source.line),
                column: frame.source.as_ref().and_then(|source| source.column),
                module: module.clone(),
                offset: place.offset,
                inlined: index < last,
            })
            .collect();
        if shown.is_empty() {
            shown.push(Frame {
                module,
                offset: place.offset,
                ..Frame::default()
            });
        }
        shown
    }
}
