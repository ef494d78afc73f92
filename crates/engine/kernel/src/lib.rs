//! The guest's operating system: memory, threads, signals, time, and the system calls over them.
//!
//! The kernel owns every virtual thread and decides what a system call does; the executor owns the CPU and the
//! code cache and decides when to ask. All that the guest can observe passes here: what is deterministic is
//! computed, what is not comes from the host through one of the calls in [`syscalls`].

mod futex;
mod idle;
mod journal;
mod memory;
mod procfs;
mod signals;
mod syscalls;
mod thread;
mod time;
mod timers;
mod waits;
mod world;

pub use idle::Idle;
pub use journal::{Divergence, Journal, Recorder, ReplayEnd, Replayer, attached_file};
pub use memory::{MapRequest, Mapping, Memory, Prot, SysResult, is_guest_range};
pub use signals::{Action, AltStack, DefaultAction, SignalInfo, bit, default_action};
pub use syscalls::{
    Buffer, Direction, Policy, SyscallEntry, buffers as syscall_buffers, name as syscall_name,
    table as syscall_table,
};
pub use thread::{Call, Registers, State, Thread, VectorState, Wait};
pub use time::{Clock, ClockMode, SECOND_NS};
pub use waits::WaitDescription;
pub use world::{
    AfterInput, Answer, Arrived, Effect, Env, GuestBuffer, GuestMemory, Input, OutputMode,
    PrivatePolicy, Said, Stream, Transcript, WaitSet, World, WorldMode, WorldSetup, private_policy,
};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use timers::Timers;
use verdict_cpu::Gpr;
use verdict_events::ThreadId;
use verdict_schedule::SplitMix;

/// The guest's own process id, and its first thread's. Above every pid that Linux can give out, so that a pid that
/// leaves the guest can never hit a real process.
pub const FIRST_PID: i32 = 5_000_000;
/// What `getppid` answers in the program the user named.
pub const PARENT_PID: i32 = FIRST_PID - 1;
/// Descriptors from here on belong to the engine.
pub const ENGINE_FD_START: i32 = 1000;
/// Descriptors below this and from [`ENGINE_FD_START`] on belong to the engine.
pub const ENGINE_FD_END: i32 = 1024;

/// Descriptors that a program can be started with are looked for below this.
const INHERITED_FD_END: i32 = 64;

/// How a system call goes on.
#[derive(Debug)]
pub(crate) enum Flow {
    /// It returns this value.
    Return(i64),
    /// It waits; what it returns is decided when the wait ends.
    Block(Wait),
    /// Registers are already as they should be.
    Resume,
    /// The thread offers the processor and then returns 0.
    Yield,
    /// The thread ends.
    ExitThread,
    /// The process ends with this status.
    ExitProcess(i32),
    /// The engine cannot do this.
    Refuse(String),
    /// The program is replaced under the engine.
    Exec(ExecRequest),
    /// A child process with a copy of everything.
    Fork(ForkRequest),
    /// A child is to run in this memory while the thread waits.
    Vfork { pid: i32, stack: u64 },
    /// The recording has no answer: the replay is over.
    ReplayOver,
}

impl Flow {
    fn error(errno: i32) -> Flow {
        Flow::Return(-i64::from(errno))
    }
}

impl From<SysResult> for Flow {
    fn from(result: SysResult) -> Flow {
        Flow::Return(result.unwrap_or_else(|errno| -i64::from(errno)))
    }
}

impl From<Result<Flow, i32>> for Flow {
    fn from(result: Result<Flow, i32>) -> Flow {
        result.unwrap_or_else(Flow::error)
    }
}

/// A program that takes the place of the current one.
#[derive(Clone, Debug)]
pub struct ExecRequest {
    /// Path as the guest gave it.
    pub path: Vec<u8>,
    /// Arguments.
    pub argv: Vec<Vec<u8>>,
    /// Environment.
    pub env: Vec<Vec<u8>>,
}

/// What the executor has to do after a system call or a signal.
#[derive(Debug)]
pub enum Outcome {
    /// The thread goes on.
    Continue,
    /// The thread waits.
    Blocked,
    /// The thread offers the processor.
    Yielded,
    /// The thread is gone.
    ThreadExited,
    /// The process ends.
    Exited(i32),
    /// The process is killed by a signal.
    Killed(SignalInfo),
    /// The process is to stop until SIGCONT.
    Stopped,
    /// The engine cannot go on.
    Refused(String),
    /// The program is replaced.
    Exec(ExecRequest),
    /// The process is to be forked.
    Fork(ForkRequest),
    /// A child with this virtual pid (and stack, unless 0) runs in this memory until it executes or ends.
    Vfork {
        /// Its pid.
        pid: i32,
        /// Its stack pointer; 0 to keep the parent's.
        stack: u64,
    },
    /// The recording that is followed has no more, or something else: see [`Replayer`].
    ReplayOver,
}

/// A child process to be made.
#[derive(Clone, Copy, Debug)]
pub struct ForkRequest {
    /// Its virtual pid.
    pub pid: i32,
    /// Its stack pointer; 0 to keep the parent's.
    pub stack: u64,
    /// Where the child stores its tid; 0 for nowhere.
    pub child_tid: u64,
}

/// Which side of a fork this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ForkSide {
    Parent,
    Child,
}

/// Who this process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The program the user named: it reports.
    Main,
    /// A child that the guest forked: it ends as a native process would.
    ForkedChild,
    /// A child that shares its parent's memory until it executes something.
    VforkChild,
}

/// How the guest's world is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which time it sees.
    pub clock: ClockMode,
    /// Seed of all randomness it sees.
    pub seed: u64,
    /// Children stay under the engine when they execute something.
    pub follow_children: bool,
    /// Size of the vector state on this host.
    pub vector_len: usize,
    /// State components saved.
    pub vector_mask: u64,
    /// The program's path, for `/proc/self/exe`.
    pub program: PathBuf,
    /// Its arguments, for `/proc/self/cmdline`.
    pub argv: Vec<Vec<u8>>,
    /// The personality to give to native children.
    pub personality: u64,
    /// Where its files and connections are.
    pub world: WorldMode,
}

/// The guest's operating system.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Address space.
    pub memory: Memory,
    /// All threads ever, by id.
    pub threads: Vec<Thread>,
    /// Sequence numbers of waits, by thread.
    wait_started: Vec<u64>,
    waits: u64,
    /// Who runs.
    pub current: usize,
    /// Clocks.
    pub clock: Clock,
    /// Instructions retired by all threads.
    pub retired: u64,
    /// Dispositions, by signal number minus one.
    pub actions: [Action; signals::SIGNALS],
    process_pending: VecDeque<SignalInfo>,
    timers: Timers,
    /// Virtual pid.
    pub pid: i32,
    /// Virtual pid of the process that made this one.
    parent_pid: i32,
    next_tid: i32,
    /// Virtual pid -> real pid of children.
    children: BTreeMap<i32, i32>,
    random: SplitMix,
    /// What `/dev/urandom` gives: a source of its own, since its answers are recorded and others are not.
    device_random: SplitMix,
    /// Setup.
    pub options: Options,
    /// Who this process is.
    pub role: Role,
    /// Where the environment strings lie that the program was started with.
    pub environment: std::ops::Range<u64>,
    /// System calls by number.
    pub calls: BTreeMap<u64, u64>,
    signal_fd: i32,
    /// What the descriptors that the guest was started with lead to, as (device, inode).
    inherited: BTreeSet<(u64, u64)>,
    /// Descriptors of `/dev/urandom` and `/dev/random`.
    random_descriptors: BTreeSet<i32>,
    /// Descriptors that were sockets when last heard of.
    sockets: BTreeSet<i32>,
    /// Whether the outside is recorded or replayed.
    pub journal: Journal,
    /// The guest's own files and connections, if it must not touch the host's.
    pub world: Option<Box<World>>,
    /// While a recording is followed: the world that the guest would go on in if it left the recording here.
    pub(crate) following: Option<Box<World>>,
}

impl Kernel {
    /// A guest with one thread. `signal_fd` delivers the host's asynchronous signals.
    pub fn new(options: Options, registers: Registers, signal_fd: i32) -> Self {
        let first = Thread::first(FIRST_PID, registers, options.vector_len);
        let mut kernel = Kernel {
            memory: Memory::new(),
            threads: vec![first],
            wait_started: vec![0],
            waits: 0,
            current: 0,
            clock: Clock::new(options.clock),
            retired: 0,
            actions: [Action::default(); signals::SIGNALS],
            process_pending: VecDeque::new(),
            timers: Timers::default(),
            pid: FIRST_PID,
            parent_pid: PARENT_PID,
            next_tid: FIRST_PID + 1,
            children: BTreeMap::new(),
            random: SplitMix::new(options.seed ^ 0x5eed_0f7e_5700),
            device_random: SplitMix::new(options.seed ^ 0x00de_71ce),
            options,
            role: Role::Main,
            environment: 0..0,
            calls: BTreeMap::new(),
            signal_fd,
            inherited: (0..INHERITED_FD_END)
                .filter_map(syscalls::identity)
                .collect(),
            random_descriptors: BTreeSet::new(),
            sockets: BTreeSet::new(),
            journal: Journal::Live,
            world: None,
            following: None,
        };
        kernel.make_world();
        kernel
    }

    /// Where the host's asynchronous signals come from.
    pub fn signal_descriptor(&self) -> i32 {
        self.signal_fd
    }

    /// The running thread.
    pub fn thread(&mut self) -> &mut Thread {
        &mut self.threads[self.current]
    }

    /// Ids of the threads that can run, ascending.
    pub fn runnable(&self) -> Vec<ThreadId> {
        self.threads
            .iter()
            .filter(|thread| thread.is_runnable())
            .map(|thread| thread.id)
            .collect()
    }

    /// True if no other thread can run or become able to by anything but what the running one does.
    pub fn is_alone(&self) -> bool {
        self.threads.iter().enumerate().all(|(index, thread)| {
            index == self.current
                || match &thread.state {
                    State::Exited => true,
                    State::Runnable => false,
                    State::Waiting(Wait::Futex { deadline, .. }) => deadline.is_none(),
                    State::Waiting(_) => false,
                }
        })
    }

    /// Threads that are not gone.
    pub fn live_threads(&self) -> usize {
        self.threads
            .iter()
            .filter(|thread| !thread.is_exited())
            .count()
    }

    /// CLOCK_MONOTONIC now.
    pub fn now(&self) -> u64 {
        self.clock.monotonic(self.retired)
    }

    /// Random bytes as the guest sees them.
    pub fn random_u64(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Starts the system call that the running thread's registers ask for.
    pub fn begin_call(&mut self) -> Outcome {
        let registers = &self.thread().registers;
        let number = registers.get(Gpr::Rax);
        let args = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::R10, Gpr::R8, Gpr::R9]
            .map(|register| registers.get(register));
        self.thread().call = Some(Call {
            number,
            args,
            deadline: None,
            progress: 0,
            timed_out: false,
        });
        *self.calls.entry(number).or_default() += 1;
        self.attempt_call()
    }

    /// Tries the running thread's system call, for the first time or after a wait.
    pub fn attempt_call(&mut self) -> Outcome {
        let Some(call) = self.thread().call.clone() else {
            return Outcome::Continue;
        };
        let flow = self.dispatch(&call);
        let outcome = match flow {
            Flow::Return(value) => {
                self.restore_mask();
                self.thread().complete(value);
                Outcome::Continue
            }
            Flow::Resume => {
                self.thread().call = None;
                Outcome::Continue
            }
            Flow::Yield => {
                self.thread().complete(0);
                Outcome::Yielded
            }
            Flow::Block(wait) => {
                self.begin_wait(wait);
                Outcome::Blocked
            }
            Flow::ExitThread => {
                self.exit_thread();
                if self.live_threads() == 0 {
                    Outcome::Exited(0)
                } else {
                    Outcome::ThreadExited
                }
            }
            Flow::ExitProcess(status) => Outcome::Exited(status),
            Flow::Refuse(reason) => Outcome::Refused(reason),
            Flow::Exec(request) => Outcome::Exec(request),
            Flow::Fork(request) => Outcome::Fork(request),
            Flow::Vfork { pid, stack } => Outcome::Vfork { pid, stack },
            Flow::ReplayOver => Outcome::ReplayOver,
        };
        match outcome {
            Outcome::Continue | Outcome::Yielded if self.has_pending_signals() => {
                match self.deliver_signals() {
                    Outcome::Continue => outcome,
                    other => other,
                }
            }
            Outcome::Blocked if self.has_pending_signals() => self.interrupt_wait(),
            _ => outcome,
        }
    }

    fn begin_wait(&mut self, wait: Wait) {
        self.waits += 1;
        self.wait_started[self.current] = self.waits;
        let current = self.current;
        if let Some(call) = &mut self.threads[current].call {
            call.deadline = wait.deadline();
        }
        self.threads[current].state = State::Waiting(wait);
    }

    fn exit_thread(&mut self) {
        let current = self.current;
        self.release_thread(current);
        let thread = self.thread();
        thread.state = State::Exited;
        thread.call = None;
        thread.pending.clear();
    }

    /// Ends every other thread (exec, exit_group).
    pub fn exit_other_threads(&mut self) {
        for index in 0..self.threads.len() {
            if index != self.current {
                self.threads[index].state = State::Exited;
            }
        }
    }

    fn restore_mask(&mut self) {
        if let Some(mask) = self.thread().saved_mask.take() {
            self.thread().signal_mask = mask;
        }
    }

    // ---- signals ----

    /// Sends a signal to the process (any thread that does not block it takes it).
    pub fn send_to_process(&mut self, info: SignalInfo) {
        if self.is_discarded(info.signal) {
            return;
        }
        if info.signal < 32
            && self
                .process_pending
                .iter()
                .any(|pending| pending.signal == info.signal)
        {
            return;
        }
        self.process_pending.push_back(info);
    }

    /// Sends a signal to one thread.
    pub fn send_to_thread(&mut self, index: usize, info: SignalInfo) {
        if self.is_discarded(info.signal) && self.threads[index].signal_mask & bit(info.signal) == 0
        {
            return;
        }
        let pending = &mut self.threads[index].pending;
        if info.signal < 32 && pending.iter().any(|pending| pending.signal == info.signal) {
            return;
        }
        pending.push_back(info);
    }

    /// Ignored signals are not even queued, unless blocked (sigwait may want them).
    fn is_discarded(&self, signal: i32) -> bool {
        let action = &self.actions[signal as usize - 1];
        let ignored = action.ignores()
            || action.is_default() && default_action(signal) == DefaultAction::Ignore;
        let wanted = self
            .threads
            .iter()
            .any(|thread| !thread.is_exited() && thread.signal_mask & bit(signal) != 0);
        ignored && !wanted
    }

    /// True if the running thread has a signal to take.
    pub fn has_pending_signals(&self) -> bool {
        self.next_signal(self.current).is_some()
    }

    fn next_signal(&self, index: usize) -> Option<(bool, usize)> {
        let thread = &self.threads[index];
        let free = |info: &SignalInfo| thread.signal_mask & bit(info.signal) == 0;
        if let Some(at) = thread.pending.iter().position(free) {
            return Some((true, at));
        }
        self.process_pending
            .iter()
            .position(free)
            .map(|at| (false, at))
    }

    /// Takes a signal of the set out of the queues, for `sigtimedwait`.
    pub(crate) fn take_signal(&mut self, index: usize, set: u64) -> Option<SignalInfo> {
        let wanted = |info: &SignalInfo| set & bit(info.signal) != 0;
        if let Some(at) = self.threads[index].pending.iter().position(wanted) {
            return self.threads[index].pending.remove(at);
        }
        let at = self.process_pending.iter().position(wanted)?;
        self.process_pending.remove(at)
    }

    /// Delivers what the running thread has pending: pushes handler frames or acts by default.
    pub fn deliver_signals(&mut self) -> Outcome {
        while let Some((own, at)) = self.next_signal(self.current) {
            let current = self.current;
            let taken = if own {
                self.threads[current].pending.remove(at)
            } else {
                self.process_pending.remove(at)
            };
            let info = taken.expect("just found");
            match self.deliver(info) {
                Outcome::Continue => {}
                other => return other,
            }
        }
        self.restore_mask();
        Outcome::Continue
    }

    /// Delivers one signal to the running thread.
    pub fn deliver(&mut self, info: SignalInfo) -> Outcome {
        let slot = info.signal as usize - 1;
        let action = self.actions[slot];
        if action.ignores() && info.fault.is_none() {
            return Outcome::Continue;
        }
        // The kernel kills a process whose fault cannot be handled.
        let unhandled_fault = info.fault.is_some()
            && (action.ignores() || self.thread().signal_mask & bit(info.signal) != 0);
        if action.is_default() || unhandled_fault {
            return match default_action(info.signal) {
                DefaultAction::Ignore => Outcome::Continue,
                DefaultAction::Stop => Outcome::Stopped,
                DefaultAction::Terminate => Outcome::Killed(info),
            };
        }
        if action.flags & libc::SA_RESETHAND as u64 != 0 {
            self.actions[slot] = Action::default();
        }
        let mask = self.options.vector_mask;
        let current = self.current;
        match signals::push_frame(
            &mut self.memory,
            &mut self.threads[current],
            &info,
            &action,
            mask,
        ) {
            Ok(()) => Outcome::Continue,
            Err(_) => Outcome::Killed(SignalInfo::new(libc::SIGSEGV, 0x80)),
        }
    }

    /// The running thread waits and has a signal: the call is interrupted or will be restarted.
    pub fn interrupt_wait(&mut self) -> Outcome {
        let Some((own, at)) = self.next_signal(self.current) else {
            return Outcome::Blocked;
        };
        let current = self.current;
        let signal = if own {
            self.threads[current].pending[at].signal
        } else {
            self.process_pending[at].signal
        };
        let action = self.actions[signal as usize - 1];
        if !action.is_default() && !action.ignores() {
            let restart = action.flags & libc::SA_RESTART as u64 != 0;
            self.abandon_call(restart);
        } else if default_action(signal) == DefaultAction::Ignore || action.ignores() {
            let queue = if own {
                &mut self.threads[current].pending
            } else {
                &mut self.process_pending
            };
            queue.remove(at);
            return Outcome::Blocked;
        }
        self.threads[current].state = State::Runnable;
        match self.deliver_signals() {
            // A stop or a default action left the wait as it was.
            Outcome::Continue if self.threads[current].call.is_some() => self.attempt_call(),
            other => other,
        }
    }

    /// Makes the waiting call return EINTR, or be executed again after the handler.
    fn abandon_call(&mut self, restart: bool) {
        let Some(call) = self.thread().call.take() else {
            return;
        };
        self.tell_time_left(&call);
        let registers = &mut self.thread().registers;
        if restart && syscalls::is_restartable(&call) && call.progress == 0 {
            registers.set(Gpr::Rax, call.number);
            registers.rip -= 2; // length of `syscall`
        } else if call.progress > 0 {
            registers.set(Gpr::Rax, call.progress);
        } else {
            registers.set(Gpr::Rax, -i64::from(libc::EINTR) as u64);
        }
    }

    /// Lets threads in `sigwait` try again if one of their signals has come.
    pub fn wake_signal_waiters(&mut self) {
        for index in 0..self.threads.len() {
            let State::Waiting(Wait::Signal { set, .. }) = &self.threads[index].state else {
                continue;
            };
            let set = *set;
            let came = |info: &SignalInfo| set & bit(info.signal) != 0;
            if self.process_pending.iter().any(came) || self.threads[index].pending.iter().any(came)
            {
                self.threads[index].state = State::Runnable;
            }
        }
    }

    /// Waiting threads that have a signal to take, in order of their ids.
    pub fn waiting_with_signals(&self) -> Vec<usize> {
        if self.process_pending.is_empty()
            && self.threads.iter().all(|thread| thread.pending.is_empty())
        {
            return Vec::new();
        }
        (0..self.threads.len())
            .filter(|index| {
                matches!(self.threads[*index].state, State::Waiting(_))
                    && self.next_signal(*index).is_some()
            })
            .collect()
    }
}
