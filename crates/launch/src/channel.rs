//! The three files that controller and executor share; see `verdict_protocol`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags};
use verdict_protocol::{STATUS_BYTES, Status};

pub(crate) struct Channel {
    pub config: File,
    pub report: File,
    pub status: File,
}

impl Channel {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = |name| rustix::fs::memfd_create(name, flags).map(File::from);
        let channel = Self {
            config: memory("verdict-config")?,
            report: memory("verdict-report")?,
            status: memory("verdict-status")?,
        };
        channel.status.set_len(STATUS_BYTES)?;
        // A guest that finds the file and shortens it would make the executor's next heartbeat a SIGBUS.
        rustix::fs::fcntl_add_seals(
            &channel.status,
            SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
        )?;
        Ok(channel)
    }

    /// In the order in which the executor is told their numbers.
    pub(crate) fn files(&self) -> [&File; 3] {
        [&self.config, &self.report, &self.status]
    }

    pub(crate) fn status(&self) -> io::Result<Status> {
        let mut bytes = [0; Status::LEN];
        self.status.read_exact_at(&mut bytes, 0)?;
        Ok(Status::from_bytes(bytes))
    }
}
