//! Which system calls are answered from outside of the guest.

use crate::Kernel;
use crate::syscalls::{Policy, entry};
use crate::thread::Call;

/// True if the host's answer decides what the call does: it has to be recorded.
pub(crate) fn is_outside(kernel: &Kernel, call: &Call) -> bool {
    let Some(entry) = entry(call.number) else {
        return false;
    };
    match entry.policy {
        Policy::Pass => true,
        Policy::Absent | Policy::Refuse(_) => false,
        Policy::Virtual => is_outside_virtual(kernel, call),
    }
}

fn is_outside_virtual(kernel: &Kernel, call: &Call) -> bool {
    let first = call.args[0] as i32;
    match call.number as i64 {
        libc::SYS_kill => ![kernel.pid, 0, -kernel.pid].contains(&first),
        // In a private world no child is made, and what it would have done is answered at once.
        libc::SYS_fork | libc::SYS_vfork => kernel.world.is_some(),
        libc::SYS_clone => kernel.world.is_some() && call.args[0] & libc::CLONE_THREAD as u64 == 0,
        libc::SYS_clone3 => {
            let flags = kernel.memory.read_u64(call.args[0]).unwrap_or(0);
            kernel.world.is_some() && flags & libc::CLONE_THREAD as u64 == 0
        }
        libc::SYS_mmap => call.args[3] as i32 & libc::MAP_ANONYMOUS == 0,
        libc::SYS_execve | libc::SYS_execveat => true,
        libc::SYS_prctl => ![libc::PR_SET_NAME, libc::PR_GET_NAME].contains(&first),
        libc::SYS_process_vm_readv
        | libc::SYS_process_vm_writev
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_getpgrp
        | libc::SYS_getpgid
        | libc::SYS_getsid
        | libc::SYS_setpgid
        | libc::SYS_setsid
        | libc::SYS_getpriority
        | libc::SYS_setpriority
        | libc::SYS_prlimit64
        | libc::SYS_pidfd_open
        | libc::SYS_timerfd_create
        | libc::SYS_timerfd_settime
        | libc::SYS_timerfd_gettime
        | libc::SYS_open
        | libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_access
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_fstat
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_readlink
        | libc::SYS_readlinkat
        | libc::SYS_close
        | libc::SYS_close_range
        | libc::SYS_dup2
        | libc::SYS_dup3
        | libc::SYS_fcntl
        | libc::SYS_flock
        | libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_pread64
        | libc::SYS_preadv
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_select
        | libc::SYS_pselect6
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_sysinfo
        | libc::SYS_uname
        | libc::SYS_sched_getaffinity => true,
        _ => false,
    }
}
