//! Makes a recording one that needs no other file: what it maps is put into it, and what is to be said about it, too.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{
    Document, Entry, FileId, FileIdentity, Header, IdentityError, Info, ReadError, Reader, Stamped,
    WriteError, Writer, WriterOptions,
};

/// Contents are attached in pieces of this size, so that no frame is large.
const PIECE: usize = 1 << 20;

/// Why a recording cannot be packed.
#[derive(thiserror::Error, Debug)]
pub enum PackError {
    /// The recording cannot be read.
    #[error("the recording {0}")]
    Read(#[from] ReadError),
    /// The packed one cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file that it needs is no longer what it was.
    #[error("a file of the recording cannot be packed: {0}")]
    File(#[from] IdentityError),
    /// It ends too early.
    #[error("the recording is cut, so it cannot be packed")]
    Cut,
}

/// Copies a recording from `source` to `sink`, with all files that it maps and these documents inside. `info` is
/// what [`Info::of`] said about it.
pub fn pack(
    source: impl Read,
    info: &Info,
    sink: impl Write,
    documents: Vec<Document>,
) -> Result<(), PackError> {
    let mut reader = Reader::open(source)?;
    let mut header = reader.header().clone();
    header.files_attached = true;
    header.documents = documents;
    let mut packed = Packed {
        writer: Writer::new(sink, &header, WriterOptions::default())?,
        program: 0,
        there: attached(info),
    };
    packed.attach_all(0, &header)?;
    while let Some(Stamped { at, entry }) = reader.next()? {
        match entry {
            Entry::End { end } => {
                packed.writer.finish(*end)?;
                return Ok(());
            }
            Entry::File { id, identity } => {
                let file = identity.clone();
                packed.append(at, &Entry::File { id, identity })?;
                packed.attach(at, id, &file)?;
            }
            Entry::Exec { mut header } => {
                header.files_attached = true;
                packed.program += 1;
                let replaced = Entry::Exec {
                    header: header.clone(),
                };
                packed.append(at, &replaced)?;
                packed.attach_all(at, &header)?;
            }
            entry => packed.append(at, &entry)?,
        }
    }
    Err(PackError::Cut)
}

/// Files whose contents are in the recording anyway, by program and number.
fn attached(info: &Info) -> BTreeSet<(usize, FileId)> {
    let attached = info.files.iter().filter(|file| file.attached);
    attached.map(|file| (file.program, file.id)).collect()
}

/// The recording that is being written.
struct Packed<W> {
    writer: Writer<W>,
    /// How many programs were replaced so far.
    program: usize,
    /// Files whose contents are in the recording.
    there: BTreeSet<(usize, FileId)>,
}

impl<W: Write> Packed<W> {
    fn append(&mut self, at: u64, entry: &Entry) -> Result<(), WriteError> {
        // There is always room without a limit.
        self.writer.append(at, entry).map(|_room| ())
    }

    /// The files of a program that is about to begin.
    fn attach_all(&mut self, at: u64, header: &Header) -> Result<(), PackError> {
        for (id, identity) in (0..).map(FileId).zip(&header.files) {
            self.attach(at, id, identity)?;
        }
        Ok(())
    }

    fn attach(&mut self, at: u64, id: FileId, identity: &FileIdentity) -> Result<(), PackError> {
        if !self.there.insert((self.program, id)) {
            return Ok(());
        }
        identity.check()?;
        let path = Path::new(std::ffi::OsStr::from_bytes(&identity.path));
        let unreadable = |error: io::Error| IdentityError::Missing {
            path: path.display().to_string(),
            error,
        };
        let file = File::open(path).map_err(unreadable)?;
        let mut offset = 0;
        // A file without contents has one empty piece: it is attached all the same.
        while offset < identity.size || offset == 0 {
            let rest = identity.size - offset;
            let mut bytes = vec![0; PIECE.min(usize::try_from(rest).unwrap_or(PIECE))];
            file.read_exact_at(&mut bytes, offset).map_err(unreadable)?;
            let len = bytes.len() as u64;
            let piece = Entry::Contents {
                file: id,
                offset,
                bytes,
            };
            self.append(at, &piece)?;
            offset += len;
            if len == 0 {
                break;
            }
        }
        Ok(())
    }
}
