//! How an execution ends, and who gets to know.

use crate::{Channel, Executor};
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use verdict_kernel::{Mapping, Role, SignalInfo};
use verdict_protocol::{
    AccessStats, CallStack, EngineFault, GuestFault, MappedModule, Outcome, Refusal, Registers,
    Report, ReportWriter, Stats, ThreadStats, WorldStats,
};

/// Exit status of an executor that has reported.
const REPORTED: i32 = 0;
/// Exit status of an executor that could not even report.
const FAILED: i32 = 3;

/// Tells the controller why nothing was run.
pub(crate) fn refuse_to_start(channel: Channel, message: String) -> ! {
    // SAFETY: the descriptor is the channel's and nobody else uses it.
    let file = unsafe { File::from_raw_fd(channel.report) };
    let outcome = Outcome::Refused(Refusal {
        message,
        call: None,
        place: None,
    });
    let told = ReportWriter::new(file).write(&Report {
        outcome,
        stats: Stats::default(),
    });
    exit_now(if told.is_ok() { REPORTED } else { FAILED })
}

fn exit_now(status: i32) -> ! {
    // SAFETY: ends the process without running anything else, as a guest's exit must.
    unsafe { libc::_exit(status) }
}

impl Executor {
    /// The guest has ended by itself.
    pub(crate) fn exited(&mut self, status: i32) -> ! {
        if self.kernel.role != Role::Main {
            self.tell_vfork_parent();
            exit_now(status);
        }
        self.finish(Outcome::Exited { code: status as u8 })
    }

    /// The guest was killed by a signal.
    pub(crate) fn killed(&mut self, info: &SignalInfo) -> ! {
        if self.kernel.role != Role::Main {
            self.tell_vfork_parent();
            die_by(info.signal);
        }
        let fault = matches!(
            info.signal,
            libc::SIGSEGV
                | libc::SIGBUS
                | libc::SIGFPE
                | libc::SIGILL
                | libc::SIGTRAP
                | libc::SIGABRT
        )
        .then(|| Box::new(self.guest_fault(info)));
        self.finish(Outcome::Signalled {
            signal: info.signal,
            fault,
        })
    }

    /// The engine cannot go on with this guest.
    pub(crate) fn refused(&mut self, message: String) -> ! {
        let call = self
            .kernel
            .thread()
            .call
            .as_ref()
            .map(|call| verdict_kernel::syscall_name(call.number));
        if self.kernel.role != Role::Main {
            let call = call.map(|call| format!("{call}: ")).unwrap_or_default();
            eprintln!("verdict: a child process of the guest cannot go on: {call}{message}");
            exit_now(FAILED);
        }
        let place = Some(Box::new(self.call_stack()));
        self.finish(Outcome::Refused(Refusal {
            message,
            call,
            place,
        }))
    }

    /// The engine is broken, by its own fault or because the guest wrote over it.
    pub(crate) fn engine_fault(&mut self, message: &str) -> ! {
        let guest = self.in_guest.then(|| {
            let info = SignalInfo::new(0, 0);
            Box::new(self.guest_fault(&info))
        });
        if self.kernel.role != Role::Main {
            eprintln!("verdict: engine fault in a child process of the guest: {message}");
            exit_now(FAILED);
        }
        self.finish(Outcome::EngineFault(EngineFault {
            message: message.to_string(),
            guest,
        }))
    }

    pub(crate) fn finish(&mut self, outcome: Outcome) -> ! {
        self.check_properties_at_end(&outcome);
        let outcome = self.close_journal(outcome);
        self.report_and_exit(outcome)
    }

    pub(crate) fn report_and_exit(&mut self, outcome: Outcome) -> ! {
        if let Some(events) = &mut self.events {
            events.finish();
        }
        let stats = self.stats();
        let report = Report { outcome, stats };
        if self.report_copy(&report) {
            exit_now(REPORTED);
        }
        let told = self.report.write(&report);
        exit_now(if told.is_ok() { REPORTED } else { FAILED })
    }

    fn guest_fault(&mut self, info: &SignalInfo) -> GuestFault {
        let thread = self.kernel.thread();
        let (number, instructions) = (thread.id.0, thread.retired);
        GuestFault {
            signal: info.signal,
            code: info.code(),
            address: info.fault.map(|(_, _, address)| address),
            thread: number,
            instructions,
            place: self.call_stack(),
        }
    }

    /// Where the current thread is, with enough of its stack to tell how it came there.
    pub(crate) fn call_stack(&mut self) -> CallStack {
        self.call_stack_of(self.kernel.current)
    }

    /// Files that are mapped to be executed.
    pub(crate) fn executable_modules(&self) -> Vec<MappedModule> {
        let module = |(start, mapping): (u64, &Mapping)| {
            let (path, file_offset) = mapping.file.as_ref()?;
            Some(MappedModule {
                start,
                end: mapping.end,
                file_offset: *file_offset,
                path: path.as_os_str().as_bytes().to_vec(),
            })
        };
        let executable = |(_, mapping): &(u64, &Mapping)| mapping.prot & libc::PROT_EXEC != 0;
        self.kernel
            .memory
            .mappings()
            .filter(executable)
            .filter_map(module)
            .collect()
    }

    /// Where a thread is that does not run.
    pub(crate) fn call_stack_of(&mut self, index: usize) -> CallStack {
        const STACK_MAX: u64 = 64 << 10;
        let thread = &self.kernel.threads[index];
        let registers = Registers {
            general: thread.registers.gpr,
            rip: thread.registers.rip,
            rflags: thread.registers.rflags,
        };
        let sp = thread.registers.get(verdict_cpu::Gpr::Rsp);
        let memory = &self.kernel.memory;
        let there = memory.find(sp).map_or(0, |(_, mapping)| mapping.end - sp);
        let mut stack = vec![0; there.min(STACK_MAX) as usize];
        if memory.read(sp, &mut stack).is_err() {
            stack.clear();
        }
        CallStack {
            registers,
            stack,
            modules: self.executable_modules(),
        }
    }

    fn world_stats(&self) -> Option<WorldStats> {
        const ATTEMPTS_MAX: usize = 20;
        let world = self.kernel.world.as_ref()?;
        let (attempts, held_back) = world.effects();
        Some(WorldStats {
            output_bytes: world.transcript().total(),
            output_hash: world.transcript().hash(),
            held_back,
            attempts: attempts
                .iter()
                .take(ATTEMPTS_MAX)
                .map(ToString::to_string)
                .collect(),
        })
    }

    fn stats(&mut self) -> Stats {
        let cache = self.cache.stats();
        self.times.total_ns = self.started.elapsed().as_nanos() as u64;
        Stats {
            instructions: self.kernel.retired,
            threads: self
                .kernel
                .threads
                .iter()
                .map(|thread| ThreadStats {
                    tid: thread.id.0,
                    instructions: thread.retired,
                })
                .collect(),
            blocks_translated: cache.blocks,
            pages_invalidated: cache.invalidated,
            switches: self.switches,
            switches_hash: self.switches_hash,
            syscalls: self
                .kernel
                .calls
                .iter()
                .map(|(number, count)| (verdict_kernel::syscall_name(*number), *count))
                .collect(),
            signals: self.signals,
            accesses: self.log.as_ref().map(|log| AccessStats {
                logged: log.count,
                hash: log.hashes().then_some(log.hash),
            }),
            watch_stops: self.watch.stops,
            world: self.world_stats(),
            times: self.config.stats.then_some(self.times),
        }
    }
}

/// Ends this process by a signal, as a native one would be.
pub(crate) fn die_by(signal: i32) -> ! {
    // SAFETY: default disposition, unblocked, raised: the process ends here.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let none = 0u64;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null_mut::<u64>(),
            8,
        );
        libc::raise(signal);
    }
    exit_now(128 + signal)
}
