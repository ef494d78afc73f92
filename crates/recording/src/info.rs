//! What is inside: counted in one pass, which also checks every byte.

use std::collections::BTreeMap;
use std::io::Read;

use crate::codec::Codec;
use crate::{Ending, Entry, FileId, FileIdentity, Header, ReadError, Reader};

/// Of so many bytes, for so many instructions.
pub(crate) fn bits_per_instruction(bytes: u64, instructions: u64) -> f64 {
    bytes as f64 * 8.0 / instructions.max(1) as f64
}

/// What is inside a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// What was run.
    pub header: Header,
    /// Further programs that replaced it.
    pub replaced_by: Vec<Vec<u8>>,
    /// How it ended.
    pub ending: Ending,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Threads that ran.
    pub threads: u32,
    /// Entries by kind.
    pub kinds: BTreeMap<&'static str, KindCount>,
    /// Calls answered from outside, by number.
    pub calls: BTreeMap<u32, u64>,
    /// Signals that arrived, by number.
    pub signals: BTreeMap<i32, u64>,
    /// Files mapped, in order: those of the first program, then those of the one that replaced it...
    pub files: Vec<InfoFile>,
    /// Size of the file, up to its last whole frame.
    pub bytes: u64,
}

/// A file that was mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InfoFile {
    /// Which program mapped it: 0 is the first, 1 the one that replaced it.
    pub program: usize,
    /// The number that the entries of that program give it.
    pub id: FileId,
    /// What it must be for a replay, unless it is attached.
    pub identity: FileIdentity,
    /// Whether its contents are in the recording.
    pub attached: bool,
}

/// Entries of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindCount {
    /// How many.
    pub entries: u64,
    /// What they take before compression, stamps excluded.
    pub bytes: u64,
}

impl Info {
    /// Reads a whole recording. A cut one has an `Info` up to its last whole frame; a damaged one has none.
    pub fn of(source: impl Read) -> Result<Self, ReadError> {
        let mut reader = Reader::open(source)?;
        let mut info = Self {
            header: reader.header().clone(),
            replaced_by: Vec::new(),
            ending: Ending::Cut { at: 0, byte: 0 },
            instructions: 0,
            threads: 1,
            kinds: BTreeMap::new(),
            calls: BTreeMap::new(),
            signals: BTreeMap::new(),
            files: Vec::new(),
            bytes: 0,
        };
        info.count_files_of(&reader.header().clone());
        let mut scratch = Vec::new();
        while let Some(stamped) = reader.next()? {
            info.instructions = stamped.at;
            scratch.clear();
            stamped.entry.encode(&mut scratch);
            let kind = info.kinds.entry(stamped.entry.kind()).or_default();
            kind.entries += 1;
            kind.bytes += scratch.len() as u64;
            info.count(stamped.entry);
        }
        info.bytes = reader.bytes_read();
        if let Some(ending) = reader.ending() {
            info.ending = ending.clone();
        }
        Ok(info)
    }

    /// How often another thread went on.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.kinds.get("switch").map_or(0, |kind| kind.entries)
    }

    /// Size of the recording for each instruction recorded, attached files included.
    #[must_use]
    pub fn bits_per_instruction(&self) -> f64 {
        bits_per_instruction(self.bytes, self.instructions)
    }

    fn count(&mut self, entry: Entry) {
        match entry {
            Entry::Switch { thread, .. } | Entry::Wake { thread } => {
                self.threads = self.threads.max(thread.saturating_add(1));
            }
            Entry::Call { number, .. } => *self.calls.entry(number).or_default() += 1,
            Entry::Signal { number, .. } => *self.signals.entry(number).or_default() += 1,
            Entry::File { id, identity } => self.add_file(id, identity),
            Entry::Contents { file, .. } => {
                let program = self.replaced_by.len();
                let ours = |known: &&mut InfoFile| known.program == program && known.id == file;
                if let Some(known) = self.files.iter_mut().find(ours) {
                    known.attached = true;
                }
            }
            Entry::Exec { header } => {
                self.replaced_by.push(header.program.clone());
                self.count_files_of(&header);
            }
            Entry::End { end } => self.has_threads(end.threads.len()),
            Entry::Block { .. }
            | Entry::Clock { .. }
            | Entry::Memory { .. }
            | Entry::Withheld { .. }
            | Entry::Map { .. } => {}
        }
    }

    fn count_files_of(&mut self, header: &Header) {
        for (index, identity) in header.files.iter().enumerate() {
            let id = FileId(u32::try_from(index).unwrap_or(u32::MAX));
            self.add_file(id, identity.clone());
        }
    }

    fn add_file(&mut self, id: FileId, identity: FileIdentity) {
        self.files.push(InfoFile {
            program: self.replaced_by.len(),
            id,
            identity,
            attached: false,
        });
    }

    fn has_threads(&mut self, count: usize) {
        self.threads = self.threads.max(u32::try_from(count).unwrap_or(u32::MAX));
    }
}
