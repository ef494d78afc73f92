//! Signal calls.

use crate::futex::TimeoutKind;
use crate::memory::SysResult;
use crate::signals::{self, Action, AltStack, SIGNALS, SignalInfo, bit};
use crate::thread::{Call, Wait};
use crate::{Flow, Kernel};
use verdict_cpu::Gpr;

const UNBLOCKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
const MIN_STACK: u64 = 2048;

impl Kernel {
    pub(super) fn sys_sigaction(&mut self, a: [u64; 6]) -> SysResult {
        let signal = a[0] as i32;
        if !(1..=SIGNALS as i32).contains(&signal) || a[3] != 8 {
            return Err(libc::EINVAL);
        }
        let old = self.actions[signal as usize - 1];
        if a[1] != 0 {
            if signal == libc::SIGKILL || signal == libc::SIGSTOP {
                return Err(libc::EINVAL);
            }
            let word = |kernel: &Kernel, at: u64| kernel.memory.read_u64(a[1] + at);
            let action = Action {
                handler: word(self, 0)?,
                flags: word(self, 8)?,
                restorer: word(self, 16)?,
                mask: word(self, 24)? & !UNBLOCKABLE,
            };
            self.actions[signal as usize - 1] = action;
            if signal == libc::SIGCHLD {
                // Children of a process that ignores SIGCHLD are not waited for: the host must know.
                let handler = if action.ignores() {
                    libc::SIG_IGN
                } else {
                    libc::SIG_DFL
                };
                // SAFETY: default dispositions only.
                unsafe { libc::signal(libc::SIGCHLD, handler) };
            }
            if action.ignores() {
                self.process_pending
                    .retain(|pending| pending.signal != signal);
            }
        }
        if a[2] != 0 {
            for (at, value) in [
                (0, old.handler),
                (8, old.flags),
                (16, old.restorer),
                (24, old.mask),
            ] {
                self.memory.write_u64(a[2] + at, value)?;
            }
        }
        Ok(0)
    }

    pub(super) fn sys_sigprocmask(&mut self, a: [u64; 6]) -> SysResult {
        let old = self.thread().signal_mask;
        if a[1] != 0 {
            let set = self.memory.read_u64(a[1])?;
            let new = match a[0] as i32 {
                libc::SIG_BLOCK => old | set,
                libc::SIG_UNBLOCK => old & !set,
                libc::SIG_SETMASK => set,
                _ => return Err(libc::EINVAL),
            };
            self.thread().signal_mask = new & !UNBLOCKABLE;
        }
        if a[2] != 0 {
            self.memory.write_u64(a[2], old)?;
        }
        Ok(0)
    }

    pub(super) fn sys_sigreturn(&mut self) -> Flow {
        let mask = self.options.vector_mask;
        let current = self.current;
        match signals::pop_frame(&self.memory, &mut self.threads[current], mask) {
            Ok(()) => Flow::Resume,
            Err(_) => {
                self.send_to_thread(current, SignalInfo::new(libc::SIGSEGV, 0x80));
                Flow::Resume
            }
        }
    }

    pub(super) fn sys_sigpending(&mut self, to: u64) -> SysResult {
        let mask = self.thread().signal_mask;
        let own = self
            .thread()
            .pending
            .iter()
            .fold(0, |set, info| set | bit(info.signal));
        let all = self
            .process_pending
            .iter()
            .fold(own, |set, info| set | bit(info.signal));
        self.memory.write_u64(to, all & mask).map(|()| 0)
    }

    pub(super) fn sys_sigtimedwait(&mut self, call: &Call) -> Result<Flow, i32> {
        let a = call.args;
        let set = self.memory.read_u64(a[0])?;
        if let Some(info) = self.take_signal(self.current, set) {
            if a[1] != 0 {
                self.memory.write(a[1], &info.bytes)?;
            }
            return Ok(Flow::Return(i64::from(info.signal)));
        }
        if call.timed_out {
            return Err(libc::EAGAIN);
        }
        let deadline = match call.deadline {
            Some(deadline) => Some(deadline),
            None => self.deadline(a[2], TimeoutKind::Relative)?,
        };
        Ok(Flow::Block(Wait::Signal { set, deadline }))
    }

    pub(super) fn sys_sigsuspend(&mut self, set: u64) -> Flow {
        let mask = match self.memory.read_u64(set) {
            Ok(mask) => mask & !UNBLOCKABLE,
            Err(error) => return Flow::error(error),
        };
        let thread = self.thread();
        thread.saved_mask.get_or_insert(thread.signal_mask);
        thread.signal_mask = mask;
        Flow::Block(Wait::Signal {
            set: 0,
            deadline: None,
        })
    }

    /// Puts a mask in force for the time of one call (`ppoll` and the like).
    pub(crate) fn swap_mask(&mut self, set: u64) -> Result<(), i32> {
        if set != 0 && self.thread().saved_mask.is_none() {
            let mask = self.memory.read_u64(set)? & !UNBLOCKABLE;
            let thread = self.thread();
            thread.saved_mask = Some(thread.signal_mask);
            thread.signal_mask = mask;
        }
        Ok(())
    }

    pub(super) fn sys_sigaltstack(&mut self, new: u64, old: u64) -> SysResult {
        let rsp = self.thread().registers.get(Gpr::Rsp);
        let current = self.thread().alt_stack;
        let on_it = current.contains(rsp);
        if old != 0 {
            let flags = if current.len == 0 {
                libc::SS_DISABLE
            } else if on_it {
                libc::SS_ONSTACK
            } else {
                0
            };
            self.memory.write_u64(old, current.address)?;
            self.memory.write_u64(old + 8, flags as u64)?;
            self.memory.write_u64(old + 16, current.len)?;
        }
        if new != 0 {
            if on_it {
                return Err(libc::EPERM);
            }
            let flags = self.memory.read_u32(new + 8)? as i32;
            let stack = AltStack {
                address: self.memory.read_u64(new)?,
                len: self.memory.read_u64(new + 16)?,
                flags: 0,
            };
            self.thread().alt_stack = match flags & libc::SS_DISABLE {
                0 if stack.len < MIN_STACK => return Err(libc::ENOMEM),
                0 => stack,
                _ => AltStack {
                    address: 0,
                    len: 0,
                    flags: libc::SS_DISABLE,
                },
            };
        }
        Ok(0)
    }

    /// A write to a closed pipe: the guest's signal, not the executor's.
    pub(crate) fn broken_pipe(&mut self) {
        // SAFETY: takes the blocked, pending SIGPIPE of this thread off the host's queue, if it is there.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGPIPE);
            let now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            libc::sigtimedwait(&set, std::ptr::null_mut(), &now);
        }
        let info = SignalInfo::from_process(libc::SIGPIPE, 0, self.pid, 0);
        self.note_signal(&info, Some(self.current));
        self.send_to_thread(self.current, info);
    }

    pub(crate) fn sys_kill(&mut self, pid: i32, signal: i32) -> SysResult {
        if !(0..=SIGNALS as i32).contains(&signal) {
            return Err(libc::EINVAL);
        }
        if pid == self.pid || pid == 0 || pid == -self.pid {
            if signal != 0 {
                let info = SignalInfo::from_process(signal, 0, self.pid, self.uid());
                self.send_to_process(info);
            }
            if pid <= 0 {
                for child in self.children.values() {
                    let _ = super::host(
                        libc::SYS_kill as u64,
                        [*child as u64, signal as u64, 0, 0, 0, 0],
                    );
                }
            }
            return Ok(0);
        }
        if pid == -1 || pid == crate::PARENT_PID {
            return Err(libc::EPERM);
        }
        let real = if pid < 0 {
            -self.to_real_pid(-pid).ok_or(libc::ESRCH)?
        } else {
            self.to_real_pid(pid).ok_or(libc::ESRCH)?
        };
        super::host(
            libc::SYS_kill as u64,
            [real as u64, signal as u64, 0, 0, 0, 0],
        )
    }

    pub(super) fn sys_tgkill(&mut self, group: Option<i32>, tid: i32, signal: i32) -> SysResult {
        if group.is_some_and(|group| group != self.pid) {
            return Err(libc::ESRCH);
        }
        if !(0..=SIGNALS as i32).contains(&signal) {
            return Err(libc::EINVAL);
        }
        let index = self.thread_by_tid(tid).ok_or(libc::ESRCH)?;
        if signal != 0 {
            const SI_TKILL: i32 = -6;
            let info = SignalInfo::from_process(signal, SI_TKILL, self.pid, self.uid());
            self.send_to_thread(index, info);
        }
        Ok(0)
    }

    pub(super) fn sys_sigqueue(
        &mut self,
        pid: i32,
        tid: Option<i32>,
        signal: i32,
        info: u64,
    ) -> SysResult {
        if pid != self.pid {
            return Err(libc::EPERM);
        }
        if !(1..=SIGNALS as i32).contains(&signal) {
            return Err(libc::EINVAL);
        }
        let mut queued = SignalInfo::new(signal, 0);
        self.memory.read(info, &mut queued.bytes)?;
        queued.bytes[0..4].copy_from_slice(&signal.to_le_bytes());
        match tid {
            None => self.send_to_process(queued),
            Some(tid) => {
                let index = self.thread_by_tid(tid).ok_or(libc::ESRCH)?;
                self.send_to_thread(index, queued);
            }
        }
        Ok(0)
    }

    pub(crate) fn uid(&self) -> u32 {
        // SAFETY: cannot fail.
        unsafe { libc::getuid() }
    }
}
