//! Files that the guest maps: which ones they were, and where a replay gets them from.

use super::{Journal, Recorder};
use crate::memory::{MapRequest, SysResult};
use crate::{Flow, Kernel};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use verdict_recording::{Entry, FileId, FileIdentity};

/// Files that the recording has told of so far.
#[derive(Debug, Default)]
pub(crate) struct ReplayFiles {
    identities: BTreeMap<FileId, FileIdentity>,
    /// Contents that travelled with the recording, or the file itself once it was found unchanged.
    open: BTreeMap<FileId, File>,
}

impl ReplayFiles {
    /// Takes note of a file; false if the entry is about something else.
    pub(crate) fn learn(&mut self, entry: Entry) -> std::io::Result<()> {
        match entry {
            Entry::File { id, identity } => {
                self.identities.insert(id, identity);
            }
            Entry::Contents {
                file,
                offset,
                bytes,
            } => {
                let contents = match self.open.entry(file) {
                    Slot::Occupied(open) => open.into_mut() as &File,
                    Slot::Vacant(free) => free.insert(attached_file()?),
                };
                contents.write_all_at(&bytes, offset)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The file that was told of with the highest number.
    pub(crate) fn last(&self) -> Option<FileId> {
        self.identities.last_key_value().map(|(id, _)| *id)
    }

    /// The file to map, or why it cannot be had.
    fn find(&mut self, id: FileId) -> Result<(i32, PathBuf), String> {
        let Some(identity) = self.identities.get(&id) else {
            return Err("a file that the recording does not describe".into());
        };
        let path = PathBuf::from(OsStr::from_bytes(&identity.path));
        if let Some(file) = self.open.get(&id) {
            return Ok((file.as_raw_fd(), path));
        }
        identity.check().map_err(|error| error.to_string())?;
        let file = File::open(&path)
            .map_err(|error| format!("{} cannot be opened: {error}", path.display()))?;
        let fd = file.as_raw_fd();
        self.open.insert(id, file);
        Ok((fd, path))
    }
}

/// A file in memory, for what a recording brings along.
pub fn attached_file() -> std::io::Result<File> {
    // SAFETY: a fresh descriptor that the file owns.
    let fd = unsafe { libc::memfd_create(c"verdict-attached".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { File::from_raw_fd(fd) })
}

impl Kernel {
    /// A mapping of a file, with what the journal has to do with it.
    pub(crate) fn map_host_file(&mut self, request: &MapRequest) -> SysResult {
        match &self.journal {
            Journal::Live => self.memory.map(request),
            Journal::Record(_) => self.record_map(request),
            Journal::Replay(_) => Err(libc::ENODEV),
        }
    }

    fn record_map(&mut self, request: &MapRequest) -> SysResult {
        let result = self.memory.map(request)?;
        // SAFETY: duplicates the guest's descriptor; the copy is the file's.
        let copy =
            unsafe { libc::fcntl(request.fd, libc::F_DUPFD_CLOEXEC, crate::ENGINE_FD_START) };
        if copy >= 0 {
            // SAFETY: as above.
            let file = unsafe { File::from_raw_fd(copy) };
            self.note_map(request, &file, result as u64);
        }
        Ok(result)
    }

    /// Writes down that a file was mapped, and which one.
    pub(crate) fn note_map(&self, request: &MapRequest, file: &File, address: u64) {
        let path = request.path.clone().unwrap_or_default();
        if let Some(mut recorder) = self.journal.recorder() {
            let id = recorder.file(self.retired, &path, file);
            self.push_map(&mut recorder, id, request, address);
        }
    }

    /// Writes down that bytes were mapped that are in no file of the host.
    pub(crate) fn note_mapped_bytes(&self, request: &MapRequest, bytes: &[u8], address: u64) {
        if let Some(mut recorder) = self.journal.recorder() {
            let path = request.path.clone().unwrap_or_default();
            let id = recorder.bytes(self.retired, &path, request.offset, bytes);
            self.push_map(&mut recorder, id, request, address);
        }
    }

    fn push_map(&self, recorder: &mut Recorder, file: FileId, request: &MapRequest, address: u64) {
        recorder.push(
            self.retired,
            &Entry::Map {
                file,
                address,
                offset: request.offset,
                len: request.len,
            },
        );
    }

    /// A mapping of a file that the recording knows.
    pub(crate) fn replay_map(&mut self, call: &crate::Call) -> Flow {
        let retired = self.retired;
        let found = {
            let Some(mut replayer) = self.journal.replayer() else {
                return Flow::ReplayOver;
            };
            if let Err(error) = replayer.learn_files(retired) {
                replayer.end_here(retired, error.to_string());
                return Flow::ReplayOver;
            }
            match replayer.take_if(retired, |entry| matches!(entry, Entry::Map { .. })) {
                Some(Entry::Map { file, .. }) => match replayer.files.find(file) {
                    Ok(found) => Some(found),
                    Err(why) => {
                        replayer.end_here(retired, why);
                        return Flow::ReplayOver;
                    }
                },
                _ => None,
            }
        };
        let Some((fd, path)) = found else {
            // It failed then, and so it does now.
            return self.replay_call(call);
        };
        let a = call.args;
        let flags = a[3] as i32;
        let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
        let request = MapRequest {
            address: a[0],
            len: a[1],
            prot: a[2] as i32,
            flags: flags & !libc::MAP_TYPE | libc::MAP_PRIVATE,
            fd,
            offset: a[5],
            path: Some(path),
        };
        let result = self.memory.map(&request);
        if let (true, Ok(address)) = (shared, result) {
            self.memory.mark_shared(address as u64, a[1]);
            self.observe_shared_map(call, address as u64);
        }
        result.into()
    }
}
