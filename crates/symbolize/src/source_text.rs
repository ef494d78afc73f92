//! Source files, read once.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are not sources that people wrote.
const BYTES_MAX: u64 = 64 << 20;

/// The text of source files, where they are at hand.
#[derive(Default, Debug)]
pub struct SourceTexts {
    files: HashMap<PathBuf, Option<File>>,
}

#[derive(Debug)]
struct File {
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl SourceTexts {
    /// A line, from 1, without its end.
    pub fn line(&mut self, path: &Path, line: u32) -> Option<&str> {
        self.from(path, line)?.lines().next()
    }

    /// The text from a line on.
    pub fn from(&mut self, path: &Path, line: u32) -> Option<&str> {
        let file = self.file(path)?;
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        file.text.get(*file.lines.get(index)?..)
    }

    fn file(&mut self, path: &Path) -> Option<&File> {
        if !self.files.contains_key(path) {
            self.files.insert(path.to_owned(), read(path));
        }
        self.files[path].as_ref()
    }
}

fn read(path: &Path) -> Option<File> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        return None;
    }
    // Old sources are in other encodings than UTF-8; their letters are not worth losing the line.
    let text = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let lines = std::iter::once(0).chain(ends).collect();
    Some(File { text, lines })
}
