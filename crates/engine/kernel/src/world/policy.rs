//! What becomes of each system call in the private world. Nothing is passed to the host by default: a call without a row
//! here is refused.

/// What the private world does with a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivatePolicy {
    /// The world performs it on its own files, descriptors and sockets.
    World,
    /// The kernel performs it on the guest's own memory, threads, signals and time, as it always does.
    Kernel,
    /// The kernel performs it differently from how it does outside: maps private copies, starts no process, signals nobody.
    Seam,
    /// It succeeds and has no effect.
    Nothing,
    /// It fails with this error, which programs are prepared for.
    Fails(i32),
    /// The execution ends with this explanation.
    Refuse(&'static str),
}

const NO_SIGNAL_FD: &str =
    "signals through descriptors (signalfd) are not supported; use sigwait or a handler";

/// The policy for a call; `None` for a number that Linux has not given out.
pub fn private_policy(number: u64) -> Option<PrivatePolicy> {
    use crate::Policy;
    use PrivatePolicy::{Fails, Refuse};
    let entry = crate::syscalls::entry(number)?;
    match entry.policy {
        Policy::Absent => Some(Fails(libc::ENOSYS)),
        Policy::Refuse(why) => Some(Refuse(why)),
        Policy::Pass | Policy::Virtual => own_policy(number as i64),
    }
}

#[rustfmt::skip]
fn own_policy(number: i64) -> Option<PrivatePolicy> {
    use PrivatePolicy::{Fails, Kernel, Nothing, Refuse, Seam, World};
    Some(match number {
        // files, names, attributes
        libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => Seam,
        libc::SYS_read | libc::SYS_write | libc::SYS_close | libc::SYS_stat | libc::SYS_fstat | libc::SYS_lstat
        | libc::SYS_lseek | libc::SYS_pread64 | libc::SYS_pwrite64 | libc::SYS_readv | libc::SYS_writev
        | libc::SYS_preadv | libc::SYS_pwritev | libc::SYS_preadv2 | libc::SYS_pwritev2
        | libc::SYS_access | libc::SYS_faccessat | libc::SYS_faccessat2 | libc::SYS_newfstatat | libc::SYS_statx
        | libc::SYS_sendfile | libc::SYS_copy_file_range
        | libc::SYS_truncate | libc::SYS_ftruncate | libc::SYS_fallocate
        | libc::SYS_getdents | libc::SYS_getdents64 | libc::SYS_getcwd | libc::SYS_chdir | libc::SYS_fchdir
        | libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_mkdir | libc::SYS_mkdirat
        | libc::SYS_rmdir | libc::SYS_link | libc::SYS_linkat | libc::SYS_unlink | libc::SYS_unlinkat
        | libc::SYS_symlink | libc::SYS_symlinkat | libc::SYS_readlink | libc::SYS_readlinkat
        | libc::SYS_mknod | libc::SYS_mknodat
        | libc::SYS_chmod | libc::SYS_fchmod | libc::SYS_fchmodat | SYS_FCHMODAT2
        | libc::SYS_chown | libc::SYS_fchown | libc::SYS_lchown | libc::SYS_fchownat
        | libc::SYS_utime | libc::SYS_utimes | libc::SYS_utimensat | libc::SYS_futimesat
        | libc::SYS_umask | libc::SYS_statfs | libc::SYS_fstatfs | libc::SYS_memfd_create => World,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync | libc::SYS_syncfs | libc::SYS_sync_file_range
        | libc::SYS_fadvise64 | libc::SYS_readahead => Nothing,
        libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr | libc::SYS_getxattr | libc::SYS_lgetxattr
        | libc::SYS_fgetxattr | libc::SYS_listxattr | libc::SYS_llistxattr | libc::SYS_flistxattr
        | libc::SYS_removexattr | libc::SYS_lremovexattr | libc::SYS_fremovexattr
        | libc::SYS_name_to_handle_at | libc::SYS_open_by_handle_at => Fails(libc::EOPNOTSUPP),
        // Programs fall back to reading and writing.
        libc::SYS_splice | libc::SYS_tee | libc::SYS_vmsplice => Fails(libc::EINVAL),
        // descriptors
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 | libc::SYS_close_range | libc::SYS_ioctl
        | libc::SYS_pipe | libc::SYS_pipe2 | libc::SYS_eventfd | libc::SYS_eventfd2
        | libc::SYS_timerfd_create | libc::SYS_timerfd_settime | libc::SYS_timerfd_gettime
        | libc::SYS_epoll_create | libc::SYS_epoll_create1 | libc::SYS_epoll_ctl => World,
        libc::SYS_fcntl | libc::SYS_flock => Seam,
        libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6
        | libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Seam,
        // sockets
        libc::SYS_socket | libc::SYS_socketpair | libc::SYS_connect | libc::SYS_accept | libc::SYS_accept4
        | libc::SYS_bind | libc::SYS_listen | libc::SYS_shutdown | libc::SYS_getsockname | libc::SYS_getpeername
        | libc::SYS_setsockopt | libc::SYS_getsockopt | libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg
        | libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg => World,
        // who the guest is
        libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid | libc::SYS_getresuid
        | libc::SYS_getresgid | libc::SYS_setuid | libc::SYS_setgid | libc::SYS_setreuid | libc::SYS_setregid
        | libc::SYS_setresuid | libc::SYS_setresgid | libc::SYS_setfsuid | libc::SYS_setfsgid
        | libc::SYS_getgroups | libc::SYS_setgroups | libc::SYS_getrlimit | libc::SYS_setrlimit => World,
        libc::SYS_prlimit64 | libc::SYS_getpgrp | libc::SYS_getpgid | libc::SYS_getsid | libc::SYS_setpgid
        | libc::SYS_setsid | libc::SYS_getpriority | libc::SYS_setpriority => Seam,
        libc::SYS_capget | libc::SYS_capset => Fails(libc::EPERM),
        // memory
        libc::SYS_mmap | libc::SYS_munmap | libc::SYS_mremap | libc::SYS_msync | libc::SYS_madvise
        | libc::SYS_mincore | libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => Seam,
        libc::SYS_mprotect | libc::SYS_brk => Kernel,
        libc::SYS_mlock | libc::SYS_munlock | libc::SYS_mlockall | libc::SYS_munlockall | libc::SYS_mlock2 => Nothing,
        libc::SYS_get_mempolicy => Fails(libc::ENOSYS),
        // threads, processes, signals
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork | libc::SYS_wait4 | libc::SYS_waitid
        | libc::SYS_kill | libc::SYS_prctl => Seam,
        libc::SYS_execve | libc::SYS_execveat => Seam,
        libc::SYS_exit | libc::SYS_exit_group | libc::SYS_tkill | libc::SYS_tgkill | libc::SYS_rt_sigqueueinfo
        | libc::SYS_rt_tgsigqueueinfo | libc::SYS_getpid | libc::SYS_gettid | libc::SYS_getppid
        | libc::SYS_pidfd_send_signal | libc::SYS_set_tid_address | libc::SYS_set_robust_list
        | libc::SYS_get_robust_list | libc::SYS_futex | libc::SYS_futex_waitv | libc::SYS_sched_yield
        | libc::SYS_rseq | libc::SYS_rt_sigaction | libc::SYS_rt_sigprocmask | libc::SYS_rt_sigreturn
        | libc::SYS_rt_sigpending | libc::SYS_rt_sigtimedwait | libc::SYS_rt_sigsuspend | libc::SYS_pause
        | libc::SYS_sigaltstack => Kernel,
        libc::SYS_signalfd | libc::SYS_signalfd4 => Refuse(NO_SIGNAL_FD),
        libc::SYS_pidfd_open | libc::SYS_pidfd_getfd => Fails(libc::ENOSYS),
        libc::SYS_restart_syscall => Fails(libc::EINTR),
        // time and the machine
        libc::SYS_clock_gettime | libc::SYS_clock_getres | libc::SYS_gettimeofday | libc::SYS_time | libc::SYS_times
        | libc::SYS_clock_settime | libc::SYS_settimeofday | libc::SYS_adjtimex | libc::SYS_clock_adjtime
        | libc::SYS_nanosleep | libc::SYS_clock_nanosleep | libc::SYS_alarm | libc::SYS_setitimer | libc::SYS_getitimer
        | libc::SYS_timer_create | libc::SYS_timer_settime | libc::SYS_timer_gettime | libc::SYS_timer_getoverrun
        | libc::SYS_timer_delete | libc::SYS_getrandom
        | libc::SYS_arch_prctl | libc::SYS_getrusage | libc::SYS_sysinfo | libc::SYS_uname | libc::SYS_personality
        | libc::SYS_seccomp | libc::SYS_getcpu | libc::SYS_membarrier | libc::SYS_sched_getaffinity
        | libc::SYS_sched_setaffinity | libc::SYS_sched_setscheduler | libc::SYS_sched_setparam
        | libc::SYS_sched_setattr | libc::SYS_ioprio_set | libc::SYS_sched_getscheduler | libc::SYS_sched_getparam
        | libc::SYS_sched_getattr | libc::SYS_sched_rr_get_interval => Kernel,
        libc::SYS_sched_get_priority_max | libc::SYS_sched_get_priority_min => Seam,
        libc::SYS_ioprio_get => Nothing,
        // objects that only exist in the host's kernel
        libc::SYS_shmget | libc::SYS_shmat | libc::SYS_shmctl | libc::SYS_shmdt | libc::SYS_semget | libc::SYS_semop
        | libc::SYS_semctl | libc::SYS_semtimedop | libc::SYS_msgget | libc::SYS_msgsnd | libc::SYS_msgrcv
        | libc::SYS_msgctl | libc::SYS_mq_open | libc::SYS_mq_unlink | libc::SYS_mq_timedsend
        | libc::SYS_mq_timedreceive | libc::SYS_mq_notify | libc::SYS_mq_getsetattr | libc::SYS_add_key
        | libc::SYS_request_key | libc::SYS_keyctl | libc::SYS_inotify_init | libc::SYS_inotify_init1
        | libc::SYS_inotify_add_watch | libc::SYS_inotify_rm_watch | libc::SYS_fanotify_init
        | libc::SYS_fanotify_mark => Fails(libc::ENOSYS),
        // the machine's administration
        libc::SYS_chroot | libc::SYS_mount | libc::SYS_umount2 | libc::SYS_acct | libc::SYS_sethostname
        | libc::SYS_setdomainname | libc::SYS_quotactl | libc::SYS_syslog | libc::SYS_open_tree
        | libc::SYS_move_mount | libc::SYS_fsopen | libc::SYS_fsconfig | libc::SYS_fsmount | libc::SYS_fspick
        | libc::SYS_mount_setattr | SYS_QUOTACTL_FD => Fails(libc::EPERM),
        libc::SYS_ustat | libc::SYS_sysfs | SYS_CACHESTAT | SYS_STATMOUNT | SYS_LISTMOUNT | SYS_LSM_GET_SELF_ATTR
        | SYS_LSM_SET_SELF_ATTR | SYS_LSM_LIST_MODULES => Fails(libc::ENOSYS),
        _ => return None,
    })
}

const SYS_QUOTACTL_FD: i64 = 443;
const SYS_CACHESTAT: i64 = 451;
pub(super) const SYS_FCHMODAT2: i64 = 452;
const SYS_STATMOUNT: i64 = 457;
const SYS_LISTMOUNT: i64 = 458;
const SYS_LSM_GET_SELF_ATTR: i64 = 459;
const SYS_LSM_SET_SELF_ATTR: i64 = 460;
const SYS_LSM_LIST_MODULES: i64 = 461;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    #[test]
    fn every_system_call_has_a_policy_of_its_own() {
        let without: Vec<&str> = crate::syscall_table()
            .iter()
            .filter(|entry| private_policy(entry.number).is_none())
            .map(|entry| entry.name)
            .collect();
        assert_eq!(without, [""; 0]);
    }

    /// What the table passes to the host as it is must never be left to it here.
    #[test]
    fn nothing_is_passed_to_the_host() {
        let passed: Vec<&str> = crate::syscall_table()
            .iter()
            .filter(|entry| {
                entry.policy == Policy::Pass
                    && private_policy(entry.number) == Some(PrivatePolicy::Kernel)
            })
            .map(|entry| entry.name)
            .collect();
        assert_eq!(passed, [""; 0]);
    }
}
