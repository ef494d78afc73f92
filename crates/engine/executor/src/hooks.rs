//! Where the functions are whose calls are told: looked up in the symbols of every file that is mapped to be executed.

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use verdict_stream::NOTED_FUNCTIONS;
use verdict_translate::Noted;

/// What is of interest in a part of a file that is mapped to be executed, by guest addresses.
#[derive(Default, Debug)]
pub(crate) struct CodeFile {
    /// The noted functions.
    pub(crate) noted: BTreeMap<u64, (&'static str, Noted)>,
    /// The stubs of the linkage table: from, to.
    pub(crate) stubs: Vec<(u64, u64)>,
}

/// Looks into the part of `path` that is mapped at `start..end` from `file_offset` on. Nothing is found where the file makes no
/// sense.
pub(crate) fn code_file(path: &Path, file_offset: u64, start: u64, end: u64) -> CodeFile {
    let mut found = CodeFile::default();
    let Ok(bytes) = fs::read(path) else {
        return found;
    };
    let Ok(binary) = object::File::parse(&*bytes) else {
        return found;
    };
    let segment = binary.segments().find(|segment| {
        let (offset, size) = segment.file_range();
        file_offset < offset + size && offset < file_offset + (end - start)
    });
    let Some(segment) = segment else {
        return found;
    };
    let (offset, _) = segment.file_range();
    // The mapping begins at a page, the segment within it.
    let bias = (start + offset)
        .wrapping_sub(file_offset)
        .wrapping_sub(segment.address());
    let wanted: BTreeMap<&'static str, Noted> = NOTED_FUNCTIONS.iter().copied().collect();
    for symbol in binary.dynamic_symbols().chain(binary.symbols()) {
        let Ok(name) = symbol.name() else { continue };
        let Some((name, noted)) = wanted.get_key_value(unversioned(name)) else {
            continue;
        };
        let address = symbol.address().wrapping_add(bias);
        let here = (start..end).contains(&address);
        if symbol.is_definition() && symbol.kind() == SymbolKind::Text && here {
            found.noted.entry(address).or_insert((*name, *noted));
        }
    }
    let stubs = binary
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")))
        .map(|section| (section.address().wrapping_add(bias), section.size()))
        .filter(|(address, size)| (start..end).contains(address) && *size <= end - address);
    found
        .stubs
        .extend(stubs.map(|(address, size)| (address, address + size)));
    found
}

/// Symbol tables of static programs name versions: `pthread_cond_wait@@GLIBC_2.3.2`.
fn unversioned(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}
