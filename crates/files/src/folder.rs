//! A folder of files that appears whole or not at all.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::PendingFiles;
use crate::whole::partial_name;

/// A folder that has no name of its own until [`finish`](Self::finish), and goes away with all that is in it if that is
/// never called.
#[derive(Debug)]
pub struct WholeFolder {
    partial: PathBuf,
    destination: PathBuf,
    pending: PendingFiles,
}

impl WholeFolder {
    pub(crate) fn create(destination: &Path, pending: PendingFiles) -> io::Result<Self> {
        if fs::symlink_metadata(destination).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let partial = partial_name(destination)?;
        pending.insert(&partial);
        let folder = Self {
            partial,
            destination: destination.to_owned(),
            pending,
        };
        // Of a process that was killed and had the same number.
        let _ = fs::remove_dir_all(&folder.partial);
        fs::create_dir(&folder.partial)?;
        Ok(folder)
    }

    /// Where files are written meanwhile.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Gives the folder its name, once everything in it has reached the disk.
    pub fn finish(self) -> io::Result<()> {
        for entry in fs::read_dir(&self.partial)? {
            fs::File::open(entry?.path())?.sync_all()?;
        }
        self.pending.rename(&self.partial, &self.destination)
    }
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        self.pending.remove(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_when_it_is_finished_and_not_before() {
        let base = tempfile::tempdir().unwrap();
        let destination = base.path().join("blocks");
        let pending = PendingFiles::new();
        let folder = pending.create_folder(&destination).unwrap();
        fs::write(folder.path().join("a"), "1").unwrap();
        assert!(!destination.exists());
        drop(folder);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);

        let folder = pending.create_folder(&destination).unwrap();
        fs::write(folder.path().join("a"), "2").unwrap();
        folder.finish().unwrap();
        assert_eq!(fs::read(destination.join("a")).unwrap(), b"2");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
        let again = pending.create_folder(&destination);
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_signal_removes_an_unfinished_folder() {
        let base = tempfile::tempdir().unwrap();
        let pending = PendingFiles::new();
        let folder = pending.create_folder(&base.path().join("blocks")).unwrap();
        fs::write(folder.path().join("a"), "1").unwrap();
        pending.remove_all();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
