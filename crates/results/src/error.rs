//! Why a result folder cannot be used.

use std::io;
use std::path::PathBuf;

use verdict_findings::ReadError;

/// Why a result folder cannot be used.
#[derive(thiserror::Error, Debug)]
pub enum FolderError {
    /// There is no such folder.
    #[error("{}: there is no such folder", folder.display())]
    Missing {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// It is a folder, but of something else.
    #[error("{}: not a result folder: it has no {missing}", folder.display())]
    NotOurs {
        /// The folder.
        folder: PathBuf,
        /// What every result folder has.
        missing: &'static str,
    },
    /// It holds the results of another run.
    #[error("{}: holds the results of a run {what}", folder.display())]
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        what: String,
    },
    /// Someone is working in it.
    #[error("{}: another run is working in this folder", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A file in it cannot be read or written.
    #[error("{}: cannot be {action}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// A file in it holds something else than it should.
    #[error("{}: {error}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: ReadError,
    },
}
