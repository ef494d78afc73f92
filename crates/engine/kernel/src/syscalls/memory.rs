//! Calls about the address space that need more than [`crate::Memory`] knows.

use super::host;
use crate::Kernel;
use crate::memory::{MapRequest, SysResult};
use std::path::PathBuf;
use verdict_cpu::layout::PAGE;

impl Kernel {
    pub(super) fn sys_mmap(&mut self, a: [u64; 6]) -> SysResult {
        let flags = a[3] as i32;
        let anonymous = flags & libc::MAP_ANONYMOUS != 0;
        if !a[5].is_multiple_of(PAGE) {
            return Err(libc::EINVAL);
        }
        let fd = if anonymous { -1 } else { a[4] as i32 };
        let path = (!anonymous).then(|| descriptor_path(fd)).flatten();
        let request = MapRequest {
            address: a[0],
            len: a[1],
            prot: a[2] as i32,
            flags,
            fd,
            offset: a[5],
            path,
        };
        if anonymous {
            self.memory.map(&request)
        } else {
            self.map_host_file(&request)
        }
    }

    pub(crate) fn sys_madvise(&mut self, a: [u64; 6]) -> SysResult {
        if !crate::is_guest_range(a[0], a[1]) {
            return Err(libc::ENOMEM);
        }
        if matches!(
            a[2] as i32,
            libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE
        ) {
            self.memory.unwatch(a[0]..a[0] + a[1]);
        }
        host(libc::SYS_madvise as u64, a)
    }

    /// `shmat` at an address of our choosing: reserve first, then let the segment take its place.
    pub(super) fn sys_shmat(&mut self, a: [u64; 6]) -> SysResult {
        // SAFETY: all-zero is valid for this plain struct, which the call fills.
        let mut info: libc::shmid_ds = unsafe { std::mem::zeroed() };
        host(
            libc::SYS_shmctl as u64,
            [a[0], libc::IPC_STAT as u64, (&raw mut info) as u64, 0, 0, 0],
        )?;
        let prot = if a[2] as i32 & libc::SHM_RDONLY != 0 {
            libc::PROT_READ
        } else {
            libc::PROT_READ | libc::PROT_WRITE
        };
        let fixed = if a[1] != 0 { libc::MAP_FIXED } else { 0 };
        let request = MapRequest {
            address: a[1],
            len: info.shm_segsz as u64,
            prot,
            flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS | fixed,
            fd: -1,
            offset: 0,
            path: Some(PathBuf::from(format!("/SYSV{:08x}", a[0]))),
        };
        let address = self.memory.map(&request)? as u64;
        const SHM_REMAP: u64 = 0o40000;
        host(
            libc::SYS_shmat as u64,
            [a[0], address, a[2] | SHM_REMAP, 0, 0, 0],
        )
    }

    pub(super) fn sys_shmdt(&mut self, address: u64) -> SysResult {
        let end = self
            .memory
            .find(address)
            .filter(|(start, _)| *start == address)
            .ok_or(libc::EINVAL)?
            .1
            .end;
        self.memory.unmap(address, end - address)
    }

    /// Only on itself: the pids of other processes are not the guest's to know.
    pub(crate) fn sys_process_vm(&mut self, number: u64, mut a: [u64; 6]) -> SysResult {
        a[0] = self.to_real_pid(a[0] as i32).ok_or(libc::ESRCH)? as u64;
        self.pass(number, a)
    }
}

/// The path behind a descriptor.
pub(super) fn descriptor_path(fd: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()
}
