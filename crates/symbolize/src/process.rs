//! Where modules are in a process.

use std::path::{Path, PathBuf};

use crate::unwind::MappedModule;

/// A module and by how much its addresses in memory are greater than those it was linked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedModule {
    /// The file.
    pub path: PathBuf,
    /// What to add to a linked address.
    pub bias: u64,
}

/// A variable of a frame of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameVariable {
    /// The function whose frame it is, demangled.
    pub function: Option<String>,
    /// The variable. None where nothing but the frame is known.
    pub variable: Option<crate::Variable>,
}

/// The first mapped part of each file.
pub(crate) fn first_parts<'a>(mapped: &[MappedModule<'a>]) -> Vec<(&'a Path, u64, u64)> {
    let mut parts: Vec<(&Path, u64, u64)> = Vec::new();
    for part in mapped {
        if !parts.iter().any(|(path, _, _)| *path == part.path) {
            parts.push((part.path, part.start, part.file_offset));
        }
    }
    parts
}
