//! The pipe through which an executor tells about its run.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// As much as an unprivileged process may ask for by default. With less, both ends wait for each other more often.
const PIPE_BYTES: usize = 1 << 20;

/// Both ends.
#[derive(Debug)]
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    pub(crate) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // A small pipe works, too.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Self { read, write })
    }

    /// The end to read from, and the one for the executor.
    pub(crate) fn ends(self) -> (File, File) {
        (self.read.into(), self.write.into())
    }
}
