//! Which file it was: enough to notice that it is another one now.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ReadCache};
use twox_hash::XxHash3_128;

use crate::codec::{Codec, Element, Expected, Input, codec_struct};

/// Which file it was.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileIdentity {
    /// Where it was.
    pub path: Vec<u8>,
    /// How many bytes.
    pub size: u64,
    /// What its linker called it; empty where it did not.
    pub build_id: Vec<u8>,
    /// Of everything in it.
    pub hash: ContentHash,
}

/// XXH3 of a file, 128 bits: tells builds apart, not attacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContentHash(pub [u8; 16]);

/// Why a file is not the recorded one.
#[derive(thiserror::Error, Debug)]
pub enum IdentityError {
    /// It is not there, or cannot be read.
    #[error("{path} cannot be read: {error}")]
    Missing {
        /// Where it should be.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// It is another one.
    #[error("{path} has changed: it was {then}, and is {now}")]
    Changed {
        /// Where it is.
        path: String,
        /// What was recorded.
        then: String,
        /// What is there now.
        now: String,
    },
}

const PIECE: usize = 1 << 20;

impl FileIdentity {
    /// Of an open file. Its offset stays where it is, since it may be the guest's.
    pub fn of(path: &[u8], file: &File) -> io::Result<Self> {
        let mut hasher = XxHash3_128::new();
        let mut piece = vec![0; PIECE];
        let mut size = 0;
        loop {
            match file.read_at(&mut piece, size) {
                Ok(0) => break,
                Ok(count) => {
                    hasher.write(&piece[..count]);
                    size += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            path: path.to_vec(),
            size,
            build_id: build_id(file).unwrap_or_default(),
            hash: ContentHash(hasher.finish_128().to_le_bytes()),
        })
    }

    /// Whether the file that is there now is the recorded one.
    pub fn check(&self) -> Result<(), IdentityError> {
        let path = Path::new(std::ffi::OsStr::from_bytes(&self.path));
        let found = File::open(path).and_then(|file| Self::of(&self.path, &file));
        let now = found.map_err(|error| IdentityError::Missing {
            path: path.display().to_string(),
            error,
        })?;
        if now == *self {
            return Ok(());
        }
        Err(IdentityError::Changed {
            path: path.display().to_string(),
            then: self.to_string(),
            now: now.to_string(),
        })
    }
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} bytes with hash {}", self.size, hex(&self.hash.0))?;
        if !self.build_id.is_empty() {
            write!(f, " and build id {}", hex(&self.build_id))?;
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The build id of an ELF file; `None` for anything else.
fn build_id(file: &File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(At { file, offset: 0 });
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    elf.build_id().ok()?.map(<[u8]>::to_vec)
}

/// A file read without moving its offset.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(bytes, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Seek for At<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let offset = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(distance) => self.file.metadata()?.len().checked_add_signed(distance),
            SeekFrom::Current(distance) => self.offset.checked_add_signed(distance),
        };
        self.offset = offset.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}

codec_struct!(FileIdentity {
    path,
    size,
    build_id,
    hash
});

impl Element for FileIdentity {}

impl Codec for ContentHash {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        Codec::decode(input).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn programs_have_their_build_id_and_offsets_stay() {
        let mut shell = File::open("/bin/sh").unwrap();
        shell.seek(SeekFrom::Start(3)).unwrap();
        let identity = FileIdentity::of(b"/bin/sh", &shell).unwrap();
        assert_eq!(shell.stream_position().unwrap(), 3);
        assert_eq!(identity.build_id.len(), 20);
        assert_eq!(identity.size, fs::metadata("/bin/sh").unwrap().len());
        identity.check().unwrap();
    }

    #[test]
    fn what_changed_is_named() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one").unwrap();
        let path = file.path().as_os_str().as_bytes().to_vec();
        let identity = FileIdentity::of(&path, file.as_file()).unwrap();
        assert!(identity.build_id.is_empty());
        identity.check().unwrap();
        file.write_all(b"more").unwrap();
        let said = identity.check().unwrap_err().to_string();
        assert!(said.contains("has changed: it was 3 bytes"), "{said}");
        assert!(said.contains("and is 7 bytes"), "{said}");
        file.close().unwrap();
        let said = identity.check().unwrap_err().to_string();
        assert!(said.contains("cannot be read: No such file"), "{said}");
    }
}
