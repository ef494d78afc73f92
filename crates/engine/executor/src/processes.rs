//! Processes of the guest: children that it forks, and programs that take the place of its own.

use crate::{Executor, setup};
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd};
use verdict_cpu::Gpr;
use verdict_kernel::{ExecRequest, ForkRequest, ForkSide, Role, bit};
use verdict_protocol::{ExecutorConfig, Inherited};

impl Executor {
    /// Forks; the child goes on with a code cache of its own.
    pub(crate) fn fork(&mut self, request: &ForkRequest) {
        if self.kernel.journal.is_replay() {
            return self.replay_fork();
        }
        let call = self.kernel.thread().call.clone();
        let copy = match self.cache.copy_for_child() {
            Ok(copy) => copy,
            Err(_) => return self.kernel.thread().complete(-i64::from(libc::ENOMEM)),
        };
        match self.kernel.fork(request) {
            ForkSide::Child => {
                // The child's copy of what the parent has gathered is not the child's to tell.
                self.events = None;
                if let Err(error) = self.cache.adopt(&copy) {
                    self.refused(error.to_string());
                }
            }
            ForkSide::Parent => {
                let result = self.kernel.thread().registers.get(Gpr::Rax) as i64;
                if let Some(call) = call {
                    self.kernel.note_result(&call, result);
                }
            }
        }
    }

    /// The program is replaced by another one, under the engine.
    pub(crate) fn exec(&mut self, request: &ExecRequest) {
        let check = verdict_loader::Request {
            program: &request.path,
            lookup: verdict_loader::Lookup::Exact,
            argv: &request.argv,
            env: &request.env,
        };
        // A program that was executed then is executed now, from the recording if need be.
        let replayed = self.kernel.journal.is_replay();
        if let (false, Err(error)) = (
            replayed,
            verdict_loader::plan(&check, &setup::image_layout()),
        ) {
            let result = -i64::from(error.errno());
            if let Some(call) = self.kernel.thread().call.clone() {
                self.kernel.note_result(&call, result);
            }
            self.kernel.thread().complete(result);
            return;
        }
        let ignored = self
            .kernel
            .actions
            .iter()
            .enumerate()
            .fold(0, |set, (index, action)| {
                if action.ignores() {
                    set | bit(index as i32 + 1)
                } else {
                    set
                }
            });
        let inherited = Inherited {
            child: self.kernel.role != Role::Main,
            pid: self.kernel.pid,
            signal_mask: self.kernel.thread().signal_mask,
            ignored,
            retired: self.kernel.retired,
            skipped_ns: self.kernel.clock.skipped(),
            started_ns: self.kernel.clock.started_ns(),
        };
        if self.kernel.has_own_world() {
            return self.replace(request, inherited);
        }
        let mode = self.mode_of_next_program();
        let config = ExecutorConfig {
            program: request.path.clone(),
            argv: request.argv.clone(),
            env: request.env.clone(),
            inherited: Some(inherited),
            mode,
            ..self.config.clone()
        };
        let error = self.start_again(&config);
        self.refused(format!("the new program cannot be started: {error}"));
    }

    /// Writes new orders and executes the engine anew; returns only if that fails.
    fn start_again(&mut self, config: &ExecutorConfig) -> std::io::Error {
        if let Some(events) = &mut self.events {
            events.finish();
        }
        // SAFETY: a fresh descriptor that the file owns.
        let orders = unsafe {
            std::fs::File::from_raw_fd(libc::memfd_create(c"verdict-config".as_ptr(), 0))
        };
        if let Err(error) = verdict_protocol::write_config(&orders, config) {
            return std::io::Error::other(error.to_string());
        }
        // SAFETY: plain system calls; exec takes valid NUL-terminated arrays.
        unsafe {
            libc::dup2(orders.as_raw_fd(), self.channel.config);
            drop(orders);
            let recording = config.mode.clone().descriptor_mut().copied();
            let events = self
                .config
                .events
                .map(|events| [events.memory, events.bell]);
            for fd in [
                self.channel.config,
                self.channel.report,
                self.channel.status,
            ]
            .into_iter()
            .chain(recording)
            .chain(events.into_iter().flatten())
            {
                setup::set_close_on_exec(fd, false);
            }
            let numbers = [
                self.channel.config,
                self.channel.report,
                self.channel.status,
            ]
            .map(|fd| fd.to_string());
            let words: Vec<CString> = ["verdict", "__executor"]
                .into_iter()
                .chain(numbers.iter().map(String::as_str))
                .map(|word| CString::new(word).expect("no NUL in words of ours"))
                .collect();
            let argv: Vec<_> = words
                .iter()
                .map(|word| word.as_ptr())
                .chain(std::iter::once(std::ptr::null()))
                .collect();
            let env = [std::ptr::null()];
            libc::execve(c"/proc/self/exe".as_ptr(), argv.as_ptr(), env.as_ptr());
        }
        std::io::Error::last_os_error()
    }

    /// Runs a vfork child in this memory, as this very executor, while the parent process is suspended.
    pub(crate) fn vfork(&mut self, pid: i32, stack: u64) {
        let parent = self.kernel.clone();
        let (turn, loaded) = (self.turn, self.loaded);
        let child = VforkChild {
            executor: self,
            pid,
            stack,
        };
        // SAFETY: `run_vfork_child` never returns, and touches `child` only before the parent continues.
        let real = unsafe { verdict_cpu::vfork(run_vfork_child, (&raw const child) as u64) };
        // The child has changed the same memory: what describes it stays, everything else is the parent's again.
        let memory = std::mem::take(&mut self.kernel.memory);
        self.kernel = parent;
        self.kernel.memory = memory;
        (self.turn, self.loaded) = (turn, loaded);
        self.in_guest = false;
        let result = i32::try_from(real)
            .map_err(|_| libc::EAGAIN)
            .and_then(|real| if real < 0 { Err(-real) } else { Ok(real) });
        self.kernel.vfork_done(pid, result);
    }
}

/// What a vfork child needs to know.
struct VforkChild {
    executor: *mut Executor,
    pid: i32,
    stack: u64,
}

extern "C" fn run_vfork_child(child: u64) -> ! {
    // SAFETY: the parent is suspended inside `vfork` and keeps both alive until this child is gone.
    let (executor, pid, stack) = unsafe {
        let child = &*(child as *const VforkChild);
        (&mut *child.executor, child.pid, child.stack)
    };
    executor.kernel.become_child(pid, Role::VforkChild);
    let thread = executor.kernel.thread();
    thread.complete(0);
    if stack != 0 {
        thread.registers.set(Gpr::Rsp, stack);
    }
    executor.run()
}
