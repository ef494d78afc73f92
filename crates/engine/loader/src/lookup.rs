//! From what the user typed to an open file: the search of `execvp`, and the checks of `execve`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::error::InterpreterProblem;
use crate::file::ProgramFile;
use crate::{LoadError, Privilege};

/// What is searched where PATH is not set, as in glibc.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";
const SET_USER_ID: u32 = 0o4000;
/// Without the group's execute bit, the set-group-id bit means something else.
const SET_GROUP_ID: u32 = 0o2010;

/// How a name leads to a file.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'a> {
    /// As `execve`: the name is a path.
    Exact,
    /// As `execvp`: a name without a slash is searched in this PATH (None: not set).
    Search(Option<&'a [u8]>),
}

/// The path of the program that `name` means.
pub(crate) fn find(name: &[u8], lookup: Lookup<'_>) -> Result<PathBuf, LoadError> {
    let typed = to_path(name);
    match lookup {
        Lookup::Search(path) if !name.is_empty() && !name.contains(&b'/') => {
            search(&typed, path.unwrap_or(DEFAULT_PATH))
        }
        Lookup::Exact | Lookup::Search(_) => check(&typed).map(|()| typed),
    }
}

fn search(name: &Path, path: &[u8]) -> Result<PathBuf, LoadError> {
    let mut refused = None;
    for folder in path.split(|&b| b == b':') {
        let folder = if folder.is_empty() {
            Path::new(".")
        } else {
            Path::new(OsStr::from_bytes(folder))
        };
        let candidate = folder.join(name);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(LoadError::NotFound { .. }) => {}
            // Another folder may hold one that may be executed; if none does, this one is worth telling about.
            Err(refusal) => {
                refused.get_or_insert(refusal);
            }
        }
    }
    Err(refused.unwrap_or_else(|| LoadError::NotInPath {
        name: name.to_owned(),
    }))
}

/// What `execve` checks before it looks into a file.
fn check(path: &Path) -> Result<(), LoadError> {
    let owned = || path.to_owned();
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => LoadError::NotExecutable { path: owned() },
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            LoadError::NotFound { path: owned() }
        }
        _ => LoadError::unreadable(path, &error),
    })?;
    if metadata.is_dir() {
        return Err(LoadError::Directory { path: owned() });
    }
    if !metadata.is_file() {
        return Err(LoadError::NotRegular { path: owned() });
    }
    if metadata.nlink() == 0 {
        return Err(LoadError::Deleted { path: owned() });
    }
    match rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::NOENT) => Err(LoadError::Deleted { path: owned() }),
        Err(_) => Err(LoadError::NotExecutable { path: owned() }),
    }
}

/// Opens what [`find`] found. It may have gone since.
pub(crate) fn open(path: &Path) -> Result<ProgramFile, LoadError> {
    let file = ProgramFile::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Deleted {
            path: path.to_owned(),
        },
        _ => LoadError::unreadable(path, &error),
    })?;
    if file.is_deleted() {
        return Err(LoadError::Deleted {
            path: path.to_owned(),
        });
    }
    Ok(file)
}

pub(crate) fn refuse_privileged(file: &ProgramFile) -> Result<(), LoadError> {
    let mode = file.mode();
    let privilege = if mode & SET_USER_ID != 0 {
        Privilege::SetUserId
    } else if mode & SET_GROUP_ID == SET_GROUP_ID {
        Privilege::SetGroupId
    } else if has_capabilities(file) {
        Privilege::Capabilities
    } else {
        return Ok(());
    };
    Err(LoadError::Privileged {
        path: file.path().to_owned(),
        privilege,
    })
}

fn has_capabilities(file: &ProgramFile) -> bool {
    // The attribute is at most 24 bytes long. A file system without attributes has no capabilities either.
    let mut value = [0_u8; 64];
    rustix::fs::fgetxattr(file.file(), "security.capability", &mut value).is_ok()
}

/// The interpreter that a `#!` line names. A path, never searched for.
pub(crate) fn script_interpreter(name: &[u8], script: &Path) -> Result<PathBuf, LoadError> {
    let interpreter = to_path(name);
    match check(&interpreter) {
        Ok(()) => Ok(interpreter),
        Err(refusal) => Err(LoadError::ScriptInterpreter {
            script: script.to_owned(),
            problem: interpreter_problem(name, &refusal),
            interpreter,
        }),
    }
}

/// The dynamic linker that a program's PT_INTERP names.
pub(crate) fn elf_interpreter(name: &[u8], program: &Path) -> Result<ProgramFile, LoadError> {
    let interpreter = to_path(name);
    check(&interpreter)
        .and_then(|()| open(&interpreter))
        .map_err(|refusal| LoadError::ElfInterpreter {
            program: program.to_owned(),
            problem: interpreter_problem(name, &refusal),
            interpreter,
        })
}

fn interpreter_problem(name: &[u8], refusal: &LoadError) -> InterpreterProblem {
    match refusal {
        LoadError::NotFound { .. } | LoadError::Deleted { .. } if name.ends_with(b"\r") => {
            InterpreterProblem::CarriageReturn
        }
        LoadError::NotFound { .. } | LoadError::Deleted { .. } => InterpreterProblem::Missing,
        _ => InterpreterProblem::NotExecutable,
    }
}

fn to_path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(name))
}
