//! An executor that explores: it runs to a moment, stays there, and makes a copy of itself for every order.
//!
//! A copy is a `fork()`: guest, engine and private world together, copied when written to. It gets a scheduler of its
//! own, runs to its end, and leaves a report in a file.

use crate::Executor;
use crate::approach::Approaching;
use crate::leave::Left;
use crate::looping::Looks;
use crate::policy::Policy;
use crate::properties::Properties;
use crate::watched_calls::WatchedCalls;
use crate::withhold::Withheld;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use verdict_explore::{AlternateState, Facing, SegmentsState};
use verdict_kernel::Stream;
use verdict_protocol::{
    Answer, CallStack, Exploration, Moment, Order, Outcome, OutputPiece, OutputPlace, Report,
    RunOrder, RunSchedule, WaitingThread, WatchedStop,
};

/// Longest order.
const ORDER_MAX: usize = 1 << 20;

/// An executor's part in an exploration.
#[derive(Debug)]
pub(crate) enum Role {
    /// It takes orders from this socket and stops at the moment.
    Server { socket: i32, moment: Option<Moment> },
    /// It carries out one order.
    Copy(Copy),
    /// It follows the recording to its end, for what comes from outside.
    Listener(File),
    /// It has a function of the program say whether a property holds.
    Asking {
        /// Instructions of all threads at which it must have.
        limit: u64,
    },
}

/// What a copy has to remember.
#[derive(Debug)]
pub(crate) struct Copy {
    report: File,
    /// Instructions of all threads at which it must end.
    limit: Option<u64>,
    compare_memory: bool,
    pub(crate) properties: Properties,
    /// How the guest has misused memory.
    misuse: Option<String>,
    /// Watched instructions, where they are to be noted.
    stops: Option<Vec<WatchedStop>>,
    stops_max: usize,
    stops_cut: bool,
    /// The byte of output whose writer is asked for, and where it stood once it is written.
    writer_of: Option<OutputPlace>,
    writer: Option<Box<CallStack>>,
    faced: Option<Box<[CallStack; 2]>>,
    /// The same of something that has begun, until it is known whether it will be.
    begun: Option<Box<Begun>>,
    pub(crate) looks: Box<Looks>,
    /// The stacks of the racing threads when they came to their accesses: thread, stack pointer, contents.
    pub(crate) stacks: Vec<(usize, u64, Vec<u8>)>,
}

/// Two threads, and where they stood when something began.
#[derive(Debug)]
struct Begun {
    facing: Facing,
    stacks: Box<[CallStack; 2]>,
}

/// Bytes of output that are told; the hash is of all.
const OUTPUT_MAX: usize = 256 << 10;

impl Executor {
    /// True for the one that takes orders.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.explore, Some(Role::Server { .. }))
    }

    /// True for a copy that carries out an order.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.explore, Some(Role::Copy(_)))
    }

    /// True if the moment that the controller waits for is here.
    pub(crate) fn is_moment(&self) -> bool {
        let Some(Role::Server {
            moment: Some(moment),
            ..
        }) = &self.explore
        else {
            return false;
        };
        match moment {
            Moment::SecondThread => self.kernel.threads.len() > 1,
            Moment::At {
                thread,
                instructions,
            } => {
                let current = &self.kernel.threads[self.kernel.current];
                current.id.0 == *thread
                    && current.retired >= *instructions
                    && current.call.is_none()
            }
            Moment::End => false,
        }
    }

    /// Instructions until the current thread must be looked at again for the exploration's sake.
    pub(crate) fn explore_stop(&self) -> Option<u64> {
        let current = &self.kernel.threads[self.kernel.current];
        let until = |count: u64| count.saturating_sub(current.retired);
        match self.explore.as_ref()? {
            Role::Server {
                moment:
                    Some(Moment::At {
                        thread,
                        instructions,
                    }),
                ..
            } if current.id.0 == *thread => Some(until(*instructions)),
            Role::Server { .. } | Role::Listener(_) | Role::Asking { .. } => None,
            Role::Copy(_) if self.steps_singly() => Some(1),
            Role::Copy(copy) => {
                let limit = copy.limit?;
                Some(limit.saturating_sub(self.kernel.retired))
            }
        }
    }

    /// Ends a copy that has done what it was made for.
    pub(crate) fn check_copy(&mut self) {
        if let Some(Role::Asking { limit }) = self.explore
            && self.kernel.retired >= limit
        {
            self.give_no_answer();
        }
        let Some(Role::Copy(copy)) = &self.explore else {
            return;
        };
        if copy.limit.is_some_and(|limit| self.kernel.retired >= limit) {
            let threads = self.standing_threads();
            self.finish(Outcome::LimitReached { threads });
        }
        if self.look_at_loops() {
            let threads = self.standing_threads();
            self.finish(if self.scheduler.held().is_some() {
                Outcome::NotEnforced { threads }
            } else {
                Outcome::LimitReached { threads }
            });
        }
    }

    pub(crate) fn looks(&self) -> Option<&Looks> {
        match &self.explore {
            Some(Role::Copy(copy)) if self.scheduler.looks_for_something() => Some(&copy.looks),
            _ => None,
        }
    }

    pub(crate) fn looks_mut(&mut self) -> Option<&mut Looks> {
        match &mut self.explore {
            Some(Role::Copy(copy)) if self.scheduler.looks_for_something() => Some(&mut copy.looks),
            _ => None,
        }
    }

    /// Takes orders until one lets the execution go on.
    pub(crate) fn serve(&mut self) {
        let instructions = self.kernel.retired;
        self.answer(&Answer::Reached { instructions });
        self.heartbeat.set_blocked(true);
        // Copies compare their memory with this one's.
        // SAFETY: lets processes of the same user look; changes nothing else.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
        let mut copies: Vec<(i32, u64)> = Vec::new();
        loop {
            self.collect(&mut copies);
            match self.next_order() {
                Some(Order::Advance(moment)) => {
                    if let Some(Role::Server { moment: wanted, .. }) = &mut self.explore {
                        *wanted = Some(moment);
                    }
                    if !self.is_moment() {
                        self.heartbeat.set_blocked(false);
                        return;
                    }
                    self.answer(&Answer::Reached { instructions });
                }
                Some(Order::Run(order)) => match self.copy(&order) {
                    Ok(0) => {
                        self.become_copy(&order);
                        return;
                    }
                    Ok(pid) => copies.push((pid, order.id)),
                    Err(why) => self.answer(&Answer::Failed { id: order.id, why }),
                },
                Some(Order::Leave { input, recording }) => {
                    match self.leave(input, recording.as_deref()) {
                        Ok(Left::Here) => self.answer(&Answer::Left { failure: None }),
                        Ok(Left::Listening) => return,
                        Err(why) => self.answer(&Answer::Left { failure: Some(why) }),
                    }
                }
                Some(Order::Kill { id }) => {
                    if let Some((pid, _)) = copies.iter().find(|(_, copy)| *copy == id) {
                        // SAFETY: a child of our own that is not waited for yet.
                        unsafe { libc::kill(*pid, libc::SIGKILL) };
                    }
                }
                None => {}
            }
        }
    }

    fn socket(&self) -> i32 {
        match &self.explore {
            Some(Role::Server { socket, .. }) => *socket,
            _ => -1,
        }
    }

    fn answer(&self, answer: &Answer) {
        let bytes = serde_json::to_vec(answer).expect("plain data");
        // SAFETY: a valid buffer. Without a controller this process is killed, so nothing can be done about errors.
        unsafe { libc::send(self.socket(), bytes.as_ptr().cast(), bytes.len(), 0) };
    }

    /// The next order; `None` when a copy has ended first.
    fn next_order(&mut self) -> Option<Order> {
        let wait = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polls = [wait(self.socket()), wait(self.kernel.signal_descriptor())];
        // SAFETY: two valid elements.
        unsafe { libc::poll(polls.as_mut_ptr(), 2, -1) };
        if polls[1].revents != 0 {
            self.kernel.discard_host_signals();
        }
        if polls[0].revents == 0 {
            return None;
        }
        let mut bytes = vec![0; ORDER_MAX];
        // SAFETY: a valid buffer.
        let len = unsafe { libc::recv(self.socket(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        let len = usize::try_from(len).unwrap_or(0);
        if len == 0 {
            self.engine_fault("the controller went away while it gave orders");
        }
        match serde_json::from_slice(&bytes[..len]) {
            Ok(order) => Some(order),
            Err(error) => self.engine_fault(&format!("an order that cannot be read: {error}")),
        }
    }

    /// Tells the controller of copies that have ended.
    fn collect(&mut self, copies: &mut Vec<(i32, u64)>) {
        copies.retain(|(pid, id)| {
            let mut status = 0;
            // SAFETY: waits, without blocking, for a child of our own.
            let gone = unsafe { libc::waitpid(*pid, &mut status, libc::WNOHANG) } == *pid;
            if gone {
                self.answer(&Answer::Gone { id: *id, status });
            }
            !gone
        });
    }

    /// Forks: 0 in the copy, its pid here.
    fn copy(&mut self, order: &RunOrder) -> Result<i32, String> {
        if let Some(mut recorder) = self.kernel.journal.recorder() {
            recorder.flush();
        }
        let code = self
            .cache
            .copy_for_child()
            .map_err(|error| error.to_string())?;
        // SAFETY: the executor has one thread, so the copy is whole.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error().to_string()),
            0 => {
                // SAFETY: a copy must not outlive the executor it came from.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                if self.cache.adopt(&code).is_err() {
                    // SAFETY: ends the copy, which cannot go on.
                    unsafe { libc::_exit(3) };
                }
                let _ = order;
                Ok(0)
            }
            pid => Ok(pid),
        }
    }

    /// In the copy: does as the order says from here on.
    fn become_copy(&mut self, order: &RunOrder) {
        let report = File::create(Path::new(OsStr::from_bytes(&order.report)));
        let Ok(report) = report else {
            // SAFETY: ends the copy, which has nowhere to report to.
            unsafe { libc::_exit(3) };
        };
        self.explore = Some(Role::Copy(Copy {
            report,
            limit: order
                .instructions_max
                .map(|count| self.kernel.retired.saturating_add(count)),
            compare_memory: order.compare_memory,
            properties: Properties::new(&order.properties),
            misuse: None,
            stops: (order.stops_max > 0).then(Vec::new),
            stops_max: order.stops_max,
            stops_cut: false,
            writer_of: order.writer_of,
            writer: None,
            faced: None,
            begun: None,
            looks: Box::new(Looks::new(self.kernel.retired, &order.schedule)),
            stacks: Vec::new(),
        }));
        self.heartbeat.set_blocked(false);
        if let Err(why) = self.kernel.continue_recording(order.recording.as_deref()) {
            self.refused(why);
        }
        for pc in order.watched.iter().chain(&order.withholding) {
            self.cache.watch(*pc);
        }
        self.watch.withheld = Withheld::new(&order.withholding);
        self.watch.calls = WatchedCalls::new(order, &self.kernel.options.program);
        match order.approach {
            Some(approach) => {
                self.approaching = Some(Box::new(Approaching::new(approach, order)));
                self.scheduler = Policy::of_approach(&approach);
                self.turn = approach.quantum;
            }
            None => self.begin_schedule(&order.schedule, order.loaded),
        }
    }

    /// From here on, this says who runs.
    pub(crate) fn begin_schedule(&mut self, schedule: &RunSchedule, loaded: bool) {
        let retired = self.kernel.retired;
        if let Some(Role::Copy(copy)) = &mut self.explore {
            *copy.looks = Looks::new(retired, schedule);
        }
        if loaded {
            self.load_ahead();
        }
        if let Some(policy) = Policy::of_run(schedule) {
            self.scheduler = policy;
            self.turn = 0;
            self.decide_anew();
        }
    }

    /// What the current thread is about to do at a watched instruction.
    pub(crate) fn about_to_do(&mut self) -> (u64, Vec<verdict_schedule::NextAccess>) {
        let pc = self.kernel.thread().registers.rip;
        let accesses = match self.next_instruction() {
            Some(_) if self.scheduler.aims_at_locks() => vec![self.first_argument()],
            Some(instruction) => self.next_accesses(&instruction),
            None => Vec::new(),
        };
        let begun = self.counts();
        self.note_stop(pc, begun, &accesses);
        self.check_freed(&accesses);
        (pc, accesses)
    }

    /// Instructions that the current thread and all threads have retired.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let current = &self.kernel.threads[self.kernel.current];
        (current.retired, self.kernel.retired)
    }

    /// Notes that the current thread is about to access memory; `begun` is where what it does there began.
    pub(crate) fn note_stop(
        &mut self,
        pc: u64,
        begun: (u64, u64),
        accesses: &[verdict_schedule::NextAccess],
    ) {
        let (instructions, retired) = self.counts();
        let number = self.kernel.thread().id.0;
        let value = accesses.first().map_or(0, |access| self.value(access));
        let Some(Role::Copy(Copy {
            stops: Some(stops),
            stops_max,
            stops_cut,
            ..
        })) = &mut self.explore
        else {
            return;
        };
        if stops.len() == *stops_max {
            *stops_cut = true;
            return;
        }
        stops.push(WatchedStop {
            pc,
            thread: number,
            instructions,
            retired,
            begun,
            accesses: accesses
                .iter()
                .map(|access| (access.address, access.len, access.write))
                .collect(),
            value,
        });
    }

    /// What is where an access is about to be made, up to eight bytes of it; 0 where there is nothing.
    fn value(&self, access: &verdict_schedule::NextAccess) -> u64 {
        let mut bytes = [0; 8];
        let len = access.len.min(8) as usize;
        let read = self.kernel.memory.read(access.address, &mut bytes[..len]);
        read.map_or(0, |()| u64::from_le_bytes(bytes))
    }

    /// True if stops are there to be noted, by a copy that has noted as many as it may.
    pub(crate) fn only_notes_too_many_stops(&self) -> bool {
        let cut = matches!(&self.explore, Some(Role::Copy(copy)) if copy.stops_cut);
        cut && self.approaching.is_none() && !self.scheduler.looks_for_something()
    }

    /// Ends a copy whose guest misuses memory.
    pub(crate) fn misused(&mut self, how: String) {
        if let Some(Role::Copy(copy)) = &mut self.explore {
            copy.misuse = Some(how);
            self.finish(Outcome::Stopped);
        }
    }

    /// After each decision of a scheduler that looks for something.
    pub(crate) fn after_decision(&mut self, reason: verdict_schedule::Reason) {
        if self.explore.is_none() {
            return;
        }
        self.check_properties(reason);
        self.keep_faced();
        self.keep_stack();
        if matches!(
            self.scheduler.segments(),
            Some(SegmentsState::Done | SegmentsState::Astray)
        ) {
            self.finish(Outcome::Stopped);
        }
        if self.scheduler.segments() == Some(SegmentsState::Blocked)
            || self.scheduler.alternate() == Some(AlternateState::Blocked)
        {
            let threads = self.standing_threads();
            self.finish(Outcome::NotEnforced { threads });
        }
    }

    /// Keeps the stack of a racing thread that has come to its access.
    fn keep_stack(&mut self) {
        let wanted = match self.scheduler.segments() {
            Some(SegmentsState::InFirst) => 1,
            Some(SegmentsState::InSecond) => 2,
            _ => return,
        };
        let current = self.kernel.current;
        let kept = match &self.explore {
            Some(Role::Copy(copy)) => copy.stacks.len(),
            _ => return,
        };
        if kept >= wanted {
            return;
        }
        let stack = self.call_stack_of(current);
        let sp = self.kernel.threads[current]
            .registers
            .get(verdict_cpu::Gpr::Rsp);
        if let Some(Role::Copy(copy)) = &mut self.explore {
            copy.stacks.push((current, sp, stack.stack));
        }
    }

    /// A copy begins with a decision of its own scheduler.
    fn decide_anew(&mut self) {
        let runnable = self
            .kernel
            .threads
            .iter()
            .any(|thread| thread.is_runnable());
        if runnable {
            self.decide(verdict_schedule::Reason::Start);
        }
    }

    /// Keeps the stacks of the first two threads that were brought face to face.
    pub(crate) fn keep_faced(&mut self) {
        let Some(Role::Copy(copy)) = &mut self.explore else {
            return;
        };
        if copy.faced.is_some() {
            return;
        }
        let certain = self.scheduler.facings().first().copied();
        let Some(facing) = certain.or(self.scheduler.begun()) else {
            return;
        };
        let kept = copy.begun.take_if(|begun| begun.facing == facing);
        let stacks = match kept {
            Some(begun) => begun.stacks,
            None => self.stacks_of(&facing),
        };
        if let Some(Role::Copy(copy)) = &mut self.explore {
            match certain {
                Some(_) => copy.faced = Some(stacks),
                None => copy.begun = Some(Box::new(Begun { facing, stacks })),
            }
        }
    }

    fn stacks_of(&mut self, facing: &Facing) -> Box<[CallStack; 2]> {
        Box::new([
            self.call_stack_of(facing.waiting.0 as usize),
            self.call_stack_of(facing.arrived.0 as usize),
        ])
    }

    /// A copy's report: true if there was one to make.
    pub(crate) fn report_copy(&mut self, report: &Report) -> bool {
        self.give_no_answer();
        let facings = self.scheduler.facings().to_vec();
        let alternate = self.scheduler.alternate();
        let segments = self.scheduler.segments();
        let segment_ends = self.scheduler.segment_ends();
        let modules = self.executable_modules();
        let wanted = matches!(&self.explore, Some(Role::Copy(copy)) if copy.compare_memory);
        let memory = wanted.then(|| Box::new(self.memory_changes()));
        let (output, output_hash, output_bytes) = self.captured_output();
        let input_missing = self.kernel.world.as_ref().map_or(0, |world| world.beyond());
        self.report_heard(&report.outcome);
        let Some(Role::Copy(copy)) = &mut self.explore else {
            return false;
        };
        let exploration = Exploration {
            report: report.clone(),
            facings,
            faced: copy.faced.take(),
            alternate,
            segments,
            segment_ends,
            looping: std::mem::take(&mut copy.looks.found),
            violated: copy.properties.violated.take(),
            misuse: copy.misuse.take(),
            stops: copy.stops.take().unwrap_or_default(),
            stops_cut: copy.stops_cut,
            memory,
            modules,
            output,
            output_hash,
            output_bytes,
            writer: copy.writer.take(),
            input_missing,
            preemptions: self.preemptions,
        };
        // A report that cannot be written is one that is not there: the controller sees that.
        let _ = verdict_protocol::write_exploration(&copy.report, &exploration);
        true
    }

    /// Notes where the current thread stands, if it has just written what is asked for.
    pub(crate) fn note_writer(&mut self) {
        let Some(Role::Copy(Copy {
            writer_of: Some(place),
            ..
        })) = &self.explore
        else {
            return;
        };
        let stream = match place.stream {
            1 => Stream::Output,
            _ => Stream::Error,
        };
        let world = self.kernel.world.as_ref();
        if world.is_none_or(|world| world.transcript().length(stream) <= place.position) {
            return;
        }
        let stands = Box::new(self.call_stack());
        if let Some(Role::Copy(copy)) = &mut self.explore {
            copy.writer = Some(stands);
            copy.writer_of = None;
        }
    }

    /// What the guest has said so far, its hash, and how much it was.
    fn captured_output(&self) -> (Vec<OutputPiece>, u64, u64) {
        let Some(world) = &self.kernel.world else {
            return (Vec::new(), 0, 0);
        };
        let transcript = world.transcript();
        let mut room = OUTPUT_MAX;
        let mut pieces = Vec::new();
        for said in transcript.said() {
            let bytes = &said.bytes[..said.bytes.len().min(room)];
            room -= bytes.len();
            pieces.push(OutputPiece {
                stream: match said.stream {
                    Stream::Output => 1,
                    Stream::Error => 2,
                },
                bytes: bytes.to_vec(),
            });
            if room == 0 {
                break;
            }
        }
        (pieces, transcript.hash(), transcript.total())
    }

    /// Everybody who is not gone, as they stand.
    pub(crate) fn standing_threads(&mut self) -> Vec<WaitingThread> {
        let live: Vec<usize> = (0..self.kernel.threads.len())
            .filter(|index| !self.kernel.threads[*index].is_exited())
            .collect();
        live.into_iter()
            .map(|index| {
                let wait = self.kernel.describe_wait(index);
                let thread = &self.kernel.threads[index];
                let (number, instructions) = (thread.id.0, thread.retired);
                WaitingThread {
                    thread: number,
                    instructions,
                    waits_for: wait.text,
                    futex: wait.futex,
                    owner: wait.owner,
                    place: self.call_stack_of(index),
                }
            })
            .collect()
    }
}
