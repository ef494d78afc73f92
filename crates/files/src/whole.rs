//! One file that appears whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::PendingFiles;

/// A file that has no name of its own until [`finish`](Self::finish). Unbuffered: wrap it in a
/// [`std::io::BufWriter`] and hand `into_inner`'s answer to `finish`.
///
/// A destination that exists and is not a regular file (a pipe, `/dev/null`) cannot be replaced and is written
/// directly. A destination that is a symbolic link stays one: the file it points to is replaced.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    /// `None` for destinations that are written directly.
    rename: Option<Rename>,
    pending: PendingFiles,
}

#[derive(Debug)]
struct Rename {
    partial: PathBuf,
    destination: PathBuf,
}

impl WholeFile {
    pub(crate) fn create(destination: &Path, pending: PendingFiles) -> io::Result<Self> {
        let existing = match fs::metadata(destination) {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                let file = OpenOptions::new().write(true).open(destination)?;
                return Ok(Self {
                    file,
                    rename: None,
                    pending,
                });
            }
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let destination = match existing {
            Some(_) => fs::canonicalize(destination)?,
            None => destination.to_owned(),
        };
        let partial = partial_name(&destination)?;
        // Listed before it exists: a signal in between then finds nothing to remove, rather than missing it.
        pending.insert(&partial);
        let rename = Some(Rename {
            partial: partial.clone(),
            destination,
        });
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&partial);
        let file = opened.inspect_err(|_| pending.remove(&partial))?;
        let whole = Self {
            file,
            rename,
            pending,
        };
        if let Some(metadata) = existing {
            whole.file.set_permissions(metadata.permissions())?;
        }
        Ok(whole)
    }

    /// Gives the file its name. Until this returns the destination holds what it held before.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(rename) = &self.rename else {
            return self.file.flush();
        };
        // The name must not reach the disk before the content does.
        self.file.sync_all()?;
        self.pending.rename(&rename.partial, &rename.destination)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(rename) = &self.rename {
            self.pending.remove(&rename.partial);
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for WholeFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// `dir/trace.bin` -> `dir/.trace.bin.4711.partial`: in the same folder, so that renaming cannot cross file
/// systems; hidden; with the process id, so that two processes do not write one file.
pub(crate) fn partial_name(destination: &Path) -> io::Result<PathBuf> {
    let Some(name) = destination.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path has no file name",
        ));
    };
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.partial", std::process::id()));
    Ok(destination.with_file_name(partial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn destination_appears_only_when_finished() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut file = PendingFiles::new().create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn dropped_file_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut file = PendingFiles::new().create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn remove_all_removes_unfinished_and_keeps_finished() {
        let dir = tempfile::tempdir().unwrap();
        let pending = PendingFiles::new();
        pending
            .create(&dir.path().join("done"))
            .unwrap()
            .finish()
            .unwrap();
        let half = pending.create(&dir.path().join("half")).unwrap();
        pending.remove_all();
        assert_eq!(names(dir.path()), ["done"]);
        assert!(half.finish().is_err(), "a removed file cannot be finished");
        assert_eq!(names(dir.path()), ["done"]);
    }

    #[test]
    fn symbolic_link_and_permissions_survive() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&target, &link).unwrap();
        let mut file = PendingFiles::new().create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }

    #[test]
    fn devices_are_written_directly() {
        let mut file = PendingFiles::new().create(Path::new("/dev/null")).unwrap();
        file.write_all(b"gone").unwrap();
        file.finish().unwrap();
        assert!(fs::metadata("/dev/null").unwrap().permissions().mode() & 0o111 == 0);
    }

    #[test]
    fn folders_and_missing_folders_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let pending = PendingFiles::new();
        assert_eq!(
            pending.create(dir.path()).unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
        let missing = pending.create(&dir.path().join("no/such/out")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
