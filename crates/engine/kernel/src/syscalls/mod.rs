//! System calls: one table of policies, one function per call that is not simply the host's.

mod buffers;
mod changes;
mod file_times;
mod files;
mod io;
mod memory;
mod misc;
mod process;
mod signal;
mod table;
mod time;

pub use buffers::{Buffer, Direction, buffers};
pub(crate) use io::identity;
pub(crate) use table::entry;
pub use table::{Policy, SyscallEntry, name, table};

use crate::journal::{Journal, is_outside};
use crate::memory::{SysResult, errno};
use crate::thread::Call;
use crate::{Flow, Kernel};

/// Performs a call on the host as it is.
///
/// The guest's memory is the executor's, so pointers need no translation. Calls that could change what the
/// engine itself depends on (mappings, signals, threads, its descriptors) never get here: the table says so.
pub(crate) fn host(number: u64, args: [u64; 6]) -> SysResult {
    // SAFETY: see above.
    let result = unsafe {
        libc::syscall(
            number as i64,
            args[0],
            args[1],
            args[2],
            args[3],
            args[4],
            args[5],
        )
    };
    if result == -1 {
        Err(errno())
    } else {
        Ok(result)
    }
}

/// Calls that a handler with SA_RESTART restarts.
pub(crate) fn is_restartable(call: &Call) -> bool {
    let number = call.number as i64;
    if number == libc::SYS_futex {
        return call.deadline.is_none();
    }
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_flock
            | libc::SYS_fcntl
            | libc::SYS_recvmmsg
            | libc::SYS_sendmmsg
    )
}

/// Calls that wait for a lock of the host by trying again after a while.
pub(crate) fn sleeps_to_retry(call: &Call) -> bool {
    matches!(call.number as i64, libc::SYS_flock | libc::SYS_fcntl)
}

impl Kernel {
    pub(crate) fn dispatch(&mut self, call: &Call) -> Flow {
        if self.following.is_some() {
            self.observe_unmap(call);
        }
        match &self.journal {
            Journal::Record(_) if is_outside(self, call) => self.record_call(call),
            Journal::Replay(_) if is_outside(self, call) => match call.number as i64 {
                libc::SYS_mmap => self.replay_map(call),
                _ => self.replay_call(call),
            },
            _ => self.dispatch_live(call),
        }
    }

    /// Performs a call here or on the host.
    pub(crate) fn dispatch_live(&mut self, call: &Call) -> Flow {
        if let Some(flow) = self.private_call(call) {
            return flow;
        }
        let Some(entry) = table::entry(call.number) else {
            return Flow::error(libc::ENOSYS);
        };
        self.before_change(call);
        match entry.policy {
            Policy::Pass => self.pass(call.number, call.args).into(),
            Policy::Absent => Flow::error(libc::ENOSYS),
            Policy::Refuse(why) => Flow::Refuse(why.to_string()),
            Policy::Virtual => self.perform(call),
        }
    }

    /// The host performs the call; pages watched for translated code do not make it fail.
    pub(crate) fn pass(&mut self, number: u64, args: [u64; 6]) -> SysResult {
        match host(number, args) {
            Err(libc::EFAULT) if self.memory.unwatch_all() => host(number, args),
            Err(libc::EPIPE) => {
                self.broken_pipe();
                Err(libc::EPIPE)
            }
            result => result,
        }
    }

    fn perform(&mut self, call: &Call) -> Flow {
        let a = call.args;
        match call.number as i64 {
            // memory
            libc::SYS_mmap => self.sys_mmap(a).into(),
            libc::SYS_munmap => self.memory.unmap(a[0], a[1]).into(),
            libc::SYS_mprotect => self.memory.protect(a[0], a[1], a[2] as i32).into(),
            libc::SYS_mremap => self.memory.remap(a[0], a[1], a[2], a[3] as i32, a[4]).into(),
            libc::SYS_brk => self.memory.set_brk(a[0]).into(),
            libc::SYS_madvise => self.sys_madvise(a).into(),
            libc::SYS_shmat => self.sys_shmat(a).into(),
            libc::SYS_shmdt => self.sys_shmdt(a[0]).into(),
            libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => self.sys_process_vm(call.number, a).into(),
            // threads and processes
            libc::SYS_clone => self.sys_clone(a),
            libc::SYS_clone3 => self.sys_clone3(a[0], a[1]),
            libc::SYS_fork => self.fork_child(0, 0),
            libc::SYS_vfork => self.vfork_child(0),
            libc::SYS_execve => self.sys_execve(a),
            libc::SYS_execveat => self.sys_execveat(a),
            libc::SYS_exit => Flow::ExitThread,
            libc::SYS_exit_group => Flow::ExitProcess(a[0] as i32 & 0xff),
            libc::SYS_wait4 => self.sys_wait4(a),
            libc::SYS_waitid => self.sys_waitid(a),
            libc::SYS_kill => self.sys_kill(a[0] as i32, a[1] as i32).into(),
            libc::SYS_tkill => self.sys_tgkill(None, a[0] as i32, a[1] as i32).into(),
            libc::SYS_tgkill => self.sys_tgkill(Some(a[0] as i32), a[1] as i32, a[2] as i32).into(),
            libc::SYS_rt_sigqueueinfo => self.sys_sigqueue(a[0] as i32, None, a[1] as i32, a[2]).into(),
            libc::SYS_rt_tgsigqueueinfo => self.sys_sigqueue(a[0] as i32, Some(a[1] as i32), a[2] as i32, a[3]).into(),
            libc::SYS_getpid => Flow::Return(i64::from(self.pid)),
            libc::SYS_gettid => Flow::Return(i64::from(self.thread().tid)),
            libc::SYS_getppid => Flow::Return(i64::from(self.parent_pid)),
            libc::SYS_getpgrp | libc::SYS_getpgid | libc::SYS_getsid | libc::SYS_setpgid | libc::SYS_setsid
            | libc::SYS_getpriority | libc::SYS_setpriority | libc::SYS_prlimit64 => self.sys_with_pids(call.number, a).into(),
            libc::SYS_pidfd_open => self.sys_pidfd_open(a).into(),
            libc::SYS_pidfd_send_signal => Flow::error(libc::ENOSYS),
            libc::SYS_set_tid_address => {
                self.thread().clear_child_tid = a[0];
                Flow::Return(i64::from(self.thread().tid))
            }
            libc::SYS_set_robust_list => {
                self.thread().robust_list = (a[0], a[1]);
                Flow::Return(0)
            }
            libc::SYS_get_robust_list => self.sys_get_robust_list(a).into(),
            libc::SYS_futex => self.futex(a),
            libc::SYS_futex_waitv => self.futex_waitv(a[1] as u32),
            libc::SYS_sched_yield => Flow::Yield,
            libc::SYS_rseq => Flow::error(libc::ENOSYS),
            // signals
            libc::SYS_rt_sigaction => self.sys_sigaction(a).into(),
            libc::SYS_rt_sigprocmask => self.sys_sigprocmask(a).into(),
            libc::SYS_rt_sigreturn => self.sys_sigreturn(),
            libc::SYS_rt_sigpending => self.sys_sigpending(a[0]).into(),
            libc::SYS_rt_sigtimedwait => self.sys_sigtimedwait(call).into(),
            libc::SYS_rt_sigsuspend => self.sys_sigsuspend(a[0]),
            libc::SYS_pause => Flow::Block(crate::Wait::Signal { set: 0, deadline: None }),
            libc::SYS_sigaltstack => self.sys_sigaltstack(a[0], a[1]).into(),
            libc::SYS_signalfd | libc::SYS_signalfd4 => {
                Flow::Refuse("signals through descriptors (signalfd) are not supported; use sigwait or a handler".into())
            }
            // time
            libc::SYS_clock_gettime => self.sys_clock_gettime(a[0] as i32, a[1]).into(),
            libc::SYS_clock_getres => self.sys_clock_getres(a[0] as i32, a[1]).into(),
            libc::SYS_gettimeofday => self.sys_gettimeofday(a[0], a[1]).into(),
            libc::SYS_time => self.sys_time(a[0]).into(),
            libc::SYS_times => self.sys_times(a[0]).into(),
            libc::SYS_clock_settime | libc::SYS_settimeofday | libc::SYS_adjtimex | libc::SYS_clock_adjtime => Flow::error(libc::EPERM),
            libc::SYS_nanosleep => self.sys_nanosleep(libc::CLOCK_MONOTONIC, 0, a[0]),
            libc::SYS_clock_nanosleep => self.sys_nanosleep(a[0] as i32, a[1], a[2]),
            libc::SYS_alarm => self.sys_alarm(a[0]).into(),
            libc::SYS_setitimer => self.sys_setitimer(a).into(),
            libc::SYS_getitimer => self.sys_getitimer(a).into(),
            libc::SYS_timer_create => self.sys_timer_create(a).into(),
            libc::SYS_timer_settime => self.sys_timer_settime(a).into(),
            libc::SYS_timer_gettime => self.sys_timer_gettime(a).into(),
            libc::SYS_timer_getoverrun => self.sys_timer_getoverrun(a[0] as i32).into(),
            libc::SYS_timer_delete => self.sys_timer_delete(a[0] as i32).into(),
            libc::SYS_timerfd_create => self.timerfd_create(a[0] as i32, a[1] as i32).into(),
            libc::SYS_timerfd_settime => self.sys_timerfd_settime(a).into(),
            libc::SYS_timerfd_gettime => self.sys_timerfd_gettime(a).into(),
            // files and descriptors
            libc::SYS_open => self.sys_open(call.number, a, 0).into(),
            libc::SYS_openat | libc::SYS_openat2 => self.sys_open(call.number, a, 1).into(),
            libc::SYS_access => self.sys_with_path(call.number, a, 0).into(),
            libc::SYS_faccessat | libc::SYS_faccessat2 => self.sys_with_path(call.number, a, 1).into(),
            libc::SYS_fstat => self.sys_stat(call.number, a, None).into(),
            libc::SYS_stat | libc::SYS_lstat => self.sys_stat(call.number, a, Some(0)).into(),
            libc::SYS_newfstatat | libc::SYS_statx => self.sys_stat(call.number, a, Some(1)).into(),
            libc::SYS_readlink => self.sys_readlink(call.number, a, 0).into(),
            libc::SYS_readlinkat => self.sys_readlink(call.number, a, 1).into(),
            libc::SYS_close => self.sys_close(a[0] as i32).into(),
            libc::SYS_close_range => self.sys_close_range(a).into(),
            libc::SYS_dup2 | libc::SYS_dup3 => self.sys_dup(call.number, a).into(),
            libc::SYS_fcntl => self.sys_fcntl(a),
            libc::SYS_flock => self.sys_flock(a),
            libc::SYS_getrandom => self.sys_getrandom(a).into(),
            // input and output that may wait
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg
            | libc::SYS_accept | libc::SYS_accept4 | libc::SYS_pread64 | libc::SYS_preadv => self.sys_receive(call),
            libc::SYS_write | libc::SYS_writev => self.sys_write(call),
            libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => self.sys_send(call),
            libc::SYS_poll | libc::SYS_ppoll => self.sys_poll(call).into(),
            libc::SYS_select | libc::SYS_pselect6 => self.sys_select(call).into(),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => self.sys_epoll(call).into(),
            // the rest
            libc::SYS_prctl => self.sys_prctl(a).into(),
            libc::SYS_arch_prctl => self.sys_arch_prctl(a).into(),
            libc::SYS_getrusage => self.sys_getrusage(a).into(),
            libc::SYS_sysinfo => self.sys_sysinfo(a).into(),
            libc::SYS_uname => self.pass(call.number, a).into(),
            libc::SYS_personality => Flow::Return(0),
            libc::SYS_seccomp => Flow::error(libc::EINVAL),
            libc::SYS_getcpu => self.sys_getcpu(a).into(),
            libc::SYS_membarrier => Flow::Return(0),
            libc::SYS_sched_getaffinity => self.sys_sched_getaffinity(a).into(),
            libc::SYS_sched_setaffinity | libc::SYS_sched_setscheduler | libc::SYS_sched_setparam
            | libc::SYS_sched_setattr | libc::SYS_ioprio_set => Flow::Return(0),
            libc::SYS_sched_getscheduler => Flow::Return(0),
            libc::SYS_sched_getparam => self.memory.write_u32(a[1], 0).map(|()| 0).into(),
            libc::SYS_sched_getattr => Flow::error(libc::ENOSYS),
            libc::SYS_sched_rr_get_interval => self.memory.write(a[1], &[0; 16]).map(|()| 0).into(),
            _ => unreachable!("the table and this list name the same virtual calls"),
        }
    }
}
