//! Placing one ELF file in memory.

use std::path::PathBuf;
use std::sync::Arc;

use object::elf::{PF_R, PF_W, PF_X};

use crate::elf::{Elf, Segment};
use crate::file::ProgramFile;
use crate::{Layout, LoadError};

/// The size of a page of memory.
pub const PAGE: u64 = 4096;

/// What may be done with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub write: bool,
    /// The guest may execute it (in translation; the engine never makes guest pages executable).
    pub execute: bool,
}

impl Protection {
    pub(crate) fn from_flags(flags: u32) -> Self {
        Self {
            read: flags & PF_R != 0,
            write: flags & PF_W != 0,
            execute: flags & PF_X != 0,
        }
    }
}

/// What PT_GNU_STACK says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecutableStack {
    /// There is none.
    Unspecified,
    /// The stack must not be executable.
    No,
    /// The stack must be executable.
    Yes,
}

impl ExecutableStack {
    pub(crate) fn from_flags(flags: u32) -> Self {
        if flags & PF_X == 0 {
            Self::No
        } else {
            Self::Yes
        }
    }
}

/// One mapping to be made, private and at exactly this address.
#[derive(Clone, Debug)]
pub struct PlannedMapping {
    /// Where it starts, a multiple of the page size.
    pub guest_addr: u64,
    /// Its length in bytes, a multiple of the page size.
    pub len: u64,
    /// What the guest may do with it.
    pub protection: Protection,
    /// What it holds.
    pub source: MappingSource,
    /// From this address to the end of the mapping, bytes must be set to zero once it is made (the part of `.bss` that
    /// shares a page with data). Only ever set where `protection.write`.
    pub zero_from: Option<u64>,
}

/// What a mapping holds.
#[derive(Clone, Debug)]
pub enum MappingSource {
    /// Bytes of a file.
    File {
        /// The open file.
        file: Arc<ProgramFile>,
        /// Where in it, a multiple of the page size.
        offset: u64,
    },
    /// Zeros.
    Zero,
}

/// One ELF file in memory.
#[derive(Clone, Debug)]
pub struct Image {
    /// The path it was loaded from.
    pub path: PathBuf,
    /// What was added to every address it was linked with. Wraps where an image moves down.
    pub bias: u64,
    /// First address of its first page.
    pub base: u64,
    /// First address after its last byte; the heap starts at the next page.
    pub end: u64,
    /// Where its program headers are in memory (AT_PHDR).
    pub phdr: u64,
    /// How many there are (AT_PHNUM).
    pub phnum: u64,
    /// Where it starts (AT_ENTRY).
    pub entry: u64,
}

impl Image {
    /// First address after its last page.
    #[must_use]
    pub fn end_page(&self) -> u64 {
        page_end(self.end)
    }
}

/// Plans one file's mappings: where it asks to be, or from `base` on where it does not mind.
pub(crate) fn place(
    file: &Arc<ProgramFile>,
    elf: &Elf,
    base: u64,
    layout: &Layout,
    mappings: &mut Vec<PlannedMapping>,
) -> Result<Image, LoadError> {
    let linked_start = page_start(elf.segments.first().map_or(0, |s| s.address));
    let linked_end = elf
        .segments
        .iter()
        .map(|s| s.address + s.memory_size)
        .max()
        .unwrap_or(0);
    let bias = if elf.position_independent {
        // An alignment that no address can have leads to a place that `check_place` refuses.
        base.checked_next_multiple_of(elf.alignment)
            .unwrap_or(u64::MAX - (PAGE - 1))
            .wrapping_sub(linked_start)
    } else {
        0
    };
    let image = Image {
        path: file.path().to_owned(),
        bias,
        base: linked_start.wrapping_add(bias),
        end: linked_end.wrapping_add(bias),
        phdr: elf.headers_address.unwrap_or(0).wrapping_add(bias),
        phnum: elf.headers_count,
        entry: elf.entry.wrapping_add(bias),
    };
    check_place(&image, layout)?;
    for segment in &elf.segments {
        map_segment(file, segment, bias, mappings);
    }
    Ok(image)
}

fn check_place(image: &Image, layout: &Layout) -> Result<(), LoadError> {
    let pages = image.base..image.end_page();
    let outside =
        pages.start < layout.lowest || pages.end > layout.highest || pages.start >= pages.end;
    let taken = layout
        .reserved
        .iter()
        .any(|r| r.start < pages.end && pages.start < r.end);
    if outside || taken {
        return Err(LoadError::AddressTaken {
            path: image.path.clone(),
            start: pages.start,
            end: pages.end,
        });
    }
    Ok(())
}

/// File pages first, then zero pages for what the file does not fill.
fn map_segment(
    file: &Arc<ProgramFile>,
    segment: &Segment,
    bias: u64,
    mappings: &mut Vec<PlannedMapping>,
) {
    let start = segment.address.wrapping_add(bias);
    let memory_end = start + segment.memory_size;
    let mut filled = page_start(start);
    if segment.file_size > 0 {
        let file_end = start + segment.file_size;
        filled = page_end(file_end);
        let zeros_follow = segment.memory_size > segment.file_size && file_end < filled;
        mappings.push(PlannedMapping {
            guest_addr: page_start(start),
            len: filled - page_start(start),
            protection: segment.protection,
            source: MappingSource::File {
                file: Arc::clone(file),
                offset: page_start(segment.offset),
            },
            // Where the segment cannot be written the kernel leaves the file's bytes there, and so do we.
            zero_from: (zeros_follow && segment.protection.write).then_some(file_end),
        });
    }
    let memory_filled = page_end(memory_end);
    if memory_filled > filled {
        mappings.push(PlannedMapping {
            guest_addr: filled,
            len: memory_filled - filled,
            protection: segment.protection,
            source: MappingSource::Zero,
            zero_from: None,
        });
    }
}

fn page_start(address: u64) -> u64 {
    address - address % PAGE
}

/// Saturates: an image that ends in the last page of all is refused by its caller.
fn page_end(address: u64) -> u64 {
    address.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}
