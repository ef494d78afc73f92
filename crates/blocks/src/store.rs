//! Where block traces lie: a folder, memory, or whatever else can read a range of a named file.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::BlocksError;

/// Reads ranges of named files, from several threads at once.
pub trait Store: Send + Sync {
    /// What to call a file in errors.
    fn shown(&self, file: &str) -> String;

    /// Replaces the content of `bytes` by that of a range. That the file ends before is an error.
    fn read_into(
        &self,
        file: &str,
        offset: u64,
        length: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), BlocksError>;

    /// The bytes of a range, as [`Store::read_into`].
    fn read(&self, file: &str, offset: u64, length: u64) -> Result<Vec<u8>, BlocksError> {
        let mut bytes = Vec::new();
        self.read_into(file, offset, length, &mut bytes)?;
        Ok(bytes)
    }

    /// How long a file is.
    fn length(&self, file: &str) -> Result<u64, BlocksError>;
}

/// Takes what [`crate::build()`] writes.
pub trait Sink {
    /// Appends to a file, which is created if it is not there.
    fn append(&mut self, file: &str, bytes: &[u8]) -> Result<(), BlocksError>;
}

/// The name of the index in a block trace.
pub(crate) const INDEX: &str = "index.vblocks";

/// Whether a path is a folder with a block trace in it.
pub fn is_block_trace(path: &Path) -> bool {
    path.join(INDEX).is_file()
}

/// A file by its name.
type OpenFile = (String, Arc<File>);

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// The file that was read last. Whoever reads a file reads on in it, mostly; and all that a trace has may be more than a process
    /// may have open.
    open: Arc<Mutex<Option<OpenFile>>>,
}

impl Folder {
    /// Of a folder that exists.
    pub fn new(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
            open: Arc::default(),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    fn opened(&self, name: &str) -> std::io::Result<Arc<File>> {
        let mut open = self.open.lock().expect("nobody panics with it");
        if let Some((known, file)) = &*open
            && known == name
        {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(self.path(name))?);
        *open = Some((name.to_owned(), Arc::clone(&file)));
        Ok(file)
    }
}

impl Store for Folder {
    fn shown(&self, file: &str) -> String {
        self.path(file).display().to_string()
    }

    fn read_into(
        &self,
        file: &str,
        offset: u64,
        length: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), BlocksError> {
        bytes.resize(length as usize, 0);
        let read = self.opened(file);
        let read = read.and_then(|file| file.read_exact_at(bytes, offset));
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => BlocksError::Damaged {
                file: self.shown(file),
                offset,
                problem: format!("expected {length} more bytes, found the end"),
            },
            _ => BlocksError::Read {
                file: self.shown(file),
                problem: error.to_string(),
            },
        })
    }

    fn length(&self, file: &str) -> Result<u64, BlocksError> {
        let metadata = fs::metadata(self.path(file)).map_err(|error| BlocksError::Read {
            file: self.shown(file),
            problem: error.to_string(),
        })?;
        Ok(metadata.len())
    }
}

impl Sink for Folder {
    /// Opens the file each time: a trace may have more threads than a process may have open files.
    fn append(&mut self, file: &str, bytes: &[u8]) -> Result<(), BlocksError> {
        let path = self.path(file);
        let mut options = OpenOptions::new();
        let opened = options.create(true).append(true).open(&path);
        opened
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|error| BlocksError::Write {
                file: path.display().to_string(),
                problem: error.to_string(),
            })
    }
}

/// Files in memory.
#[derive(Clone, Default, Debug)]
pub struct Memory {
    /// By name.
    pub files: HashMap<String, Vec<u8>>,
}

impl Memory {
    fn content(&self, file: &str) -> Result<&[u8], BlocksError> {
        let content = self.files.get(file).ok_or_else(|| BlocksError::Read {
            file: self.shown(file),
            problem: "there is no such file".to_owned(),
        })?;
        Ok(content)
    }
}

impl Store for Memory {
    fn shown(&self, file: &str) -> String {
        format!("<memory>/{file}")
    }

    fn read_into(
        &self,
        file: &str,
        offset: u64,
        length: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), BlocksError> {
        let end = offset.saturating_add(length);
        let range = self.content(file)?.get(offset as usize..end as usize);
        let range = range.ok_or_else(|| BlocksError::Damaged {
            file: self.shown(file),
            offset,
            problem: format!("expected {length} more bytes, found the end"),
        })?;
        bytes.clear();
        bytes.extend_from_slice(range);
        Ok(())
    }

    fn length(&self, file: &str) -> Result<u64, BlocksError> {
        Ok(self.content(file)?.len() as u64)
    }
}

impl Sink for Memory {
    fn append(&mut self, file: &str, bytes: &[u8]) -> Result<(), BlocksError> {
        let content = self.files.entry(file.to_owned()).or_default();
        content.extend_from_slice(bytes);
        Ok(())
    }
}
