//! Calls about paths and descriptors.

use super::host;
use super::memory::descriptor_path;
use crate::memory::{SysResult, errno};
use crate::procfs::Special;
use crate::thread::{Call, Wait};
use crate::{ENGINE_FD_END, ENGINE_FD_START, Flow, Kernel};
use std::ffi::CString;
use verdict_schedule::SplitMix;

/// How long a thread sleeps before it tries a lock of the host again.
const RETRY_NS: u64 = 1_000_000;
/// Random bytes given out at once.
const RANDOM_MAX: u64 = 1 << 20;

/// True for descriptors that are not the guest's.
pub(super) fn is_engine_fd(fd: i32) -> bool {
    (ENGINE_FD_START..ENGINE_FD_END).contains(&fd)
}

impl Kernel {
    /// `open` and its kin; the path is argument `which`.
    pub(super) fn sys_open(&mut self, number: u64, a: [u64; 6], which: usize) -> SysResult {
        let path = self.memory.read_string(a[which])?;
        match self.special_path(&path) {
            None => self.pass(number, a),
            Some(Special::Program) => self.with_path(number, a, which, &self.program_path()),
            Some(Special::Redirect(other)) => self.with_path(number, a, which, &other),
            Some(Special::Content(content)) => content_descriptor(&content),
            Some(Special::Random) => {
                let fd = self.pass(number, a)?;
                self.random_descriptors.insert(fd as i32);
                Ok(fd)
            }
        }
    }

    pub(super) fn sys_with_path(&mut self, number: u64, a: [u64; 6], which: usize) -> SysResult {
        let path = self.memory.read_string(a[which])?;
        match self.special_path(&path) {
            Some(Special::Program) => self.with_path(number, a, which, &self.program_path()),
            Some(Special::Redirect(other)) => self.with_path(number, a, which, &other),
            _ => self.pass(number, a),
        }
    }

    fn with_path(&mut self, number: u64, mut a: [u64; 6], which: usize, path: &[u8]) -> SysResult {
        let path = CString::new(path).map_err(|_| libc::ENOENT)?;
        a[which] = path.as_ptr() as u64;
        self.pass(number, a)
    }

    pub(super) fn sys_readlink(&mut self, number: u64, a: [u64; 6], which: usize) -> SysResult {
        let path = self.memory.read_string(a[which])?;
        match self.special_path(&path) {
            Some(Special::Program) => {
                let target = self.program_path();
                let len = target.len().min(a[which + 2] as usize);
                self.memory.write(a[which + 1], &target[..len])?;
                Ok(len as i64)
            }
            Some(Special::Redirect(other)) => self.with_path(number, a, which, &other),
            _ => self.pass(number, a),
        }
    }

    pub(super) fn sys_close(&mut self, fd: i32) -> SysResult {
        if is_engine_fd(fd) {
            return Err(libc::EBADF);
        }
        self.forget_descriptor(fd);
        self.random_descriptors.remove(&fd);
        host(libc::SYS_close as u64, [fd as u64, 0, 0, 0, 0, 0])
    }

    /// Closes around the engine's own descriptors.
    pub(super) fn sys_close_range(&mut self, a: [u64; 6]) -> SysResult {
        let (first, last, flags) = (a[0] as u32, a[1] as u32, a[2]);
        if first > last {
            return Err(libc::EINVAL);
        }
        let (start, end) = (ENGINE_FD_START as u32, ENGINE_FD_END as u32);
        for (from, to) in [(first, last.min(start - 1)), (first.max(end), last)] {
            if from <= to {
                host(
                    libc::SYS_close_range as u64,
                    [u64::from(from), u64::from(to), flags, 0, 0, 0],
                )?;
            }
        }
        if flags & libc::CLOSE_RANGE_CLOEXEC as u64 == 0 {
            self.random_descriptors
                .retain(|fd| !(first..=last).contains(&(*fd as u32)));
            let closed: Vec<i32> = self
                .timer_descriptors()
                .filter(|fd| (first..=last).contains(&(*fd as u32)))
                .collect();
            closed.into_iter().for_each(|fd| self.forget_descriptor(fd));
        }
        Ok(0)
    }

    pub(super) fn sys_dup(&mut self, number: u64, a: [u64; 6]) -> SysResult {
        if is_engine_fd(a[0] as i32) || is_engine_fd(a[1] as i32) {
            return Err(libc::EBADF);
        }
        let result = host(number, a)?;
        if a[0] != a[1] {
            self.forget_descriptor(a[1] as i32);
            self.random_descriptors.remove(&(a[1] as i32));
            if self.random_descriptors.contains(&(a[0] as i32)) {
                self.random_descriptors.insert(a[1] as i32);
            }
        }
        Ok(result)
    }

    pub(super) fn sys_fcntl(&mut self, mut a: [u64; 6]) -> Flow {
        if is_engine_fd(a[0] as i32) {
            return Flow::error(libc::EBADF);
        }
        let command = a[1] as i32;
        let waits = matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW);
        if waits {
            a[1] = if command == libc::F_SETLKW {
                libc::F_SETLK
            } else {
                libc::F_OFD_SETLK
            } as u64;
        }
        match self.pass(libc::SYS_fcntl as u64, a) {
            Err(libc::EAGAIN | libc::EACCES) if waits => self.retry_later(),
            Ok(pid) if command == libc::F_GETOWN => {
                Flow::Return(i64::from(self.to_virtual_pid(pid as i32)))
            }
            result => result.into(),
        }
    }

    pub(super) fn sys_flock(&mut self, mut a: [u64; 6]) -> Flow {
        let waits = a[1] as i32 & libc::LOCK_NB == 0;
        a[1] |= libc::LOCK_NB as u64;
        match self.pass(libc::SYS_flock as u64, a) {
            Err(libc::EWOULDBLOCK) if waits => self.retry_later(),
            result => result.into(),
        }
    }

    fn retry_later(&self) -> Flow {
        Flow::Block(Wait::Sleep {
            deadline: self.now() + RETRY_NS,
        })
    }

    pub(super) fn sys_getrandom(&mut self, a: [u64; 6]) -> SysResult {
        let len = a[1].min(RANDOM_MAX);
        let bytes = random_bytes(&mut self.random, len);
        self.memory.write(a[0], &bytes)?;
        Ok(len as i64)
    }

    /// Reads from `/dev/urandom` and the like: `None` if the descriptor is something else.
    pub(super) fn read_random(&mut self, call: &Call) -> Option<SysResult> {
        let fd = call.args[0] as i32;
        if call.number as i64 != libc::SYS_read || !self.random_descriptors.contains(&fd) {
            return None;
        }
        // A descriptor number may have been reused behind our back (received, duplicated over by the host).
        if !descriptor_path(fd)
            .is_some_and(|path| path.ends_with("urandom") || path.ends_with("random"))
        {
            self.random_descriptors.remove(&fd);
            return None;
        }
        let len = call.args[2].min(RANDOM_MAX);
        let bytes = random_bytes(&mut self.device_random, len);
        let written = self.memory.write(call.args[1], &bytes);
        Some(written.map(|()| len as i64))
    }
}

fn random_bytes(source: &mut SplitMix, len: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while bytes.len() < len as usize {
        bytes.extend_from_slice(&source.next_u64().to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

/// A descriptor that reads the given bytes.
fn content_descriptor(content: &[u8]) -> SysResult {
    // SAFETY: plain system calls on a descriptor of our own.
    unsafe {
        let fd = libc::memfd_create(c"proc".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(errno());
        }
        let mut written = 0;
        while written < content.len() {
            let count = libc::write(
                fd,
                content[written..].as_ptr().cast(),
                content.len() - written,
            );
            if count <= 0 {
                libc::close(fd);
                return Err(libc::EIO);
            }
            written += count as usize;
        }
        libc::lseek(fd, 0, libc::SEEK_SET);
        Ok(i64::from(fd))
    }
}
