//! Timers on the guest's clock: interval timers, POSIX timers, and timer descriptors.

use crate::signals::SignalInfo;
use crate::{Kernel, SysResult};
use std::collections::BTreeMap;

/// Code of a signal from the kernel's timers.
const SI_KERNEL: i32 = 0x80;
const SI_TIMER: i32 = -2;

/// One timer: when it fires next and every how many nanoseconds after that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer {
    pub(crate) next: Option<u64>,
    pub(crate) interval: u64,
}

impl Timer {
    /// Number of expirations up to `now`; moves on to the next one.
    pub(crate) fn expire(&mut self, now: u64) -> u64 {
        let Some(next) = self.next.filter(|next| *next <= now) else {
            return 0;
        };
        if self.interval == 0 {
            self.next = None;
            return 1;
        }
        let count = 1 + (now - next) / self.interval;
        self.next = Some(next + count * self.interval);
        count
    }

    /// Nanoseconds until the next expiration; 0 if disarmed.
    pub(crate) fn remaining(&self, now: u64) -> u64 {
        self.next.map_or(0, |next| next.saturating_sub(now).max(1))
    }
}

/// What a POSIX timer does when it fires.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notify {
    Nothing,
    Process { signal: i32, value: u64 },
    Thread { tid: i32, signal: i32, value: u64 },
}

#[derive(Clone, Debug)]
pub(crate) struct PosixTimer {
    pub(crate) timer: Timer,
    pub(crate) notify: Notify,
    pub(crate) clock: i32,
    pub(crate) overrun: u64,
}

/// All timers of the guest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    /// ITIMER_REAL, on the monotonic clock.
    pub(crate) real: Timer,
    /// ITIMER_VIRTUAL and ITIMER_PROF, on CPU time.
    pub(crate) cpu: [Timer; 2],
    pub(crate) posix: BTreeMap<i32, PosixTimer>,
    pub(crate) next_posix: i32,
    /// Descriptor of an eventfd -> the timer that counts it up.
    pub(crate) descriptors: BTreeMap<i32, (Timer, i32)>,
}

impl Kernel {
    /// Fires every timer that is due.
    pub fn fire_timers(&mut self) {
        let (now, cpu) = (self.now(), self.clock.cpu(self.retired));
        if self.timers.real.expire(now) > 0 {
            self.send_to_process(SignalInfo::new(libc::SIGALRM, SI_KERNEL));
        }
        for (index, signal) in [libc::SIGVTALRM, libc::SIGPROF].into_iter().enumerate() {
            if self.timers.cpu[index].expire(cpu) > 0 {
                self.send_to_process(SignalInfo::new(signal, SI_KERNEL));
            }
        }
        let mut fired = Vec::new();
        for (id, posix) in &mut self.timers.posix {
            let count = posix.timer.expire(now);
            if count > 0 {
                posix.overrun = count - 1;
                fired.push((*id, posix.notify));
            }
        }
        for (id, notify) in fired {
            self.notify(id, notify);
        }
        if let Some(world) = &mut self.world {
            world.fire_timers(now);
        }
        for (descriptor, (timer, _)) in &mut self.timers.descriptors {
            let count = timer.expire(now);
            if count > 0 {
                // SAFETY: writes eight bytes to an eventfd that we created for the guest.
                unsafe { libc::write(*descriptor, (&raw const count).cast(), 8) };
            }
        }
    }

    fn notify(&mut self, id: i32, notify: Notify) {
        let info = |signal: i32, value: u64| {
            let mut info = SignalInfo::new(signal, SI_TIMER);
            info.bytes[16..20].copy_from_slice(&id.to_le_bytes());
            info.bytes[24..32].copy_from_slice(&value.to_le_bytes());
            info
        };
        match notify {
            Notify::Nothing => {}
            Notify::Process { signal, value } => self.send_to_process(info(signal, value)),
            Notify::Thread { tid, signal, value } => {
                if let Some(index) = self.thread_by_tid(tid) {
                    self.send_to_thread(index, info(signal, value));
                }
            }
        }
    }

    /// The next moment of the monotonic clock at which a timer fires.
    pub fn next_timer(&self) -> Option<u64> {
        let to_monotonic = |cpu: u64| self.now() + cpu.saturating_sub(self.clock.cpu(self.retired));
        let wall = std::iter::once(self.timers.real.next)
            .chain(self.timers.posix.values().map(|posix| posix.timer.next))
            .chain(
                self.timers
                    .descriptors
                    .values()
                    .map(|(timer, _)| timer.next),
            )
            .chain(self.world_timer())
            .flatten();
        wall.chain(
            self.timers
                .cpu
                .iter()
                .filter_map(|timer| timer.next)
                .map(to_monotonic),
        )
        .min()
    }

    /// Like [`Kernel::next_timer`], but only timers that fire while nobody runs.
    pub(crate) fn next_wall_timer(&self) -> Option<u64> {
        std::iter::once(self.timers.real.next)
            .chain(self.timers.posix.values().map(|posix| posix.timer.next))
            .chain(
                self.timers
                    .descriptors
                    .values()
                    .map(|(timer, _)| timer.next),
            )
            .chain(self.world_timer())
            .flatten()
            .min()
    }

    /// The next timer behind a descriptor of the private world; a recording says itself when they fire.
    fn world_timer(&self) -> Option<Option<u64>> {
        let live = self.world.as_ref().filter(|_| !self.journal.is_replay());
        live.map(|world| world.next_timer())
    }

    /// Index of the live thread with this tid.
    pub(crate) fn thread_by_tid(&self, tid: i32) -> Option<usize> {
        self.threads
            .iter()
            .position(|thread| thread.tid == tid && !thread.is_exited())
    }

    pub(crate) fn timer_by_which(&mut self, which: u64) -> Result<(&mut Timer, bool), i32> {
        match which as i32 {
            0 => Ok((&mut self.timers.real, false)),
            1 | 2 => Ok((&mut self.timers.cpu[which as usize - 1], true)),
            _ => Err(libc::EINVAL),
        }
    }

    /// `timerfd_create`: an eventfd that our clock counts up.
    pub(crate) fn timerfd_create(&mut self, clock: i32, flags: i32) -> SysResult {
        // TFD_CLOEXEC and TFD_NONBLOCK are EFD_CLOEXEC and EFD_NONBLOCK.
        // SAFETY: plain system call.
        let descriptor =
            unsafe { libc::eventfd(0, flags & (libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) };
        if descriptor < 0 {
            return Err(crate::memory::errno());
        }
        self.timers
            .descriptors
            .insert(descriptor, (Timer::default(), clock));
        Ok(i64::from(descriptor))
    }

    /// Descriptors that stand for timers.
    pub(crate) fn timer_descriptors(&self) -> impl Iterator<Item = i32> + '_ {
        self.timers.descriptors.keys().copied()
    }

    /// A descriptor was closed or replaced.
    pub(crate) fn forget_descriptor(&mut self, descriptor: i32) {
        self.timers.descriptors.remove(&descriptor);
    }
}
