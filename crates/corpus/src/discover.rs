//! Finds the programs: every C, C++ and Rust file below a folder, sorted by path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The language of a guest program, told by its file's extension.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Language {
    /// `.c`
    C,
    /// `.cpp`
    Cpp,
    /// `.rs`
    Rust,
}

impl Language {
    /// The language of files that are named like `path`, if they are programs at all.
    pub fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "c" => Some(Language::C),
            "cpp" => Some(Language::Cpp),
            "rs" => Some(Language::Rust),
            _ => None,
        }
    }
}

/// All program files below `root`, as paths relative to it, in the order of their names.
///
/// # Errors
/// When a folder cannot be read.
pub fn program_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if Language::of(&path).is_some() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
