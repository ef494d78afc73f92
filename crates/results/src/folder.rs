//! The folder itself.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use verdict_files::PendingFiles;
use verdict_findings::ProgramFindings;

use crate::{FolderError, Stage};

const PLAN: &str = "plan.json";
const RESULTS: &str = "results.json";
const LOCK: &str = "lock";

/// What a run does. A folder can be resumed by the same plan only.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    /// The version of verdict: another one may do the stages differently.
    pub verdict: String,
    /// The program.
    pub program: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What identifies the program's file, since it may have been rebuilt.
    #[serde(default)]
    pub identity: String,
    /// The options that decide on results, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl Plan {
    /// What differs from another plan.
    fn difference(&self, other: &Self) -> Option<String> {
        let program = format!("of another program, {}", self.program);
        let parts = [
            (
                self.verdict == other.verdict,
                "of another version of verdict",
            ),
            (self.program == other.program, program.as_str()),
            (self.args == other.args, "with other arguments"),
            (
                self.identity == other.identity,
                "of another build of the program",
            ),
            (self.options == other.options, "with other options"),
        ];
        parts
            .into_iter()
            .find(|(same, _)| !same)
            .map(|(_, what)| what.to_owned())
    }
}

/// A result folder that is open for reading, or for work.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    pending: PendingFiles,
    /// Held as long as someone works in the folder.
    _lock: Option<File>,
}

impl ResultFolder {
    /// Opens a folder to report from.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let folder = path.to_owned();
        if !path.is_dir() {
            return Err(FolderError::Missing { folder });
        }
        if !path.join(RESULTS).exists() {
            let missing = RESULTS;
            return Err(FolderError::NotOurs { folder, missing });
        }
        Ok(Self {
            path: folder,
            pending: PendingFiles::new(),
            _lock: None,
        })
    }

    /// Opens a folder to work in: a new one, or one in which the same plan was begun. Nobody else can work there until it is
    /// dropped. Unfinished files are listed in `pending`.
    pub fn begin(path: &Path, plan: &Plan, pending: PendingFiles) -> Result<Self, FolderError> {
        let mut folder = Self {
            path: path.to_owned(),
            pending,
            _lock: None,
        };
        let existed =
            path.is_dir() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if existed && !path.join(PLAN).exists() && !path.join(LOCK).exists() {
            let (folder, missing) = (path.to_owned(), PLAN);
            return Err(FolderError::NotOurs { folder, missing });
        }
        folder.make_folder("")?;
        folder._lock = Some(folder.lock()?);
        match folder.read_json::<Plan>(PLAN)? {
            None => folder.write_json(PLAN, plan)?,
            Some(before) => {
                if let Some(what) = before.difference(plan) {
                    let folder = path.to_owned();
                    return Err(FolderError::OtherRun { folder, what });
                }
            }
        }
        folder.make_folder("evidence")?;
        folder.make_folder("stages")?;
        Ok(folder)
    }

    /// Removes what another run has left, so that a new one can begin. Files that no run makes stay.
    pub fn clear(path: &Path) -> Result<(), FolderError> {
        let files = [
            PLAN,
            RESULTS,
            "since.json",
            "token.json",
            "recording.vrec",
            "recording.part",
        ];
        for name in files {
            absent_is_fine(fs::remove_file(path.join(name)))
                .map_err(|error| io_error(&path.join(name), "removed", error))?;
        }
        for name in ["stages", "evidence"] {
            absent_is_fine(fs::remove_dir_all(path.join(name)))
                .map_err(|error| io_error(&path.join(name), "removed", error))?;
        }
        Ok(())
    }

    /// Nothing could be recorded: takes everything away that was made for it. What cannot be removed does no harm.
    pub fn abandon(&self) {
        let _ = Self::clear(&self.path);
        let _ = fs::remove_file(self.path.join(LOCK));
        let _ = fs::remove_dir(&self.path);
    }

    fn lock(&self) -> Result<File, FolderError> {
        let path = self.path.join(LOCK);
        let opened = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = opened.map_err(|error| io_error(&path, "opened", error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(FolderError::InUse {
                folder: self.path.clone(),
            }),
            Err(TryLockError::Error(error)) => Err(io_error(&path, "locked", error)),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the finished recording is.
    #[must_use]
    pub fn recording(&self) -> PathBuf {
        self.path.join("recording.vrec")
    }

    /// Where the recording is while it is being made. It is useful from its first byte, so it has a name; but until
    /// [`finish_recording`](Self::finish_recording) the stage is not done.
    #[must_use]
    pub fn recording_in_the_making(&self) -> PathBuf {
        self.path.join("recording.part")
    }

    /// The recording is complete.
    pub fn finish_recording(&self) -> Result<(), FolderError> {
        let (from, to) = (self.recording_in_the_making(), self.recording());
        fs::rename(&from, &to).map_err(|error| io_error(&from, "renamed", error))
    }

    /// Where evidence goes.
    #[must_use]
    pub fn evidence(&self) -> PathBuf {
        self.path.join("evidence")
    }

    /// A folder for the evidence on one race, made if need be, and what it is called in the result folder.
    pub fn evidence_on(&self, race: &str) -> Result<(PathBuf, String), FolderError> {
        let name = format!("evidence/{}", file_stem(race));
        self.make_folder(&name)?;
        Ok((self.path.join(&name), name))
    }

    /// The first stage that is not done.
    #[must_use]
    pub fn next(&self) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| !self.is_done(*stage))
    }

    /// Whether a stage is done.
    #[must_use]
    pub fn is_done(&self, stage: Stage) -> bool {
        match stage {
            Stage::Record => self.recording().exists(),
            _ => self.path.join(stage_file(stage)).exists(),
        }
    }

    /// What a stage gave, if it is done.
    pub fn stage(&self, stage: Stage) -> Result<Option<ProgramFindings>, FolderError> {
        self.read_findings(&stage_file(stage))
    }

    /// A stage is done: keeps what it gave, which also becomes the result so far, and forgets its pieces.
    pub fn finish(&self, stage: Stage, findings: &ProgramFindings) -> Result<(), FolderError> {
        // The result first: a stage that is done must not have a result that is older.
        self.write_text(RESULTS, &findings.to_json())?;
        self.write_text(&stage_file(stage), &findings.to_json())?;
        let pieces = self.path.join(pieces_folder(stage));
        absent_is_fine(fs::remove_dir_all(&pieces))
            .map_err(|error| io_error(&pieces, "removed", error))
    }

    /// Keeps what is known in the middle of a stage, to be reported. The stage goes on from its pieces.
    pub fn keep_results(&self, findings: &ProgramFindings) -> Result<(), FolderError> {
        self.write_text(RESULTS, &findings.to_json())
    }

    /// Everything known so far.
    pub fn results(&self) -> Result<ProgramFindings, FolderError> {
        let read = self.read_findings(RESULTS)?;
        read.ok_or_else(|| FolderError::NotOurs {
            folder: self.path.clone(),
            missing: RESULTS,
        })
    }

    /// What an unfinished stage has already found out about a race, by any name.
    pub fn piece<T: DeserializeOwned>(
        &self,
        stage: Stage,
        name: &str,
    ) -> Result<Option<T>, FolderError> {
        let piece: Option<Piece<T>> = self.read_json(&piece_file(stage, name))?;
        Ok(piece
            .filter(|piece| piece.name == name)
            .map(|piece| piece.content))
    }

    /// Keeps what an unfinished stage has found out about a race.
    pub fn keep_piece<T: Serialize>(
        &self,
        stage: Stage,
        name: &str,
        content: &T,
    ) -> Result<(), FolderError> {
        self.make_folder(&pieces_folder(stage))?;
        let name_and_content = Piece {
            name: name.to_owned(),
            content,
        };
        self.write_json(&piece_file(stage, name), &name_and_content)
    }

    /// Other data of the run (`since.json`); none if it was not kept.
    pub fn data<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, FolderError> {
        self.read_json(file)
    }

    /// Keeps other data of the run.
    pub fn keep_data<T: Serialize>(&self, file: &str, data: &T) -> Result<(), FolderError> {
        self.write_json(file, data)
    }

    fn read_findings(&self, file: &str) -> Result<Option<ProgramFindings>, FolderError> {
        let Some(bytes) = self.read_bytes(file)? else {
            return Ok(None);
        };
        let path = self.path.join(file);
        let read = ProgramFindings::from_json(&bytes);
        read.map(Some)
            .map_err(|error| FolderError::Malformed { path, error })
    }

    fn read_json<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, FolderError> {
        let Some(bytes) = self.read_bytes(file)? else {
            return Ok(None);
        };
        let path = self.path.join(file);
        let read = serde_json::from_slice(&bytes).map(Some);
        read.map_err(|error| io_error(&path, "read", error.into()))
    }

    fn read_bytes(&self, file: &str) -> Result<Option<Vec<u8>>, FolderError> {
        let path = self.path.join(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(&path, "read", error)),
        }
    }

    fn write_json<T: Serialize>(&self, file: &str, value: &T) -> Result<(), FolderError> {
        let json = serde_json::to_string(value).expect("these types are always valid JSON");
        self.write_text(file, &(json + "\n"))
    }

    fn write_text(&self, file: &str, text: &str) -> Result<(), FolderError> {
        let path = self.path.join(file);
        let write = || {
            let mut whole = self.pending.create(&path)?;
            whole.write_all(text.as_bytes())?;
            whole.finish()
        };
        write().map_err(|error| io_error(&path, "written", error))
    }

    fn make_folder(&self, name: &str) -> Result<(), FolderError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(|error| io_error(&path, "created", error))
    }
}

/// A piece of a stage, with the name it was kept under.
#[derive(Serialize, Deserialize)]
struct Piece<T> {
    name: String,
    content: T,
}

fn stage_file(stage: Stage) -> String {
    format!("stages/{}.json", stage.word())
}

fn pieces_folder(stage: Stage) -> String {
    format!("stages/{}", stage.word())
}

fn piece_file(stage: Stage, name: &str) -> String {
    format!("{}/{}.json", pieces_folder(stage), file_stem(name))
}

/// Names may be anything, file names may not.
fn file_stem(name: &str) -> String {
    let plain = name.chars().filter(char::is_ascii_alphanumeric).take(40);
    let checksum = crc32fast::hash(name.as_bytes());
    format!("{}-{checksum:08x}", plain.collect::<String>())
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn io_error(path: &Path, action: &'static str, error: io::Error) -> FolderError {
    FolderError::Io {
        path: path.to_owned(),
        action,
        error,
    }
}
