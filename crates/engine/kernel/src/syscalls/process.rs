//! Threads, processes, and their ids.
//!
//! A forked child stays in its copy of the engine until it executes something; then it leaves for the host,
//! unless children are followed. A `vfork` child shares the engine's memory with its waiting parent, so the
//! executor runs it as a guest within the guest (see [`crate::Outcome::Vfork`]).

use super::host;
use crate::journal::Journal;
use crate::memory::{SysResult, errno};
use crate::signals::{Action, AltStack, SIGNALS};
use crate::thread::{State, Wait};
use crate::{ExecRequest, Flow, ForkRequest, ForkSide, Kernel, Role};
use std::ffi::CString;
use verdict_cpu::Gpr;
use verdict_events::ThreadId;

/// Most arguments or environment strings that are read.
const STRINGS_MAX: usize = 1 << 20;
const STRING_LEN_MAX: usize = 1 << 17;

/// What `clone` and `clone3` ask for.
#[derive(Clone, Copy, Debug, Default)]
struct CloneRequest {
    flags: u64,
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    tls: u64,
    set_tid: u64,
}

impl Kernel {
    pub(crate) fn sys_clone(&mut self, a: [u64; 6]) -> Flow {
        self.clone_with(CloneRequest {
            flags: a[0],
            stack: a[1],
            parent_tid: a[2],
            child_tid: a[3],
            tls: a[4],
            set_tid: 0,
        })
    }

    pub(crate) fn sys_clone3(&mut self, args: u64, size: u64) -> Flow {
        if size < 64 {
            return Flow::error(libc::EINVAL);
        }
        let word = |at: u64| self.memory.read_u64(args + at);
        let read = || -> Result<CloneRequest, i32> {
            Ok(CloneRequest {
                flags: word(0)?,

                child_tid: word(16)?,
                parent_tid: word(24)?,
                // clone3 gives the lowest address of the stack.
                stack: word(40)?.checked_add(word(48)?).ok_or(libc::EINVAL)?,
                tls: word(56)?,
                set_tid: if size >= 80 { word(64)? } else { 0 },
            })
        };
        match read() {
            Ok(request) => self.clone_with(request),
            Err(error) => Flow::error(error),
        }
    }

    fn clone_with(&mut self, request: CloneRequest) -> Flow {
        let has = |flag: i32| request.flags & flag as u64 != 0;
        if request.set_tid != 0 {
            return Flow::error(libc::EPERM);
        }
        if has(libc::CLONE_PIDFD) {
            return Flow::error(libc::EINVAL);
        }
        if has(libc::CLONE_NEWNS)
            || has(libc::CLONE_NEWUSER)
            || has(libc::CLONE_NEWPID)
            || has(libc::CLONE_NEWNET)
        {
            return Flow::Refuse(
                "creating namespaces (clone with CLONE_NEW*) is not supported".into(),
            );
        }
        if has(libc::CLONE_THREAD) {
            return self.create_thread(&request).into();
        }
        if has(libc::CLONE_VM) {
            if !has(libc::CLONE_VFORK) {
                return Flow::Refuse("a child process that shares memory and runs at the same time (clone with CLONE_VM, without CLONE_THREAD or CLONE_VFORK) is not supported".into());
            }
            return self.vfork_child(request.stack);
        }
        let child_tid = if has(libc::CLONE_CHILD_SETTID) {
            request.child_tid
        } else {
            0
        };
        if has(libc::CLONE_CHILD_CLEARTID) {
            self.thread().clear_child_tid = request.child_tid;
        }
        self.fork_child(request.stack, child_tid)
    }

    fn create_thread(&mut self, request: &CloneRequest) -> SysResult {
        let has = |flag: i32| request.flags & flag as u64 != 0;
        let tid = self.next_tid;
        let id = ThreadId(self.threads.len() as u32);
        let mut thread = self.thread().clone();
        thread.id = id;
        thread.tid = tid;
        thread.state = State::Runnable;
        thread.retired = 0;
        thread.saved_mask = None;
        thread.pending.clear();
        thread.alt_stack = AltStack::default();
        thread.robust_list = (0, 0);
        thread.call = None;
        thread.clear_child_tid = if has(libc::CLONE_CHILD_CLEARTID) {
            request.child_tid
        } else {
            0
        };
        thread.registers.set(Gpr::Rax, 0);
        if request.stack != 0 {
            thread.registers.set(Gpr::Rsp, request.stack);
        }
        if has(libc::CLONE_SETTLS) {
            thread.registers.fs_base = request.tls;
        }
        if has(libc::CLONE_PARENT_SETTID) {
            self.memory.write_u32(request.parent_tid, tid as u32)?;
        }
        if has(libc::CLONE_CHILD_SETTID) {
            self.memory.write_u32(request.child_tid, tid as u32)?;
        }
        self.next_tid += 1;
        self.threads.push(thread);
        self.wait_started.push(0);
        Ok(i64::from(tid))
    }

    /// A child process with a copy of everything.
    pub(super) fn fork_child(&mut self, stack: u64, child_tid: u64) -> Flow {
        let pid = self.next_tid;
        self.next_tid += 1;
        Flow::Fork(ForkRequest {
            pid,
            stack,
            child_tid,
        })
    }

    /// Forks this very process; both sides return, and the answer says which one this is.
    pub fn fork(&mut self, request: &ForkRequest) -> ForkSide {
        // SAFETY: the executor is single-threaded, so the child's copy of it is whole.
        match unsafe { libc::fork() } {
            -1 => {
                self.thread().complete(-i64::from(errno()));
                ForkSide::Parent
            }
            0 => {
                self.become_child(request.pid, Role::ForkedChild);
                self.thread().complete(0);
                if request.stack != 0 {
                    self.thread().registers.set(Gpr::Rsp, request.stack);
                }
                if request.child_tid != 0 {
                    // A bad address is the guest's own problem, as it is with the host's kernel.
                    let _ = self.memory.write_u32(request.child_tid, request.pid as u32);
                }
                ForkSide::Child
            }
            real => {
                self.children.insert(request.pid, real);
                self.thread().complete(i64::from(request.pid));
                ForkSide::Parent
            }
        }
    }

    /// What changes for the child of a fork: one thread, no children, nothing pending.
    pub fn become_child(&mut self, pid: i32, role: Role) {
        self.parent_pid = std::mem::replace(&mut self.pid, pid);
        self.role = role;
        // A recording is of one process.
        self.journal = Journal::Live;
        self.children.clear();
        self.process_pending.clear();
        self.timers = Default::default();
        self.exit_other_threads();
        self.thread().tid = pid;
        self.thread().pending.clear();
    }

    pub(super) fn vfork_child(&mut self, stack: u64) -> Flow {
        let pid = self.next_tid;
        self.next_tid += 1;
        Flow::Vfork { pid, stack }
    }

    /// The parent's side of a vfork whose child has gone its own way.
    pub fn vfork_done(&mut self, pid: i32, real: Result<i32, i32>) {
        let result = match real {
            Ok(real) => {
                self.children.insert(pid, real);
                i64::from(pid)
            }
            Err(error) => -i64::from(error),
        };
        self.thread().complete(result);
    }

    // ---- exec ----

    pub(super) fn sys_execve(&mut self, a: [u64; 6]) -> Flow {
        let path = match self.memory.read_string(a[0]) {
            Ok(path) => path,
            Err(error) => return Flow::error(error),
        };
        self.exec(path, a[1], a[2])
    }

    pub(super) fn sys_execveat(&mut self, a: [u64; 6]) -> Flow {
        let path = match self.memory.read_string(a[1]) {
            Ok(path) => path,
            Err(error) => return Flow::error(error),
        };
        let at = a[0] as i32;
        let full = if path.first() == Some(&b'/') || at == libc::AT_FDCWD {
            path
        } else if path.is_empty() {
            format!("/proc/self/fd/{at}").into_bytes()
        } else {
            [format!("/proc/self/fd/{at}/").as_bytes(), &path].concat()
        };
        self.exec(full, a[2], a[3])
    }

    fn exec(&mut self, path: Vec<u8>, argv: u64, env: u64) -> Flow {
        let path = match self.special_path(&path) {
            Some(crate::procfs::Special::Program) => self.program_path(),
            _ => path,
        };
        let strings = self
            .read_strings(argv)
            .and_then(|argv| Ok((argv, self.read_strings(env)?)));
        let (argv, env) = match strings {
            Ok(strings) => strings,
            Err(error) => return Flow::error(error),
        };
        let request = ExecRequest { path, argv, env };
        if self.journal.is_replay() {
            return Flow::Exec(request);
        }
        if self.role == Role::Main || self.options.follow_children {
            // Errors must reach the caller before anything is torn down.
            return match check_executable(&request.path) {
                Ok(()) => Flow::Exec(request),
                Err(error) => Flow::error(error),
            };
        }
        Flow::error(self.exec_natively(&request))
    }

    pub(crate) fn read_strings(&self, mut at: u64) -> Result<Vec<Vec<u8>>, i32> {
        let mut strings = Vec::new();
        if at == 0 {
            return Ok(strings);
        }
        loop {
            let pointer = self.memory.read_u64(at)?;
            if pointer == 0 {
                return Ok(strings);
            }
            if strings.len() == STRINGS_MAX {
                return Err(libc::E2BIG);
            }
            strings.push(self.read_long_string(pointer)?);
            at += 8;
        }
    }

    fn read_long_string(&self, address: u64) -> Result<Vec<u8>, i32> {
        let mut string = Vec::new();
        while string.len() <= STRING_LEN_MAX {
            match self.memory.read_string(address + string.len() as u64) {
                Ok(rest) => {
                    string.extend_from_slice(&rest);
                    return Ok(string);
                }
                Err(libc::ENAMETOOLONG) => {
                    let mut chunk = vec![0; libc::PATH_MAX as usize];
                    self.memory
                        .read(address + string.len() as u64, &mut chunk)?;
                    string.extend_from_slice(&chunk);
                }
                Err(error) => return Err(error),
            }
        }
        Err(libc::E2BIG)
    }

    /// Leaves the engine for good: the child becomes an ordinary process. Returns only with an error.
    fn exec_natively(&mut self, request: &ExecRequest) -> i32 {
        let c_strings = |strings: &[Vec<u8>]| -> Vec<CString> {
            strings
                .iter()
                .map(|string| CString::new(string.as_slice()).expect("read up to the first NUL"))
                .collect()
        };
        let (argv, env) = (c_strings(&request.argv), c_strings(&request.env));
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings
                .iter()
                .map(|string| string.as_ptr())
                .chain(std::iter::once(std::ptr::null()))
                .collect()
        };
        let path = CString::new(request.path.as_slice()).expect("read up to the first NUL");
        let mask = self
            .thread()
            .saved_mask
            .unwrap_or(self.thread().signal_mask);
        // SAFETY: plain system calls on valid, NUL-terminated arrays; on failure the executor's own settings return.
        unsafe {
            set_host_dispositions(&self.actions);
            let old = set_host_mask(mask);
            let personality = libc::personality(self.options.personality);
            libc::execve(
                path.as_ptr(),
                pointers(&argv).as_ptr(),
                pointers(&env).as_ptr(),
            );
            let error = errno();
            if personality >= 0 {
                libc::personality(personality as u64);
            }
            set_host_mask(old);
            error
        }
    }

    // ---- children ----

    pub(super) fn sys_wait4(&mut self, mut a: [u64; 6]) -> Flow {
        let no_hang = a[2] & libc::WNOHANG as u64 != 0;
        let wanted = a[0] as i32;
        a[0] = match wanted {
            -1 | 0 => wanted as i64 as u64,
            pid if pid > 0 => match self.to_real_pid(pid) {
                Some(real) => real as u64,
                None => return Flow::error(libc::ECHILD),
            },
            group => match self.to_real_pid(-group) {
                Some(real) => -i64::from(real) as u64,
                None => return Flow::error(libc::ECHILD),
            },
        };
        a[2] |= libc::WNOHANG as u64;
        match self.pass(libc::SYS_wait4 as u64, a) {
            Ok(0) if !no_hang => Flow::Block(Wait::Child),
            Ok(0) => Flow::Return(0),
            Ok(real) => {
                let status = if a[1] == 0 {
                    0
                } else {
                    self.memory.read_u32(a[1]).unwrap_or(0) as i32
                };
                let ended = a[1] == 0 || libc::WIFEXITED(status) || libc::WIFSIGNALED(status);
                Flow::Return(i64::from(self.reaped(real as i32, ended)))
            }
            Err(error) => Flow::error(error),
        }
    }

    pub(super) fn sys_waitid(&mut self, mut a: [u64; 6]) -> Flow {
        let no_hang = a[3] & libc::WNOHANG as u64 != 0;
        if a[0] as u32 == libc::P_PID || a[0] as u32 == libc::P_PGID {
            a[1] = match self.to_real_pid(a[1] as i32) {
                Some(real) => real as u64,
                None => return Flow::error(libc::ECHILD),
            };
        }
        a[3] |= libc::WNOHANG as u64;
        let mut info = [0u8; 128];
        let to = std::mem::replace(&mut a[2], info.as_mut_ptr() as u64);
        if let Err(error) = host(libc::SYS_waitid as u64, a) {
            return Flow::error(error);
        }
        let real = i32::from_le_bytes(info[12..16].try_into().expect("four bytes"));
        // The layout of siginfo_t: signo, errno, code, padding, pid.
        let real = if real != 0 {
            real
        } else {
            i32::from_le_bytes(info[16..20].try_into().expect("four bytes"))
        };
        if real == 0 && !no_hang {
            return Flow::Block(Wait::Child);
        }
        if real != 0 {
            let ended = a[3] & libc::WNOWAIT as u64 == 0;
            let pid = self.reaped(real, ended);
            info[12..16].copy_from_slice(&pid.to_le_bytes());
            info[12..16].fill(0);
            info[16..20].copy_from_slice(&pid.to_le_bytes());
        }
        if to != 0
            && let Err(error) = self.memory.write(to, &info)
        {
            return Flow::error(error);
        }
        Flow::Return(0)
    }

    /// The virtual pid of a child that was waited for; forgotten if it has ended.
    fn reaped(&mut self, real: i32, ended: bool) -> i32 {
        // The host sent its signal before it let anybody hear of it; and the signal names a child that is known still.
        self.take_host_signals();
        let pid = self.to_virtual_pid(real);
        if ended {
            self.children.remove(&pid);
        }
        pid
    }

    /// The host's pid for one that the guest names.
    pub(crate) fn to_real_pid(&self, pid: i32) -> Option<i32> {
        if pid == self.pid || pid == 0 {
            // SAFETY: cannot fail.
            return Some(unsafe { libc::getpid() });
        }
        match self.children.get(&pid) {
            Some(real) => Some(*real),
            // A pid of our making that is gone; real pids pass as they are.
            None if pid >= crate::PARENT_PID => None,
            None => Some(pid),
        }
    }

    /// The guest's pid for one of the host's.
    pub(crate) fn to_virtual_pid(&self, real: i32) -> i32 {
        // SAFETY: cannot fail.
        if real == unsafe { libc::getpid() } {
            return self.pid;
        }
        self.children
            .iter()
            .find(|(_, child)| **child == real)
            .map_or(real, |(pid, _)| *pid)
    }

    /// Calls whose first argument, result, or both are pids.
    pub(super) fn sys_with_pids(&mut self, number: u64, mut a: [u64; 6]) -> SysResult {
        let which = matches!(number as i64, libc::SYS_getpriority | libc::SYS_setpriority) as usize;
        if a[which] as i32 > 0 {
            a[which] = self.to_real_pid(a[which] as i32).ok_or(libc::ESRCH)? as u64;
        }
        if number as i64 == libc::SYS_setpgid && a[1] as i32 > 0 {
            a[1] = self.to_real_pid(a[1] as i32).ok_or(libc::ESRCH)? as u64;
        }
        let result = self.pass(number, a)?;
        Ok(match number as i64 {
            libc::SYS_getpgrp | libc::SYS_getpgid | libc::SYS_getsid | libc::SYS_setsid => {
                i64::from(self.to_virtual_pid(result as i32))
            }
            _ => result,
        })
    }

    pub(super) fn sys_pidfd_open(&mut self, mut a: [u64; 6]) -> SysResult {
        a[0] = self.to_real_pid(a[0] as i32).ok_or(libc::ESRCH)? as u64;
        self.pass(libc::SYS_pidfd_open as u64, a)
    }

    pub(super) fn sys_get_robust_list(&mut self, a: [u64; 6]) -> SysResult {
        let index = if a[0] == 0 {
            self.current
        } else {
            self.thread_by_tid(a[0] as i32).ok_or(libc::ESRCH)?
        };
        let (head, len) = self.threads[index].robust_list;
        self.memory.write_u64(a[1], head)?;
        self.memory.write_u64(a[2], len).map(|()| 0)
    }
}

fn check_executable(path: &[u8]) -> Result<(), i32> {
    let path = CString::new(path).map_err(|_| libc::ENOENT)?;
    // SAFETY: a valid string.
    if unsafe { libc::access(path.as_ptr(), libc::X_OK) } != 0 {
        return Err(errno());
    }
    // SAFETY: all-zero is valid for this plain struct, which the call fills.
    let mut info: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a valid string and buffer.
    let failed = unsafe { libc::stat(path.as_ptr(), &mut info) } != 0;
    if failed || info.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(libc::EACCES);
    }
    Ok(())
}

/// Dispositions as a native exec would leave them: ignored stays ignored, all else is default.
///
/// # Safety
/// Only just before leaving the engine: synchronous faults are no longer caught afterwards.
unsafe fn set_host_dispositions(actions: &[Action; SIGNALS]) {
    for (index, action) in actions.iter().enumerate() {
        let signal = index as i32 + 1;
        let fault = matches!(
            signal,
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP
        );
        // The host's handlers for faults are reset by exec itself; keep them in case it fails.
        if !fault || action.ignores() {
            let handler = if action.ignores() {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            // SAFETY: default dispositions only.
            unsafe { libc::signal(signal, handler) };
        }
    }
}

/// Sets the host's signal mask, returns the old one.
///
/// # Safety
/// Unblocking asynchronous signals lets them act by default on the executor.
unsafe fn set_host_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: the kernel's mask is eight bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut old,
            8,
        );
    }
    old
}
