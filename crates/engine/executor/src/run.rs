//! The loop: who runs, until when, and what to do when it comes back.

use crate::Executor;
use std::time::Instant;
use verdict_cache::{Entrance, GuestCode};
use verdict_cpu::{Context, ExitReason, Gpr, read_gs_base, write_gs_base};
use verdict_explore::Situation;
use verdict_kernel::{ForkRequest, Idle, Journal, Outcome, Role};
use verdict_protocol::Deadlock;
use verdict_schedule::{Decision, DecisionPoint, Next, NextAccess, Reason};
use verdict_translate::{Chaining, TranslateError};

/// Longest slice: how late the guest may notice a signal from outside.
const SLICE_MAX: u64 = 1 << 20;

/// When a program has run so many instructions, it is expected to run many more.
const STARTED: u64 = 1 << 28;
/// So many instructions of a program are looked at more often, to see which links between blocks are followed most.
const LEARNING: u64 = 1 << 28;
/// How often that is.
const SAMPLED: u64 = 1 << 17;

/// System calls of locks: whether they are made depends on what other threads have done before.
const BY_CHANCE: [i64; 1] = [libc::SYS_futex];

/// Where a slice may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SliceEnd {
    /// At its last instruction.
    Exact,
    /// Before the block that does not fit any more.
    AtBlock,
}

/// Why a slice ended.
enum Slice {
    /// Its instructions are used up.
    Done,
    Syscall,
    Emulate,
    Fault,
    /// The next instruction cannot be fetched.
    Fetch(u64),
    /// The next instruction is watched.
    Watch,
}

impl Executor {
    /// Runs the guest to its end.
    pub(crate) fn run(&mut self) -> ! {
        if self.is_server() {
            self.serve();
        }
        loop {
            if self.explore.is_some() {
                self.check_copy();
                if self.is_moment() {
                    self.serve();
                }
            }
            self.stop_if_asked();
            let outcome = if self.kernel.thread().call.is_some() {
                self.in_kernel(|executor| executor.kernel.attempt_call())
            } else if self.kernel.has_pending_signals() {
                self.signals += 1;
                match self.kernel.deliver_signals() {
                    Outcome::Continue => self.step(),
                    other => other,
                }
            } else {
                self.step()
            };
            self.settle(outcome);
        }
    }

    /// One slice of the current thread and what it asked for at its end.
    fn step(&mut self) -> Outcome {
        let slice = self.slice();
        self.heartbeat.beat();
        match slice {
            Slice::Done => self.slice_over(),
            Slice::Syscall => {
                let registers = &mut self.kernel.thread().registers;
                registers.set(Gpr::Rcx, registers.rip);
                registers.set(Gpr::R11, registers.rflags);
                self.last_call = self.kernel.thread().registers.get(Gpr::Rax);
                self.call_begins();
                let (caller, threads) = (self.kernel.current, self.kernel.threads.len());
                let outcome = self.in_kernel(|executor| executor.kernel.begin_call());
                self.call_returned(caller, threads);
                self.after_call(outcome)
            }
            Slice::Emulate => self.emulate(),
            Slice::Fault => self.handle_fault(),
            Slice::Fetch(address) => self.fetch_fault(address),
            Slice::Watch => self.at_watched(),
        }
    }

    fn in_kernel(&mut self, call: impl FnOnce(&mut Executor) -> Outcome) -> Outcome {
        let before = self.config.stats.then(Instant::now);
        self.heartbeat.set_blocked(true);
        let outcome = call(self);
        self.heartbeat.set_blocked(false);
        if self.explore.is_some() {
            self.note_writer();
        }
        if let Some(before) = before {
            self.times.kernel_ns += before.elapsed().as_nanos() as u64;
        }
        outcome
    }

    /// A system call is an occasion to switch.
    fn after_call(&mut self, outcome: Outcome) -> Outcome {
        let passes = self.watch.calls.is_passing(self.kernel.current);
        if matches!(outcome, Outcome::Continue) && self.kernel.threads.len() > 1 {
            // When the last turn was over, others may have been let go on; a replay has no such turns.
            self.kernel.expire_waits();
            self.interrupt_waits();
            if !passes {
                self.decide(Reason::SystemCall);
            }
        }
        outcome
    }

    /// Acts on what the kernel said.
    fn settle(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Continue => {}
            Outcome::Blocked => self.reschedule(Reason::Blocked),
            Outcome::ThreadExited => {
                self.thread_ended();
                self.reschedule(Reason::Exited);
            }
            Outcome::Yielded => self.reschedule(Reason::Yielded),
            Outcome::Exited(status) => self.exited(status),
            Outcome::Killed(info) => self.killed(&info),
            Outcome::Refused(message) => self.refused(message),
            // Nobody could let it go on.
            Outcome::Stopped if self.kernel.journal.is_replay() || self.kernel.world.is_some() => {}
            Outcome::Stopped => {
                // SAFETY: stops this process until SIGCONT, as the guest would be.
                unsafe { libc::raise(libc::SIGSTOP) };
            }
            Outcome::Exec(request) => self.exec(&request),
            Outcome::Fork(request) => self.fork(&request),
            Outcome::Vfork { pid, stack } => match self.kernel.journal {
                Journal::Live => self.vfork(pid, stack),
                Journal::Record(_) => self.recorded_vfork(&ForkRequest {
                    pid,
                    stack,
                    child_tid: 0,
                }),
                Journal::Replay(_) => self.replay_fork(),
            },
            Outcome::ReplayOver => self.replay_over(),
        }
    }

    /// The slice ran out: the turn, a timer, or just the longest slice.
    fn slice_over(&mut self) -> Outcome {
        self.kernel.take_host_signals();
        self.kernel.fire_timers();
        self.keep_recording();
        if self.kernel.journal.is_replay() {
            if self.is_preempted() {
                self.reschedule(Reason::QuantumEnd);
            }
        } else if self.turn == 0 && !self.alone {
            self.reschedule(Reason::QuantumEnd);
        }
        Outcome::Continue
    }

    // ---- scheduling ----

    /// Finds a thread that can run, however long it takes, and makes it the current one.
    fn reschedule(&mut self, reason: Reason) {
        loop {
            self.wake_up();
            if self
                .kernel
                .threads
                .iter()
                .any(|thread| thread.is_runnable())
            {
                return self.decide(reason);
            }
            let before = Instant::now();
            self.heartbeat.set_blocked(true);
            let idle = self.kernel.idle();
            match idle {
                Idle::Progress => {}
                Idle::Deadlock if self.kernel.world.is_some() => {
                    let threads = self.standing_threads();
                    self.finish(verdict_protocol::Outcome::Deadlock(Deadlock { threads }));
                }
                Idle::Deadlock => {
                    self.tell_deadlock();
                    self.kernel.wait_for_signal();
                }
                Idle::ReplayOver if self.ends_in_deadlock() => {
                    let threads = self.standing_threads();
                    self.finish(verdict_protocol::Outcome::Deadlock(Deadlock { threads }));
                }
                Idle::ReplayOver => self.replay_over(),
            }
            self.heartbeat.set_blocked(false);
            self.times.wait_ns += before.elapsed().as_nanos() as u64;
        }
    }

    /// Ends waits that are over and interrupts those that a signal interrupts.
    pub(crate) fn wake_up(&mut self) {
        loop {
            let outside = self.kernel.look_outside();
            if outside.signals {
                self.kernel.take_host_signals();
            }
            self.kernel.fire_timers();
            self.kernel.expire_waits();
            self.kernel.wake_by(&outside);
            self.interrupt_waits();
            // While everybody waited, the outside may have done several things one after the other.
            if !self.kernel.replay_wakes_more() {
                return;
            }
        }
    }

    /// Lets those go on who wait and have a signal to take.
    fn interrupt_waits(&mut self) {
        self.kernel.wake_signal_waiters();
        let current = self.kernel.current;
        for index in self.kernel.waiting_with_signals() {
            self.kernel.current = index;
            self.signals += 1;
            match self.kernel.interrupt_wait() {
                Outcome::Continue | Outcome::Blocked | Outcome::Yielded => {}
                other => self.settle(other),
            }
        }
        self.kernel.current = current;
    }

    fn tell_deadlock(&mut self) {
        if !std::mem::replace(&mut self.deadlock_told, true) {
            eprintln!(
                "verdict: all {} threads of the guest wait and nothing in it can wake them; end it with Ctrl-C",
                self.kernel.live_threads()
            );
        }
    }

    pub(crate) fn decide(&mut self, reason: Reason) {
        if self.kernel.journal.is_replay() {
            let current = self.kernel.current;
            self.follow_schedule();
            // A copy that follows the recording notes what it comes by, once.
            if reason == Reason::Watched && self.is_copy() && self.kernel.current == current {
                self.about_to_do();
            }
            return;
        }
        if reason == Reason::Watched {
            let (pc, accesses) = self.about_to_do();
            return self.decide_before(pc, &accesses);
        }
        self.decide_at(reason, None);
    }

    /// The current thread is about to access memory at a watched place.
    pub(crate) fn decide_before(&mut self, pc: u64, accesses: &[NextAccess]) {
        if self.kernel.journal.is_replay() {
            return self.follow_schedule();
        }
        self.decide_at(Reason::Watched, Some(Next { pc, accesses }));
    }

    fn decide_at(&mut self, reason: Reason, next: Option<Next<'_>>) {
        loop {
            match self.ask_scheduler(reason, next) {
                Decision::Continue => return,
                Decision::Run {
                    thread,
                    instructions_max,
                } => {
                    self.turn = instructions_max;
                    if thread.0 as usize != self.kernel.current {
                        self.note_preemption(reason);
                        self.note_switch(thread.0, reason);
                    }
                    return self.switch_to(thread.0 as usize);
                }
                Decision::Wait => {
                    self.kernel.skip_to_deadline();
                    self.wake_up();
                }
            }
        }
    }

    fn ask_scheduler(&mut self, reason: Reason, next: Option<Next<'_>>) -> Decision {
        let runnable = self.kernel.runnable();
        let current = self.kernel.threads[self.kernel.current].id;
        let point = DecisionPoint {
            reason,
            current: Some(current),
            runnable: &runnable,
            retired: self.kernel.retired,
            next,
        };
        let waits = matches!(reason, Reason::Blocked) && self.scheduler.segments().is_some();
        let owner = match waits {
            true => self.kernel.describe_wait(self.kernel.current).owner,
            false => None,
        };
        let registers = &self.kernel.threads[self.kernel.current].registers;
        self.scheduler.tell(Situation {
            pc: registers.rip,
            sp: registers.get(Gpr::Rsp),
            sleepers: self.kernel.has_sleepers(),
            owner,
            by_chance: BY_CHANCE.contains(&(self.last_call as i64)),
        });
        let decision = self.scheduler.decide(&point);
        self.after_decision(reason);
        decision
    }

    pub(crate) fn switch_to(&mut self, thread: usize) {
        if thread != self.kernel.current {
            self.switches += 1;
            let event = (thread as u64) << 48 ^ self.kernel.retired;
            self.switches_hash = (self.switches_hash ^ event)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(31);
        }
        self.kernel.current = thread;
    }

    // ---- running ----

    /// Runs the current thread until something needs the engine.
    fn slice(&mut self) -> Slice {
        for range in self.kernel.memory.take_stale() {
            self.cache.invalidate(range.start, range.end);
        }
        if self.kernel.journal.is_replay() {
            self.replay_withheld();
        }
        self.see_to_part();
        let (budget, end) = self.slice_budget();
        // Where accesses are sifted, most of a path is ways out: long ones take memory and no less time.
        if self.kernel.retired > STARTED && self.passed.is_none() {
            self.cache.follow_long_paths();
        }
        if !self.alone {
            // Turns end often, and at exactly some instruction.
            self.cache.charge_every_link();
        }
        if budget == 0 {
            return Slice::Done;
        }
        if self.kernel.journal.is_replay() {
            self.kernel.replay_memory();
        }
        self.thread_resumes();
        self.load_thread();
        self.context().budget = -self.cache.budget_reserve();
        self.beyond = budget;
        let before = self.config.stats.then(Instant::now);
        let translated = self.times.translate_ns;
        let slice = self.run_blocks(end);
        if let Some(before) = before {
            let spent = before.elapsed().as_nanos() as u64;
            self.times.guest_ns += spent.saturating_sub(self.times.translate_ns - translated);
        }
        let retired = self.store_thread(budget);
        self.thread_paused(self.loaded);
        if let (Some(passed), false) = (&mut self.passed, matches!(slice, Slice::Done)) {
            passed.served(self.loaded);
        }
        if !self.alone {
            self.turn = self.turn.saturating_sub(retired);
        }
        slice
    }

    /// How long the current thread may run, and whether it must stop at exactly that instruction.
    ///
    /// Only what the guest can notice needs an exact end: a switch, a timer. How late a signal from
    /// outside may be ends a slice at a block's boundary, since where does not matter.
    fn slice_budget(&mut self) -> (u64, SliceEnd) {
        self.alone = self.kernel.is_alone();
        let replay = self.kernel.journal.is_replay();
        let mut exact = if self.alone || replay {
            u64::MAX
        } else {
            self.turn.max(1)
        };
        if let Some(timer) = self.kernel.next_timer() {
            exact = exact.min(timer.saturating_sub(self.kernel.now()).max(1));
        }
        if let Some(stop) = self.recorded_stop(SLICE_MAX) {
            exact = exact.min(stop);
        }
        if let Some(stop) = self.explore_stop() {
            exact = exact.min(stop);
        }
        if let Some(stop) = self.until_stop() {
            exact = exact.min(stop);
        }
        if let Some(stop) = self.part_stop() {
            exact = exact.min(stop);
        }
        if exact <= SLICE_MAX {
            (exact, SliceEnd::Exact)
        } else {
            (SLICE_MAX, SliceEnd::AtBlock)
        }
    }

    /// Puts the current thread's registers into the context.
    fn load_thread(&mut self) {
        let current = self.kernel.current;
        let registers = self.kernel.threads[current].registers.clone();
        let area = self.kernel.threads[current].vectors.address();
        let log_start = self.log.as_ref().map(|log| log.start());
        let context = self.context();
        context.gpr = registers.gpr;
        context.rip = registers.rip;
        context.rflags = registers.rflags;
        context.guest_fs = registers.fs_base;
        context.xsave_area = area;
        if let Some(start) = log_start {
            context.log_next = start;
        }
        write_gs_base(self.gs_base_for(registers.gs_base));
        self.loaded = current;
        self.sieve_resumes();
    }

    /// Takes the registers back and counts what was retired.
    fn store_thread(&mut self, budget: u64) -> u64 {
        self.drain_log();
        let (beyond, reserve) = (self.beyond, self.cache.budget_reserve());
        let context = self.context();
        if context.canary != Context::CANARY {
            self.engine_fault("the guest wrote over the engine's memory");
        }
        let left = u64::try_from(context.budget + reserve).unwrap_or(0) + beyond;
        let (gpr, rip, rflags, fs_base) =
            (context.gpr, context.rip, context.rflags, context.guest_fs);
        let retired = budget - left.min(budget);
        let has_own_gs_base = self.has_own_gs_base();
        let thread = &mut self.kernel.threads[self.loaded];
        thread.registers.gpr = gpr;
        thread.registers.rip = rip;
        thread.registers.rflags = rflags;
        thread.registers.fs_base = fs_base;
        if has_own_gs_base {
            thread.registers.gs_base = read_gs_base();
        }
        thread.retired += retired;
        self.kernel.retired += retired;
        retired
    }

    fn drain_log(&mut self) {
        self.tell_passed();
        let next = self.context().log_next;
        let thread = &self.kernel.threads[self.loaded];
        let (thread, fs_base) = (thread.id.0, thread.registers.fs_base);
        let tells = self.kernel.role == Role::Main;
        if let Some(log) = &mut self.log {
            if let (Some(events), true) = (&mut self.events, tells) {
                events.log(thread, (fs_base, read_gs_base()), log.bytes(next));
            }
            log.drain(next, thread, &self.cache);
            let start = log.start();
            self.context().log_next = start;
        }
    }

    fn run_blocks(&mut self, end: SliceEnd) -> Slice {
        loop {
            let reserve = self.cache.budget_reserve();
            if self.left() < reserve {
                self.stretch();
            }
            let left = self.left();
            if left <= 0 {
                return Slice::Done;
            }
            let pc = self.context().rip;
            let entry = if let Some(instructions) = self.steps_alone(pc) {
                self.one_off(pc, instructions.min(left as u32))
            } else if self.cache.is_watched(pc) || self.watch.calls.is_inside(self.loaded) {
                return Slice::Watch;
            } else if left >= reserve {
                self.context().budget = left - reserve;
                self.block(pc, Entrance::Direct)
            } else if end == SliceEnd::AtBlock {
                return Slice::Done;
            } else if let Some(host) = self.block_within(pc, left) {
                // The budget is negative: the block comes back wherever it is left.
                self.context().budget = left - reserve;
                Ok(host)
            } else {
                self.one_off(pc, left as u32)
            };
            let host = match entry {
                Ok(host) => host,
                Err(TranslateError::Fetch { address }) => return Slice::Fetch(address),
            };
            self.enter(host);
            let Some(reason) = ExitReason::from_raw(self.context().exit_reason) else {
                self.engine_fault("the guest wrote over the engine's memory");
            };
            match reason {
                ExitReason::Syscall => return Slice::Syscall,
                ExitReason::Emulate => return Slice::Emulate,
                ExitReason::Fault => return Slice::Fault,
                ExitReason::Link => self.follow_link(),
                ExitReason::Indirect => self.follow_indirect(),
                ExitReason::Missed => {
                    let context = self.context();
                    context.rip = context.target;
                    let name = context.exit_arg;
                    self.cache.missed(name);
                }
                ExitReason::OneOff | ExitReason::Budget | ExitReason::Watch => {}
            }
        }
    }

    /// Instructions that the slice has left.
    fn left(&mut self) -> i64 {
        self.context().budget + self.cache.budget_reserve()
    }

    /// Lets as much of the slice run as the log has room for.
    fn stretch(&mut self) {
        if self.beyond == 0 {
            return;
        }
        self.drain_log();
        let reserve = self.cache.budget_reserve();
        let log = self.log.as_ref();
        let unlogged = match self.kernel.retired {
            ..LEARNING => SAMPLED,
            _ => u64::MAX,
        };
        let passed = self.passed.as_ref();
        let room = log
            .map(|log| log.stretch_max(reserve))
            .or(passed.map(|passed| passed.stretch_max(reserve)))
            .unwrap_or(unlogged);
        let left = self.left();
        let more = self.beyond.min(room);
        self.beyond -= more;
        self.context().budget = left + more as i64 - reserve;
    }

    /// The host code of the block at `pc`, if there is one that runs at most so many instructions before it checks.
    fn block_within(&self, pc: u64, instructions: i64) -> Option<u64> {
        if self.cache.chaining() == Chaining::Carried {
            return None;
        }
        let block = self.cache.lookup(pc)?;
        let fits = i64::from(self.cache.instructions(block)) <= instructions;
        fits.then(|| self.cache.host_address(block))
    }

    fn enter(&mut self, host: u64) {
        self.in_guest = true;
        // SAFETY: `host` was published by the code cache; the context was completed by `setup` and `load_thread`.
        unsafe { verdict_cpu::enter_translated(host) };
        self.in_guest = false;
    }

    /// The host code of the block at `pc`, made if need be.
    fn block(&mut self, pc: u64, entrance: Entrance) -> Result<u64, TranslateError> {
        if let Some(block) = self.cache.lookup(pc) {
            return Ok(self.cache.host_address(block));
        }
        let before = self.config.stats.then(Instant::now);
        if self.cache.is_full() {
            self.drain_log();
        }
        let registers = self.context().gpr;
        let memory = &self.kernel.memory;
        let guest = GuestCode {
            fetch: &|address, buffer| fetch(memory, address, buffer),
            read_word: &|address| memory.read_u64(address).ok(),
            constant_word: &|address| memory.constant_u64(address),
            registers: &registers,
        };
        let block = self.cache.insert(pc, entrance, &guest)?;
        self.see_to_gs();
        if let Some(events) = &mut self.events {
            events.block(&self.cache, block);
            // Here only hashes of the log would need it, which are not asked for where the log is told.
            self.cache.forget_logged(block);
        }
        for page in self.cache.guest_pages(block) {
            self.kernel.memory.watch(page);
        }
        if let Some(before) = before {
            self.times.translate_ns += before.elapsed().as_nanos() as u64;
        }
        Ok(self.cache.host_address(block))
    }

    /// Host code for exactly so many instructions at `pc`; the budget is charged here.
    fn one_off(&mut self, pc: u64, instructions: u32) -> Result<u64, TranslateError> {
        // The log of an earlier one-off block refers to code that is about to be replaced.
        self.drain_log();
        let registers = self.context().gpr;
        let memory = &self.kernel.memory;
        let guest = GuestCode {
            fetch: &|address, buffer| fetch(memory, address, buffer),
            read_word: &|_| None,
            constant_word: &|_| None,
            registers: &registers,
        };
        let made = self.cache.one_off(pc, instructions, &guest)?;
        self.see_to_gs();
        if let Some(events) = &mut self.events {
            events.one_off(&self.cache);
        }
        self.context().budget -= i64::from(made.instructions);
        Ok(made.host)
    }

    /// Links the branch that was taken to its target's block, and goes there.
    fn follow_link(&mut self) {
        let link = self.context().exit_arg as u32;
        let Some(target) = self.cache.link_target(link) else {
            self.engine_fault("a branch that is not the cache's");
        };
        self.context().rip = target;
        if !self.cache.first_use(link) {
            return;
        }
        let flushes = self.cache.stats().flushes;
        if self.block(target, Entrance::Link(link)).is_ok() && self.cache.stats().flushes == flushes
        {
            let block = self.cache.lookup(target).expect("just made");
            self.cache.link(link, block);
        }
    }

    /// Makes the target of an indirect branch known to the tables, and goes there.
    fn follow_indirect(&mut self) {
        let target = self.context().target;
        self.context().rip = target;
        if self.block(target, Entrance::Indirect).is_ok() {
            let block = self.cache.lookup(target).expect("just made");
            self.cache.make_indirect(block);
        }
    }
}

/// Reads guest code for the translator.
fn fetch(memory: &verdict_kernel::Memory, address: u64, buffer: &mut [u8]) -> usize {
    let len = memory.executable_len(address, buffer.len() as u64) as usize;
    if memory.read(address, &mut buffer[..len]).is_ok() {
        len
    } else {
        0
    }
}
