//! The remaining calls.

use crate::Kernel;
use crate::memory::SysResult;
use crate::time::SECOND_NS;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const ARCH_GET_GS: u64 = 0x1004;

impl Kernel {
    pub(super) fn sys_arch_prctl(&mut self, a: [u64; 6]) -> SysResult {
        match a[0] {
            ARCH_SET_FS => self.thread().registers.fs_base = a[1],
            ARCH_SET_GS => self.thread().registers.gs_base = a[1],
            ARCH_GET_FS => {
                let base = self.thread().registers.fs_base;
                self.memory.write_u64(a[1], base)?;
            }
            ARCH_GET_GS => {
                let base = self.thread().registers.gs_base;
                self.memory.write_u64(a[1], base)?;
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(0)
    }

    pub(crate) fn sys_prctl(&mut self, a: [u64; 6]) -> SysResult {
        match a[0] as i32 {
            libc::PR_SET_NAME => {
                let mut name = [0; 16];
                let given = self.memory.read_string(a[1])?;
                let len = given.len().min(15);
                name[..len].copy_from_slice(&given[..len]);
                self.thread().name = name;
                Ok(0)
            }
            libc::PR_GET_NAME => {
                let name = self.thread().name;
                self.memory.write(a[1], &name).map(|()| 0)
            }
            libc::PR_SET_SECCOMP | libc::PR_SET_MM => Err(libc::EINVAL),
            libc::PR_GET_SECCOMP => Ok(0),
            libc::PR_SET_PDEATHSIG | libc::PR_SET_TIMERSLACK => Ok(0),
            _ => self.pass(libc::SYS_prctl as u64, a),
        }
    }

    pub(super) fn sys_getrusage(&mut self, a: [u64; 6]) -> SysResult {
        let used = if a[0] as i32 == libc::RUSAGE_THREAD {
            self.thread().retired
        } else {
            self.clock.cpu(self.retired)
        };
        let mut usage = [0; 144];
        if a[0] as i32 != libc::RUSAGE_CHILDREN {
            usage[0..8].copy_from_slice(&(used / SECOND_NS).to_le_bytes());
            usage[8..16].copy_from_slice(&(used % SECOND_NS / 1000).to_le_bytes());
        }
        self.memory.write(a[1], &usage).map(|()| 0)
    }

    /// The host's memory size, but nothing that changes from moment to moment.
    pub(super) fn sys_sysinfo(&mut self, a: [u64; 6]) -> SysResult {
        // SAFETY: all-zero is valid for this plain struct, which the call fills.
        let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
        super::host(
            libc::SYS_sysinfo as u64,
            [(&raw mut info) as u64, 0, 0, 0, 0, 0],
        )?;
        info.uptime = (self.now() / SECOND_NS) as i64;
        info.loads = [0; 3];
        info.freeram = info.totalram / 2;
        info.sharedram = 0;
        info.bufferram = 0;
        info.freeswap = info.totalswap;
        info.procs = 1;
        // SAFETY: a plain struct seen as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts((&raw const info).cast::<u8>(), size_of::<libc::sysinfo>())
        };
        self.memory.write(a[0], bytes).map(|()| 0)
    }

    pub(super) fn sys_getcpu(&mut self, a: [u64; 6]) -> SysResult {
        for to in [a[0], a[1]] {
            if to != 0 {
                self.memory.write_u32(to, 0)?;
            }
        }
        Ok(0)
    }

    /// The host's processors: a program sizes its thread pools by them.
    pub(super) fn sys_sched_getaffinity(&mut self, mut a: [u64; 6]) -> SysResult {
        a[0] = 0;
        self.pass(libc::SYS_sched_getaffinity as u64, a)
    }
}
