//! When no thread can run: skip virtual time, or wait for the world outside.

use crate::signals::SignalInfo;
use crate::thread::{State, Wait};
use crate::{ClockMode, Kernel};
use verdict_recording::Entry;

/// How long a change that another process makes to a shared futex may go unnoticed.
const SHARED_POLL_NS: u64 = 1_000_000;

/// A wait that is not worth a flush of the recording.
const SHORT_WAIT_MS: u32 = 50;

/// What came of waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// Somebody may be runnable now.
    Progress,
    /// Nothing inside or outside can ever wake a thread, signals apart.
    Deadlock,
    /// The recording that is followed does not say what happened then.
    ReplayOver,
}

/// What was found outside.
#[derive(Default)]
pub struct Outside {
    polls: Vec<libc::pollfd>,
    /// Whether signals may have come.
    pub signals: bool,
}

impl Kernel {
    /// Ends the waits whose deadline has passed.
    pub fn expire_waits(&mut self) {
        let now = self.now();
        for index in 0..self.threads.len() {
            let State::Waiting(wait) = &self.threads[index].state else {
                continue;
            };
            if wait.deadline().is_none_or(|deadline| deadline > now) {
                continue;
            }
            match wait {
                Wait::Futex { .. } => self.threads[index].complete(-i64::from(libc::ETIMEDOUT)),
                Wait::Sleep { .. } => self.finish_sleep(index),
                Wait::Signal { .. } => self.threads[index].complete(-i64::from(libc::EAGAIN)),
                Wait::Descriptors { .. } | Wait::Child => {
                    let thread = &mut self.threads[index];
                    if let Some(call) = &mut thread.call {
                        call.timed_out = true;
                    }
                    thread.state = State::Runnable;
                }
            }
        }
    }

    /// A sleep that was a retry of a lock goes back to its call; a real one returns 0.
    fn finish_sleep(&mut self, index: usize) {
        let retries = self.threads[index]
            .call
            .as_ref()
            .is_some_and(crate::syscalls::sleeps_to_retry);
        if retries {
            self.threads[index].state = State::Runnable;
        } else {
            self.threads[index].complete(0);
        }
    }

    /// Asks the host, once and without waiting, for signals and for descriptors that threads wait for.
    pub fn look_outside(&self) -> Outside {
        let mut polls = self.descriptor_polls();
        if polls.is_empty() || self.journal.is_replay() {
            return Outside {
                polls: Vec::new(),
                signals: true,
            };
        }
        polls.push(self.signal_poll());
        if host_poll(&mut polls, 0) <= 0 {
            return Outside::default();
        }
        let signals = polls.pop().is_some_and(|signals| signals.revents != 0);
        Outside { polls, signals }
    }

    /// Lets threads try again whose descriptors are ready.
    pub fn wake_by(&mut self, outside: &Outside) {
        if self.journal.is_replay() {
            return self.replay_wakes();
        }
        if !self.poll_world() && !outside.polls.is_empty() {
            self.wake_ready(&outside.polls);
        }
    }

    fn signal_poll(&self) -> libc::pollfd {
        libc::pollfd {
            fd: self.signal_fd,
            events: libc::POLLIN,
            revents: 0,
        }
    }

    fn descriptor_polls(&self) -> Vec<libc::pollfd> {
        let mut polls = Vec::new();
        if self.world.is_some() {
            return polls;
        }
        for thread in &self.threads {
            if let State::Waiting(Wait::Descriptors { polls: wanted, .. }) = &thread.state {
                polls.extend(wanted.iter().map(|(fd, events)| libc::pollfd {
                    fd: *fd,
                    events: *events,
                    revents: 0,
                }));
            }
        }
        polls
    }

    fn wake_ready(&mut self, polls: &[libc::pollfd]) {
        for index in 0..self.threads.len() {
            let state = &self.threads[index].state;
            let State::Waiting(Wait::Descriptors { polls: wanted, .. }) = state else {
                continue;
            };
            let ready = |(fd, events): &(i32, i16)| {
                polls.iter().any(|poll| {
                    let always = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
                    poll.fd == *fd && poll.revents & (*events | always) != 0
                })
            };
            if wanted.iter().any(ready) {
                self.threads[index].state = State::Runnable;
                self.note(&Entry::Wake {
                    thread: index as u32,
                });
            }
        }
    }

    /// Takes the host's asynchronous signals and queues them for the guest.
    pub fn take_host_signals(&mut self) {
        if self.journal.is_replay() {
            return self.replay_signals();
        }
        loop {
            // SAFETY: all-zero is a valid value of this plain struct, and the buffer has its size.
            let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
            let len = size_of::<libc::signalfd_siginfo>();
            // SAFETY: as above; the descriptor is ours and does not block.
            let read = unsafe { libc::read(self.signal_fd, (&raw mut info).cast(), len) };
            if read != len as isize {
                return;
            }
            let pid = self.to_virtual_pid(info.ssi_pid as i32);
            let mut signal =
                SignalInfo::from_process(info.ssi_signo as i32, info.ssi_code, pid, info.ssi_uid);
            signal.bytes[24..28].copy_from_slice(&info.ssi_status.to_le_bytes());
            self.note_signal(&signal, None);
            self.signal_from_outside(signal);
        }
    }

    /// Forgets signals of the host that are not meant for the guest.
    pub fn discard_host_signals(&self) {
        // SAFETY: all-zero is a valid value of this plain struct, and the buffer has its size; the descriptor is ours and
        // does not block.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let len = size_of::<libc::signalfd_siginfo>();
            while libc::read(self.signal_fd, (&raw mut info).cast(), len) == len as isize {}
        }
    }

    /// Queues a signal that another process sent.
    pub(crate) fn signal_from_outside(&mut self, info: SignalInfo) {
        if info.signal == libc::SIGCHLD {
            self.wake_child_waiters();
        }
        self.send_to_process(info);
    }

    fn wake_child_waiters(&mut self) {
        for thread in &mut self.threads {
            if matches!(thread.state, State::Waiting(Wait::Child)) {
                thread.state = State::Runnable;
            }
        }
    }

    /// Nobody can run: makes time pass until somebody might.
    pub fn idle(&mut self) -> Idle {
        if self.journal.is_replay() {
            return if self.replay_idle() {
                Idle::Progress
            } else {
                Idle::ReplayOver
            };
        }
        let before = self.now();
        let idle = self.idle_live();
        if self.now() != before {
            self.note(&Entry::Clock {
                monotonic_ns: self.now(),
            });
        }
        idle
    }

    /// True if somebody waits for a time that will come.
    #[must_use]
    pub fn has_sleepers(&self) -> bool {
        self.clock.mode() != ClockMode::Real && self.next_deadline().is_some()
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let waits = self
            .threads
            .iter()
            .filter_map(|thread| match &thread.state {
                State::Waiting(wait) => wait.deadline(),
                _ => None,
            });
        waits.chain(self.next_wall_timer()).min()
    }

    /// Time passes until the first of those who wait for one wakes up, although others could run.
    pub fn skip_to_deadline(&mut self) {
        if let Some(deadline) = self.next_deadline() {
            self.clock.skip_to(deadline, self.retired);
            self.note(&Entry::Clock {
                monotonic_ns: self.now(),
            });
        }
    }

    fn idle_live(&mut self) -> Idle {
        if self.next_recorded_signal() {
            return Idle::Progress;
        }
        let deadline = self.next_deadline();
        if self.has_shared_waiters() {
            self.idle_with_other_processes(deadline);
            return Idle::Progress;
        }
        let polls = self.descriptor_polls();
        let children = self
            .threads
            .iter()
            .any(|thread| matches!(thread.state, State::Waiting(Wait::Child)));
        let outside = !polls.is_empty() || children || self.clock.mode() == ClockMode::Real;
        match deadline {
            Some(deadline) if !outside => {
                self.clock.skip_to(deadline, self.retired);
                Idle::Progress
            }
            Some(deadline) => {
                let wait_ns = deadline.saturating_sub(self.now());
                if !self.wait_outside(polls, Some(wait_ns)) {
                    self.clock.skip_to(deadline, self.retired);
                }
                Idle::Progress
            }
            None => {
                let for_signal = |thread: &crate::Thread| {
                    matches!(thread.state, State::Waiting(Wait::Signal { .. }))
                };
                let signals = self.world.is_none() && self.threads.iter().any(for_signal);
                if !outside && !signals {
                    return Idle::Deadlock;
                }
                self.wait_outside(polls, None);
                Idle::Progress
            }
        }
    }

    /// Another process may wake a thread by a word in shared memory: waits a little, then lets it look.
    fn idle_with_other_processes(&mut self, deadline: Option<u64>) {
        let until = (self.now() + SHARED_POLL_NS).min(deadline.unwrap_or(u64::MAX));
        let wait_ns = until.saturating_sub(self.now());
        let polls = self.descriptor_polls();
        if !self.wait_outside(polls, Some(wait_ns)) {
            self.clock.skip_to(until, self.retired);
        }
        self.wake_shared_waiters();
    }

    /// Waits until the host delivers a signal.
    pub fn wait_for_signal(&mut self) {
        self.wait_outside(Vec::new(), None);
    }

    /// Waits for descriptors and signals; false if the time ran out first.
    fn wait_outside(&mut self, mut polls: Vec<libc::pollfd>, wait_ns: Option<u64>) -> bool {
        polls.push(self.signal_poll());
        let timeout_ms = wait_ns.map_or(-1, |ns| {
            i32::try_from(ns.div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let mut ready = 0;
        if let Some(mut recorder) = self.journal.recorder() {
            // Whoever kills this process while it waits for long shall find everything so far in the recording.
            ready = host_poll(&mut polls, SHORT_WAIT_MS.min(timeout_ms as u32) as i32);
            if ready == 0 {
                recorder.flush();
            }
        }
        if ready == 0 {
            ready = host_poll(&mut polls, timeout_ms);
        }
        if ready > 0 {
            self.wake_ready(&polls);
        }
        if polls.last().is_some_and(|signals| signals.revents != 0) {
            self.take_host_signals();
        }
        ready != 0
    }
}

fn host_poll(polls: &mut [libc::pollfd], timeout_ms: i32) -> i32 {
    // SAFETY: the slice is valid for its length.
    unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, timeout_ms) }
}
