//! One binary: where its parts are, read at once, and what is in them, read when somebody asks for it. Many of a process's
//! modules are never asked for more than their place, and the debug information of a large library takes a lot of memory.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, SectionKind};

use crate::debug::Debug;
use crate::debug_file;
use crate::location::{Frame, Function};
use crate::split::SplitFiles;
use crate::symbols::Symbols;
use crate::unwind::UnwindTable;
use crate::variables::{Variable, VariableIndex};

pub(crate) type Reader = EndianArcSlice<LittleEndian>;

/// What is known of a binary. Nothing, where it cannot be read or makes no sense.
#[derive(Default)]
pub(crate) struct Module {
    path: PathBuf,
    debug_root: PathBuf,
    segments: Vec<Segment>,
    thread_local_bytes: u64,
    contents: OnceCell<Contents>,
    variables: OnceCell<VariableIndex>,
}

/// What is in a binary and in what belongs to it.
#[derive(Default)]
struct Contents {
    symbols: Symbols,
    debug: Option<Debug>,
    unwind: Option<Arc<UnwindTable>>,
}

/// A part of the file and where it was linked to be.
#[derive(Clone)]
pub(crate) struct Segment {
    offset: u64,
    address: u64,
    size: u64,
    /// More than the size in the file where the rest is zeroes (`.bss`).
    memory_size: u64,
}

impl Segment {
    /// The linked address of an offset in the file, if it is in here.
    pub(crate) fn address_of(&self, file_offset: u64) -> Option<u64> {
        contains(self.offset, self.size, file_offset)
            .then(|| self.address.wrapping_add(file_offset - self.offset))
    }
}

impl Module {
    pub(crate) fn open(path: &Path, debug_root: &Path) -> Self {
        // A place in a device or a pipe names nothing, and reading one may never end.
        if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            return Self::default();
        }
        let Ok(file) = File::open(path) else {
            return Self::default();
        };
        // Of the whole file, only what is asked for is read.
        let parts = ReadCache::new(file);
        let Ok(binary) = object::File::parse(&parts) else {
            return Self::default();
        };
        Self {
            path: path.to_owned(),
            debug_root: debug_root.to_owned(),
            segments: segments(&binary),
            thread_local_bytes: thread_local_bytes(&binary),
            ..Self::default()
        }
    }

    fn contents(&self) -> &Contents {
        self.contents.get_or_init(|| {
            // A module that is no binary has no path.
            let bytes = fs::read(&self.path).unwrap_or_default();
            Contents::parse(&bytes, self)
        })
    }

    /// The linked address of an offset in the file.
    pub(crate) fn address(&self, file_offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|s| s.address_of(file_offset))
    }

    /// Whether an address, as linked, is in the module's memory.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|s| contains(s.address, s.memory_size, address))
    }

    /// The variable at an address, as linked.
    pub(crate) fn variable(&self, address: u64, size: u64) -> Option<Variable> {
        let debug = self.debug();
        let known =
            debug.and_then(|debug| self.variables(debug).global(debug.units(), address, size));
        known.or_else(|| {
            let (name, offset, whole) = self.contents().symbols.find_data(address)?;
            let more = if offset == 0 {
                String::new()
            } else {
                format!("+{offset:#x}")
            };
            Some(Variable {
                name: name + &more,
                function: None,
                type_name: None,
                declared: None,
                size: Some(whole),
                offset,
                atomic: false,
            })
        })
    }

    /// The bytes of each thread's block of this module, as they are set aside when it is the program itself.
    pub(crate) fn thread_local_bytes(&self) -> u64 {
        self.thread_local_bytes
    }

    /// The variable at an offset in the module's thread-local storage.
    pub(crate) fn thread_local(&self, offset: u64, size: u64) -> Option<Variable> {
        let debug = self.debug()?;
        self.variables(debug)
            .thread_local(debug.units(), offset, size)
    }

    fn variables(&self, debug: &Debug) -> &VariableIndex {
        self.variables
            .get_or_init(|| VariableIndex::read(debug.units()))
    }

    pub(crate) fn debug(&self) -> Option<&Debug> {
        self.contents().debug.as_ref()
    }

    pub(crate) fn unwind_table(&self) -> Option<Arc<UnwindTable>> {
        self.contents().unwind.clone()
    }

    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|s| contains(s.address, s.size, address))?;
        segment.offset.checked_add(address - segment.address)
    }

    pub(crate) fn frames_at(&self, address: u64) -> Vec<Frame> {
        let mut frames = self
            .debug()
            .map_or_else(Vec::new, |debug| debug.frames(address));
        let symbol = self.contents().symbols.find(address);
        match frames.last_mut() {
            Some(outermost) => outermost.function = better_name(outermost.function.take(), symbol),
            None => frames.extend(symbol.map(|function| Frame {
                function: Some(function),
                source: None,
            })),
        }
        frames
    }
}

impl Contents {
    fn parse(bytes: &[u8], module: &Module) -> Self {
        let Ok(binary) = object::File::parse(bytes) else {
            return Self::default();
        };
        let mut contents = Self {
            symbols: Symbols::read(&binary),
            debug: debug_information(&binary, &module.path, &module.debug_root),
            unwind: unwind_table(&binary, &module.segments),
        };
        let stripped = binary.symbols().next().is_none();
        if contents.debug.is_none() || stripped {
            contents.add_separate(&binary, &module.path, &module.debug_root);
        }
        contents
    }

    fn add_separate<'data>(&mut self, binary: &impl Object<'data>, path: &Path, debug_root: &Path) {
        let Some(bytes) = debug_file::find(binary, path, debug_root) else {
            return;
        };
        let Ok(separate) = object::File::parse(&*bytes) else {
            return;
        };
        if self.debug.is_none() {
            self.debug = debug_information(&separate, path, debug_root);
        }
        let symbols = Symbols::read(&separate);
        if !symbols.is_empty() {
            self.symbols = symbols;
        }
    }
}

/// Debug information may know the line and not the function (assembly), or the function's bare name only (Rust with
/// line tables); the symbol of the same function then says more.
fn better_name(debug: Option<Function>, symbol: Option<Function>) -> Option<Function> {
    let (Some(debug_function), Some(symbol_function)) = (&debug, &symbol) else {
        return debug.or(symbol);
    };
    let bare = !debug_function.name.contains([':', '(']);
    let qualified = symbol_function
        .name
        .contains(&format!("::{}", debug_function.name));
    if bare && qualified {
        return symbol.map(|function| Function {
            offset: None,
            ..function
        });
    }
    debug
}

fn contains(start: u64, size: u64, point: u64) -> bool {
    point >= start && point - start < size
}

fn segments<'data>(binary: &impl Object<'data>) -> Vec<Segment> {
    binary
        .segments()
        .map(|segment| {
            let (offset, size) = segment.file_range();
            Segment {
                offset,
                size,
                address: segment.address(),
                memory_size: segment.size(),
            }
        })
        .collect()
}

fn thread_local_bytes<'data>(binary: &impl Object<'data>) -> u64 {
    let sections = binary.sections().filter(|section| {
        matches!(
            section.kind(),
            SectionKind::Tls | SectionKind::UninitializedTls
        )
    });
    let parts: Vec<(u64, u64, u64)> = sections
        .map(|section| (section.address(), section.size(), section.align()))
        .collect();
    let begins = parts.iter().map(|&(address, ..)| address).min();
    let ends = parts
        .iter()
        .map(|&(address, size, _)| address.saturating_add(size));
    let align = parts.iter().map(|&(.., align)| align).max();
    match (begins, ends.max(), align) {
        (Some(begins), Some(ends), Some(align)) => (ends - begins)
            .checked_next_multiple_of(align.max(1))
            .unwrap_or(0),
        _ => 0,
    }
}

fn unwind_table<'data>(
    binary: &impl Object<'data>,
    segments: &[Segment],
) -> Option<Arc<UnwindTable>> {
    let section = binary.section_by_name(".eh_frame")?;
    let data = section.uncompressed_data().ok()?;
    let reader = Reader::new(Arc::from(&*data), LittleEndian);
    Some(Arc::new(UnwindTable::new(
        reader,
        section.address(),
        segments.to_vec(),
    )))
}

/// None where there is none, or where it makes no sense.
fn debug_information<'data>(
    binary: &impl Object<'data>,
    path: &Path,
    debug_root: &Path,
) -> Option<Debug> {
    binary.section_by_name(".debug_info")?;
    let mut dwarf = Dwarf::load(|id| load_section(binary, id)).ok()?;
    if let Some(bytes) = debug_file::find_supplementary(binary, debug_root)
        && let Ok(supplementary) = object::File::parse(&*bytes)
    {
        dwarf.load_sup(|id| load_section(&supplementary, id)).ok()?;
    }
    Debug::new(dwarf, SplitFiles::of(path))
}

/// A section that is missing or cannot be decompressed is an empty one.
fn load_section<'data>(binary: &impl Object<'data>, id: SectionId) -> Result<Reader, gimli::Error> {
    let data = binary
        .section_by_name(id.name())
        .and_then(|section| section.uncompressed_data().ok())
        .unwrap_or_default();
    Ok(Reader::new(Arc::from(&*data), LittleEndian))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_module_is_read_when_it_is_asked_for() {
        let own = std::env::current_exe().unwrap();
        let module = Module::open(&own, Path::new("/nowhere"));
        let code = module.segments.last().expect("a program has segments");
        assert!(module.holds(code.address));
        assert_eq!(module.address(code.offset), Some(code.address));
        assert!(module.contents.get().is_none());
        assert!(module.unwind_table().is_some());
        assert!(module.contents.get().is_some());
    }
}
