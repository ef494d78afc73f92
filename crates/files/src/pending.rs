//! The list of files that are being written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use crate::{WholeFile, WholeFolder};

/// The unfinished files of one process. Clones share one list.
#[derive(Clone, Default, Debug)]
pub struct PendingFiles {
    partial: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl PendingFiles {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts writing `destination`; see [`WholeFile`].
    pub fn create(&self, destination: &Path) -> io::Result<WholeFile> {
        WholeFile::create(destination, self.clone())
    }

    /// Starts a folder that must not exist yet; see [`WholeFolder`].
    pub fn create_folder(&self, destination: &Path) -> io::Result<WholeFolder> {
        WholeFolder::create(destination, self.clone())
    }

    /// Removes every unfinished file and folder. For the end of the process: what is still being written is lost.
    pub fn remove_all(&self) {
        for path in std::mem::take(&mut *self.locked()) {
            remove_path(&path);
        }
    }

    pub(crate) fn insert(&self, partial: &Path) {
        self.locked().insert(partial.to_owned());
    }

    /// Gives `partial` its real name, unless `remove_all` has taken it away. Holding the lock meanwhile keeps
    /// a signal from removing the list's entry between the two steps.
    pub(crate) fn rename(&self, partial: &Path, destination: &Path) -> io::Result<()> {
        let mut list = self.locked();
        fs::rename(partial, destination)?;
        list.remove(partial);
        Ok(())
    }

    pub(crate) fn remove(&self, partial: &Path) {
        if self.locked().remove(partial) {
            remove_path(partial);
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // The set is whole after every operation, so a panic elsewhere does not make it unusable.
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing can be done about what cannot be removed, and its name says what it is.
fn remove_path(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path);
    }
}
