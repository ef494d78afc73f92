//! A program's file, opened once: what is checked is what is mapped, whatever happens to its name meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How much of a file the kernel looks at to decide what it is.
const HEAD_BYTES: usize = 256;

/// Bytes that can be read at an offset. A trait so that the ELF reader can be tested on bytes in memory.
pub(crate) trait ReadAt {
    /// The number of bytes there are.
    fn len(&self) -> u64;
    /// Fills `buffer` from `offset`, or fails where the bytes end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// An open regular file.
#[derive(Debug)]
pub struct ProgramFile {
    path: PathBuf,
    file: File,
    metadata: std::fs::Metadata,
}

impl ProgramFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok(Self {
            path: path.to_owned(),
            file,
            metadata,
        })
    }

    /// A file that is open already, and would be found at `path`.
    pub(crate) fn at_hand(path: PathBuf, file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            path,
            file,
            metadata,
        })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, to map from.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn mode(&self) -> u32 {
        self.metadata.mode()
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.metadata.nlink() == 0
    }

    /// The first bytes, as many as the kernel looks at; less only if the file is shorter.
    pub(crate) fn head(&self) -> io::Result<Vec<u8>> {
        let mut head = vec![0; HEAD_BYTES.min(usize::try_from(self.len()).unwrap_or(HEAD_BYTES))];
        self.read_at(0, &mut head)?;
        Ok(head)
    }
}

impl ReadAt for ProgramFile {
    fn len(&self) -> u64 {
        self.metadata.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

#[cfg(test)]
impl ReadAt for [u8] {
    fn len(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let rest = usize::try_from(offset).ok().and_then(|o| self.get(o..));
        match rest.and_then(|r| r.get(..buffer.len())) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }
}
