//! Stacks and variables of stopped executions, in the words of the source.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use verdict_findings::Frame;
use verdict_observe::Place;
use verdict_protocol::{CallStack, MappedModule};
use verdict_symbolize::{Location, MappedModule as Mapped, StoppedThread, Symbolizer};

/// Looks things up in binaries.
#[derive(Default, Debug)]
pub(crate) struct Names {
    symbolizer: Symbolizer,
}

impl Names {
    /// A stack, innermost first.
    pub(crate) fn stack(&mut self, place: &CallStack) -> Vec<Frame> {
        let thread = StoppedThread {
            general: place.registers.general,
            rip: place.registers.rip,
            stack: &place.stack,
            modules: place.modules.iter().map(mapped).collect(),
        };
        let mut frames = Vec::new();
        for location in self.symbolizer.call_chain(&thread) {
            let module = location.module.display().to_string();
            let offset = location.file_offset.unwrap_or(0);
            push_frames(&mut frames, &location, module, offset);
        }
        frames
    }

    /// Places in code, each with what the compiler has put there from other functions.
    pub(crate) fn places(&mut self, places: &[Place]) -> Vec<Frame> {
        let nowhere = Path::new("");
        let locations = places.iter().map(|place| {
            let module = place.module.as_deref().unwrap_or(nowhere);
            (module, place.offset)
        });
        let mut frames = Vec::new();
        for (module, offset) in locations {
            let location = self.symbolizer.at_file_offset(module, offset);
            push_frames(&mut frames, &location, module.display().to_string(), offset);
        }
        frames
    }

    /// The place at an offset in a binary's file.
    pub(crate) fn frame(&mut self, module: &Path, offset: u64) -> Frame {
        let location = self.symbolizer.at_file_offset(module, offset);
        let source = location.source();
        Frame {
            function: location.function().map(|function| function.name.clone()),
            file: source.map(|source| source.file.clone()),
            line: source.and_then(|source| source.line),
            column: source.and_then(|source| source.column),
            module: module.display().to_string(),
            offset,
            inlined: false,
        }
    }

    /// The innermost frame of the user's own: one with a source that is not the C library's.
    pub(crate) fn own_frame(frames: &[Frame]) -> Option<&Frame> {
        let own = |frame: &&Frame| {
            frame.file.is_some() && !frame.module.contains("libc") && !frame.module.contains("/ld-")
        };
        frames.iter().find(own)
    }

    /// The variable at an address, or the address.
    pub(crate) fn variable(&mut self, modules: &[MappedModule], address: u64) -> String {
        let known = self.variable_if_known(modules, address);
        known.unwrap_or_else(|| format!("memory at {address:#x}"))
    }

    /// The type of the variable at an address.
    pub(crate) fn type_name(&mut self, modules: &[MappedModule], address: u64) -> Option<String> {
        let mapped: Vec<Mapped<'_>> = modules.iter().map(mapped).collect();
        let loaded = self.symbolizer.loaded(&mapped);
        let (_, variable) = self.symbolizer.variable(&loaded, address, 1)?;
        variable.type_name
    }

    /// The variable at an address.
    pub(crate) fn variable_if_known(
        &mut self,
        modules: &[MappedModule],
        address: u64,
    ) -> Option<String> {
        let mapped: Vec<Mapped<'_>> = modules.iter().map(mapped).collect();
        let loaded = self.symbolizer.loaded(&mapped);
        let (_, variable) = self.symbolizer.variable(&loaded, address, 1)?;
        Some(variable.name)
    }
}

/// All functions that an instruction belongs to, the innermost first.
fn push_frames(frames: &mut Vec<Frame>, location: &Location, module: String, offset: u64) {
    let last = location.frames.len().saturating_sub(1);
    for (index, frame) in location.frames.iter().enumerate() {
        let source = frame.source.as_ref();
        frames.push(Frame {
            function: frame.function.as_ref().map(|f| f.name.clone()),
            file: source.map(|source| source.file.clone()),
            line: source.and_then(|source| source.line),
            column: source.and_then(|source| source.column),
            module: module.clone(),
            offset,
            inlined: index < last,
        });
    }
    if location.frames.is_empty() {
        frames.push(Frame {
            module,
            offset,
            ..Frame::default()
        });
    }
}

fn mapped(module: &MappedModule) -> Mapped<'_> {
    Mapped {
        start: module.start,
        end: module.end,
        file_offset: module.file_offset,
        path: Path::new(OsStr::from_bytes(&module.path)),
    }
}
