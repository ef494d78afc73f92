//! Why a program cannot be run. Each message says what was found, where, and what to do, in one sentence.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::ElfProblem;

/// A refusal to load.
#[derive(thiserror::Error, Debug)]
pub enum LoadError {
    /// Nothing has that name.
    #[error("{}: no such file; check the path", Shown(path))]
    NotFound {
        /// As typed.
        path: PathBuf,
    },
    /// A name without a slash was not found in PATH.
    #[error(
        "{}: not found in PATH; check the spelling, or give a path with a slash",
        Shown(name)
    )]
    NotInPath {
        /// As typed.
        name: PathBuf,
    },
    /// It is a folder.
    #[error("{}: is a directory; name the program in it", Shown(path))]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// A device, pipe or socket.
    #[error(
        "{}: is not a regular file; only regular files can be run",
        Shown(path)
    )]
    NotRegular {
        /// What it is called.
        path: PathBuf,
    },
    /// We may not execute it.
    #[error(
        "{}: permission to execute is missing; `chmod +x` it, or check the folders above it and `noexec` mounts",
        Shown(path)
    )]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// It may be executed but not read, and translation reads it.
    #[error(
        "{}: cannot be read: {reason}; the engine must read a program to translate it",
        Shown(path)
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's word for it.
        reason: String,
        /// The system's number for it.
        errno: i32,
    },
    /// The file lost its last name while it was being loaded.
    #[error(
        "{}: was deleted before it could be loaded; build or install it again",
        Shown(path)
    )]
    Deleted {
        /// What it was called.
        path: PathBuf,
    },
    /// Running it would give rights that the engine must not hand to a program it controls.
    #[error(
        "{}: {privilege}, and the engine runs nothing with changed rights; run a copy of it without them",
        Shown(path)
    )]
    Privileged {
        /// The file.
        path: PathBuf,
        /// What makes it privileged.
        privilege: Privilege,
    },
    /// Neither a binary nor a script.
    #[error(
        "{}: is neither an ELF program nor a script with a `#!` line; a script needs one, such as `#!/bin/sh`",
        Shown(path)
    )]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// A `#!` line that names nothing, or more than the kernel reads.
    #[error(
        "{}: its `#!` line names no interpreter within its first 256 bytes; write one, such as `#!/bin/sh`",
        Shown(script)
    )]
    BadScriptLine {
        /// The script.
        script: PathBuf,
    },
    /// The `#!` line names something that is not there.
    #[error(
        "{}: its `#!` line names {}, which {problem}",
        Shown(script),
        Shown(interpreter)
    )]
    ScriptInterpreter {
        /// The script.
        script: PathBuf,
        /// What its line names.
        interpreter: PathBuf,
        /// What is wrong with that, and what to do.
        problem: InterpreterProblem,
    },
    /// Scripts interpreted by scripts.
    #[error(
        "{}: is more than five scripts deep; let the `#!` line name a binary",
        Shown(path)
    )]
    TooManyScripts {
        /// The script where it was given up.
        path: PathBuf,
    },
    /// The program's dynamic linker is not there.
    #[error(
        "{}: asks for the dynamic linker {}, which {problem}",
        Shown(program),
        Shown(interpreter)
    )]
    ElfInterpreter {
        /// The program.
        program: PathBuf,
        /// What its PT_INTERP names.
        interpreter: PathBuf,
        /// What is wrong with that, and what to do.
        problem: InterpreterProblem,
    },
    /// The program's ELF headers cannot be followed.
    #[error("{}: {problem}", Shown(path))]
    Elf {
        /// The program.
        path: PathBuf,
        /// What is wrong.
        problem: ElfProblem,
    },
    /// The dynamic linker's ELF headers cannot be followed.
    #[error(
        "{}: its dynamic linker {} cannot be used: {problem}",
        Shown(program),
        Shown(interpreter)
    )]
    InterpreterElf {
        /// The program.
        program: PathBuf,
        /// Its dynamic linker.
        interpreter: PathBuf,
        /// What is wrong.
        problem: ElfProblem,
    },
    /// A library.
    #[error(
        "{}: is a shared library without an entry point; run a program that uses it",
        Shown(path)
    )]
    NoEntry {
        /// The library.
        path: PathBuf,
    },
    /// A fixed-address image wants a place that is not the guest's.
    #[error(
        "{}: must be loaded at {start:#x}..{end:#x}, which the engine cannot give it; link it as position-independent (-pie)",
        Shown(path)
    )]
    AddressTaken {
        /// The program.
        path: PathBuf,
        /// First address it wants.
        start: u64,
        /// First address above.
        end: u64,
    },
    /// One argument is too long.
    #[error(
        "argument {index} is {bytes} bytes long and Linux allows 131071; pass it in a file or on standard input"
    )]
    ArgumentTooLong {
        /// Its place in argv.
        index: usize,
        /// Its length.
        bytes: usize,
    },
    /// One variable is too long.
    #[error(
        "the environment variable {name} is {bytes} bytes long and Linux allows 131071; shorten it"
    )]
    VariableTooLong {
        /// The variable.
        name: String,
        /// Length of name and value.
        bytes: usize,
    },
    /// All of them together are too long.
    #[error(
        "arguments and environment take {bytes} bytes and the program's stack has room for {limit}; pass them in a file or on standard input"
    )]
    ArgumentsTooLarge {
        /// What they take, pointers included.
        bytes: u64,
        /// What they may take.
        limit: u64,
    },
}

/// What is wrong with an interpreter that was named by another file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterpreterProblem {
    /// Not there.
    Missing,
    /// Not there, and the name ends in a carriage return.
    CarriageReturn,
    /// There, but not to be executed.
    NotExecutable,
}

impl fmt::Display for InterpreterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "does not exist; install it, or correct the path",
            Self::CarriageReturn => {
                "ends in a carriage return; save the script with Unix line ends"
            }
            Self::NotExecutable => "is not an executable file; make it one, or correct the path",
        })
    }
}

/// What gives a program more rights than its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privilege {
    /// The set-user-id bit.
    SetUserId,
    /// The set-group-id bit.
    SetGroupId,
    /// File capabilities.
    Capabilities,
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SetUserId => "is set-user-id",
            Self::SetGroupId => "is set-group-id",
            Self::Capabilities => "has file capabilities",
        })
    }
}

impl LoadError {
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            // Without the "(os error 13)" that the standard library appends.
            reason: match error.kind() {
                io::ErrorKind::PermissionDenied => "permission denied".into(),
                _ => error.to_string(),
            },
            errno: error.raw_os_error().unwrap_or(EIO),
        }
    }

    /// What `execve` would have answered, for a guest that runs a program itself.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::NotFound { .. } | Self::NotInPath { .. } | Self::Deleted { .. } => ENOENT,
            Self::Directory { .. } | Self::NotRegular { .. } | Self::NotExecutable { .. } => EACCES,
            Self::Unreadable { errno, .. } => *errno,
            Self::Privileged { .. } => EPERM,
            Self::NotAProgram { .. } | Self::BadScriptLine { .. } | Self::Elf { .. } => ENOEXEC,
            Self::ScriptInterpreter { problem, .. } | Self::ElfInterpreter { problem, .. } => {
                match problem {
                    InterpreterProblem::Missing | InterpreterProblem::CarriageReturn => ENOENT,
                    InterpreterProblem::NotExecutable => EACCES,
                }
            }
            Self::TooManyScripts { .. } => ELOOP,
            Self::InterpreterElf { .. } => ELIBBAD,
            Self::NoEntry { .. } => ENOEXEC,
            Self::AddressTaken { .. } => ENOMEM,
            Self::ArgumentTooLong { .. }
            | Self::VariableTooLong { .. }
            | Self::ArgumentsTooLarge { .. } => E2BIG,
        }
    }
}

// The kernel's numbers; they are the same on every Linux this runs on.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const E2BIG: i32 = 7;
const ENOEXEC: i32 = 8;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const ELOOP: i32 = 40;
const ELIBBAD: i32 = 80;

/// A path as shown to a user: control characters in a file name must not reach the terminal.
struct Shown<'a>(&'a PathBuf);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str().is_empty() {
            return f.write_str("the empty name");
        }
        for c in self.0.to_string_lossy().chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}
