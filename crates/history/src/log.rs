//! The file: one entry a line, each with the checksum of its text before it. Lines are only appended.
//!
//! Writers take turns by a lock on the file. One that dies in the middle leaves a line without its end: readers do not
//! see it, and the next writer removes it. A line that was damaged otherwise is counted and skipped, so that one bad sector
//! does not cost the years around it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::Entry;

const FILE_NAME: &str = "history";
/// Hexadecimal digits of a CRC-32.
const CHECKSUM_DIGITS: usize = 8;

/// The history file of a project.
#[derive(Clone, Debug)]
pub struct Log {
    folder: PathBuf,
}

/// What a log holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// In the order in which they were written.
    pub entries: Vec<Entry>,
    /// Lines that cannot be read.
    pub damaged: u64,
}

impl Reading {
    /// What was written before the run with this token; everything where there is none.
    #[must_use]
    pub fn before(&self, token: &str) -> &[Entry] {
        &self.entries[..self.place_of(token).unwrap_or(self.entries.len())]
    }

    /// Whether the run with this token is written down.
    #[must_use]
    pub fn has(&self, token: &str) -> bool {
        self.place_of(token).is_some()
    }

    fn place_of(&self, token: &str) -> Option<usize> {
        let is_it = |entry: &Entry| matches!(entry, Entry::Run(run) if run.token == token);
        self.entries.iter().position(is_it)
    }
}

/// Why the history could not be read or written.
#[derive(thiserror::Error, Debug)]
#[error("{}: cannot be {action}: {error}", path.display())]
pub struct LogError {
    path: PathBuf,
    action: &'static str,
    error: io::Error,
}

impl Log {
    /// The log in this folder, which need not exist yet.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    /// Everything that was ever written; nothing where there is no log.
    pub fn read(&self) -> Result<Reading, LogError> {
        let read = || {
            let mut file = match File::open(self.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                opened => opened?,
            };
            file.lock_shared()?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        Ok(parse(&read().map_err(|error| self.error("read", error))?))
    }

    /// Adds an entry. When this returns, it is on the disk.
    pub fn append(&self, entry: &Entry) -> Result<(), LogError> {
        self.update(|_| (Some(entry.clone()), ()))
    }

    /// Shows everything there is to `decide`, and adds the entry that it answers with, if any. Nobody else writes in
    /// between.
    pub fn update<T>(
        &self,
        decide: impl FnOnce(&Reading) -> (Option<Entry>, T),
    ) -> Result<T, LogError> {
        let mut decide = Some(decide);
        let mut write = || {
            fs::create_dir_all(&self.folder)?;
            let mut file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(self.path())?;
            file.lock()?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let whole = whole_lines(&bytes);
            let decide = decide.take().expect("called once");
            let (entry, answer) = decide(&parse(&bytes[..whole]));
            if let Some(entry) = entry {
                if whole < bytes.len() {
                    file.set_len(whole as u64)?;
                    file.seek(SeekFrom::End(0))?;
                }
                file.write_all(line(&entry).as_bytes())?;
                file.sync_all()?;
            }
            Ok(answer)
        };
        write().map_err(|error| self.error("written", error))
    }

    fn error(&self, action: &'static str, error: io::Error) -> LogError {
        LogError {
            path: self.path(),
            action,
            error,
        }
    }
}

/// `1a2b3c4d {"entry":"run",...}` and a line end.
fn line(entry: &Entry) -> String {
    let json = serde_json::to_string(entry).expect("these types are always valid JSON");
    format!("{} {json}\n", checksum_of(json.as_bytes()))
}

fn checksum_of(json: &[u8]) -> String {
    format!("{:0CHECKSUM_DIGITS$x}", crc32fast::hash(json))
}

/// How many bytes are lines with an end.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1)
}

fn parse(bytes: &[u8]) -> Reading {
    let mut reading = Reading::default();
    for line in bytes[..whole_lines(bytes)].split_inclusive(|byte| *byte == b'\n') {
        match parse_line(&line[..line.len() - 1]) {
            Some(entry) => reading.entries.push(entry),
            None => reading.damaged += 1,
        }
    }
    reading
}

fn parse_line(line: &[u8]) -> Option<Entry> {
    let (checksum, json) = line.split_at_checked(CHECKSUM_DIGITS)?;
    let json = json.strip_prefix(b" ")?;
    if checksum_of(json).as_bytes() != checksum {
        return None;
    }
    serde_json::from_slice(json).ok()
}
