//! The executor: has the guest in its own address space, runs it from its first instruction to its last, and
//! reports how it ended. Expendable: whatever the guest does to it, the controller survives.
//!
//! [`setup`] builds the world, [`run`] is the loop over it, [`fault`] catches what the CPU refuses, [`emulate`]
//! performs what must not run as it is, [`end`] tells the controller.

mod access_log;
mod approach;
mod compare;
mod cpuid;
mod emulate;
mod end;
mod events;
mod explore;
mod fault;
mod halves;
mod hooks;
mod journal;
mod leave;
mod looping;
mod next_access;
mod parts;
mod passed;
mod policy;
mod processes;
mod properties;
mod recording;
mod replace;
mod run;
mod setup;
mod vfork;
mod watch;
mod watched_calls;
mod withhold;

use std::time::Instant;
use verdict_cache::CodeCache;
use verdict_cpu::{Context, layout};
use verdict_kernel::Kernel;
use verdict_protocol::{ExecutorConfig, PartTimes, ReportWriter};
use verdict_reexec::Heartbeat;

pub use verdict_kernel::syscall_name;

/// Descriptors that connect an executor with its controller.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// What to run.
    pub config: i32,
    /// Where the report goes.
    pub report: i32,
    /// The status page.
    pub status: i32,
}

/// Everything an executor owns.
struct Executor {
    config: ExecutorConfig,
    channel: Channel,
    report: ReportWriter,
    heartbeat: Heartbeat,
    kernel: Kernel,
    cache: CodeCache,
    scheduler: policy::Policy,
    /// In a `vfork` child with a memory of its own: where its parent hears what has changed there.
    vfork_parent: Option<std::fs::File>,
    /// Set for an executor that explores.
    explore: Option<explore::Role>,
    log: Option<access_log::AccessLog>,
    /// Set where accesses are sifted.
    passed: Option<passed::Passed>,
    /// Where the run is told.
    events: Option<events::Events>,
    /// Instructions left of the current thread's turn.
    turn: u64,
    /// Nobody else can become able to run while the current thread runs: turns do not matter.
    alone: bool,
    /// Instructions of the slice that are not in the budget yet.
    beyond: u64,
    /// The next instruction runs alone: it writes to a page that holds translated code.
    single_step: bool,
    /// The last system call of anybody, by its number.
    last_call: u64,
    /// Watched instructions and who has been let past.
    watch: watch::WatchState,
    /// What the signal handler saw.
    fault: Option<fault::HostFault>,
    /// The guest has control; faults are its own.
    in_guest: bool,
    switches: u64,
    /// Switches away from a thread that could have gone on.
    preemptions: u64,
    /// The schedule of a copy that has not begun yet.
    approaching: Option<Box<approach::Approaching>>,
    switches_hash: u64,
    signals: u64,
    /// The thread whose gs base and vector area are loaded.
    loaded: usize,
    times: PartTimes,
    started: Instant,
    deadlock_told: bool,
}

impl Executor {
    /// The context that translated code uses.
    fn context(&mut self) -> &mut Context {
        // SAFETY: mapped by `setup` before an executor exists, used by this one thread only.
        unsafe { &mut *(layout::CONTEXT as *mut Context) }
    }
}

/// Runs the guest that the controller asks for. Never returns.
pub fn main(channel: Channel) -> ! {
    match setup::executor(channel) {
        Ok(mut executor) => {
            fault::install(&mut executor);
            executor.run()
        }
        Err(refusal) => end::refuse_to_start(channel, refusal),
    }
}
