//! Calls about time, all on the guest's clock.

use crate::futex::TimeoutKind;
use crate::memory::SysResult;
use crate::thread::{Call, Wait};
use crate::time::SECOND_NS;
use crate::timers::{Notify, PosixTimer, Timer};
use crate::{Flow, Kernel};

const TICK_NS: u64 = SECOND_NS / 100;

impl Kernel {
    /// A `timespec` in guest memory, in nanoseconds.
    pub(crate) fn read_timespec(&self, at: u64) -> Result<u64, i32> {
        let (seconds, nanos) = (
            self.memory.read_u64(at)? as i64,
            self.memory.read_u64(at + 8)? as i64,
        );
        if seconds < 0 || !(0..SECOND_NS as i64).contains(&nanos) {
            return Err(libc::EINVAL);
        }
        Ok((seconds as u64)
            .saturating_mul(SECOND_NS)
            .saturating_add(nanos as u64))
    }

    fn read_timeval(&self, at: u64) -> Result<u64, i32> {
        let (seconds, micros) = (
            self.memory.read_u64(at)? as i64,
            self.memory.read_u64(at + 8)? as i64,
        );
        if seconds < 0 || !(0..1_000_000).contains(&micros) {
            return Err(libc::EINVAL);
        }
        Ok((seconds as u64)
            .saturating_mul(SECOND_NS)
            .saturating_add(micros as u64 * 1000))
    }

    pub(super) fn write_timespec(&mut self, at: u64, ns: u64) -> Result<(), i32> {
        self.memory.write_u64(at, ns / SECOND_NS)?;
        self.memory.write_u64(at + 8, ns % SECOND_NS)
    }

    pub(super) fn write_timeval(&mut self, at: u64, ns: u64) -> Result<(), i32> {
        self.memory.write_u64(at, ns / SECOND_NS)?;
        self.memory.write_u64(at + 8, ns % SECOND_NS / 1000)
    }

    /// The deadline on the monotonic clock that a `timespec` at `timeout` (0: none) means.
    pub(crate) fn deadline(&self, timeout: u64, kind: TimeoutKind) -> Result<Option<u64>, i32> {
        if timeout == 0 {
            return Ok(None);
        }
        let time = self.read_timespec(timeout)?;
        Ok(Some(match kind {
            TimeoutKind::Relative => self.now().saturating_add(time),
            TimeoutKind::Absolute(clock) => self.clock.to_monotonic(clock, time, self.retired),
        }))
    }

    fn read_clock(&mut self, clock: i32) -> Result<u64, i32> {
        let retired = self.retired;
        match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
                Ok(self.clock.realtime(retired))
            }
            libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME => Ok(self.clock.monotonic(retired)),
            libc::CLOCK_PROCESS_CPUTIME_ID => Ok(self.clock.cpu(retired)),
            libc::CLOCK_THREAD_CPUTIME_ID => Ok(self.thread().retired),
            // Negative numbers name the CPU time of a process or thread.
            _ if clock < 0 => Ok(self.clock.cpu(retired)),
            _ => Err(libc::EINVAL),
        }
    }

    pub(super) fn sys_clock_gettime(&mut self, clock: i32, to: u64) -> SysResult {
        let now = self.read_clock(clock)?;
        self.write_timespec(to, now).map(|()| 0)
    }

    pub(super) fn sys_clock_getres(&mut self, clock: i32, to: u64) -> SysResult {
        self.read_clock(clock)?;
        if to != 0 {
            self.write_timespec(to, 1)?;
        }
        Ok(0)
    }

    pub(super) fn sys_gettimeofday(&mut self, to: u64, zone: u64) -> SysResult {
        let now = self.read_clock(libc::CLOCK_REALTIME)?;
        if to != 0 {
            self.write_timeval(to, now)?;
        }
        if zone != 0 {
            self.memory.write_u64(zone, 0)?;
        }
        Ok(0)
    }

    pub(super) fn sys_time(&mut self, to: u64) -> SysResult {
        let seconds = self.read_clock(libc::CLOCK_REALTIME)? / SECOND_NS;
        if to != 0 {
            self.memory.write_u64(to, seconds)?;
        }
        Ok(seconds as i64)
    }

    pub(super) fn sys_times(&mut self, to: u64) -> SysResult {
        if to != 0 {
            self.memory
                .write_u64(to, self.clock.cpu(self.retired) / TICK_NS)?;
            self.memory.write(to + 8, &[0; 24])?;
        }
        Ok((self.now() / TICK_NS) as i64)
    }

    pub(super) fn sys_nanosleep(&mut self, clock: i32, flags: u64, request: u64) -> Flow {
        let kind = match flags as i32 & libc::TIMER_ABSTIME {
            0 => TimeoutKind::Relative,
            _ => TimeoutKind::Absolute(clock),
        };
        if request == 0 {
            return Flow::error(libc::EFAULT);
        }
        match self.deadline(request, kind) {
            Ok(Some(deadline)) if deadline > self.now() => Flow::Block(Wait::Sleep { deadline }),
            Ok(_) => Flow::Return(0),
            Err(error) => Flow::error(error),
        }
    }

    /// A sleep that a signal interrupts says how much of it is left.
    pub(crate) fn tell_time_left(&mut self, call: &Call) {
        let to = match call.number as i64 {
            libc::SYS_nanosleep => call.args[1],
            libc::SYS_clock_nanosleep if call.args[1] as i32 & libc::TIMER_ABSTIME == 0 => {
                call.args[3]
            }
            _ => return,
        };
        if let Some(deadline) = call.deadline.filter(|_| to != 0) {
            // A bad address was the guest's to avoid: the sleep is interrupted all the same.
            let _ = self.write_timespec(to, deadline.saturating_sub(self.now()));
        }
    }

    pub(super) fn sys_alarm(&mut self, seconds: u64) -> SysResult {
        let now = self.now();
        let left = self.timers.real.remaining(now).div_ceil(SECOND_NS);
        let next = (seconds as u32 != 0).then(|| now + u64::from(seconds as u32) * SECOND_NS);
        self.timers.real = Timer { next, interval: 0 };
        Ok(left as i64)
    }

    pub(super) fn sys_setitimer(&mut self, a: [u64; 6]) -> SysResult {
        let (interval, value) = if a[1] == 0 {
            (0, 0)
        } else {
            (self.read_timeval(a[1])?, self.read_timeval(a[1] + 16)?)
        };
        if a[2] != 0 {
            self.sys_getitimer([a[0], a[2], 0, 0, 0, 0])?;
        }
        let (now, cpu) = (self.now(), self.clock.cpu(self.retired));
        let (timer, on_cpu) = self.timer_by_which(a[0])?;
        let base = if on_cpu { cpu } else { now };
        *timer = Timer {
            next: (value != 0).then_some(base + value),
            interval,
        };
        Ok(0)
    }

    pub(super) fn sys_getitimer(&mut self, a: [u64; 6]) -> SysResult {
        let (now, cpu) = (self.now(), self.clock.cpu(self.retired));
        let (timer, on_cpu) = self.timer_by_which(a[0])?;
        let timer = *timer;
        self.write_timeval(a[1], timer.interval)?;
        self.write_timeval(a[1] + 16, timer.remaining(if on_cpu { cpu } else { now }))?;
        Ok(0)
    }

    pub(super) fn sys_timer_create(&mut self, a: [u64; 6]) -> SysResult {
        let id = self.timers.next_posix;
        let notify = if a[1] == 0 {
            Notify::Process {
                signal: libc::SIGALRM,
                value: id as u64,
            }
        } else {
            let value = self.memory.read_u64(a[1])?;
            let signal = self.memory.read_u32(a[1] + 8)? as i32;
            match self.memory.read_u32(a[1] + 12)? as i32 {
                libc::SIGEV_NONE => Notify::Nothing,
                libc::SIGEV_SIGNAL => Notify::Process { signal, value },
                libc::SIGEV_THREAD_ID => Notify::Thread {
                    tid: self.memory.read_u32(a[1] + 16)? as i32,
                    signal,
                    value,
                },
                _ => return Err(libc::EINVAL),
            }
        };
        self.memory.write_u32(a[2], id as u32)?;
        self.timers.next_posix += 1;
        self.timers.posix.insert(
            id,
            PosixTimer {
                timer: Timer::default(),
                notify,
                clock: a[0] as i32,
                overrun: 0,
            },
        );
        Ok(0)
    }

    /// A timer from an `itimerspec`: relative, or absolute on its clock.
    fn read_timer(&self, at: u64, absolute: bool, clock: i32) -> Result<Timer, i32> {
        let (interval, value) = (self.read_timespec(at)?, self.read_timespec(at + 16)?);
        let next = match (value, absolute) {
            (0, _) => None,
            (value, false) => Some(self.now() + value),
            (value, true) => Some(self.clock.to_monotonic(clock, value, self.retired)),
        };
        Ok(Timer { next, interval })
    }

    fn write_timer(&mut self, at: u64, timer: Timer) -> Result<(), i32> {
        let remaining = timer.remaining(self.now());
        self.write_timespec(at, timer.interval)?;
        self.write_timespec(at + 16, remaining)
    }

    pub(super) fn sys_timer_settime(&mut self, a: [u64; 6]) -> SysResult {
        let posix = self
            .timers
            .posix
            .get(&(a[0] as i32))
            .ok_or(libc::EINVAL)?
            .clone();
        let timer = self.read_timer(a[2], a[1] as i32 & libc::TIMER_ABSTIME != 0, posix.clock)?;
        if a[3] != 0 {
            self.write_timer(a[3], posix.timer)?;
        }
        self.timers
            .posix
            .insert(a[0] as i32, PosixTimer { timer, ..posix });
        Ok(0)
    }

    pub(super) fn sys_timer_gettime(&mut self, a: [u64; 6]) -> SysResult {
        let timer = self
            .timers
            .posix
            .get(&(a[0] as i32))
            .ok_or(libc::EINVAL)?
            .timer;
        self.write_timer(a[1], timer).map(|()| 0)
    }

    pub(super) fn sys_timer_getoverrun(&mut self, id: i32) -> SysResult {
        self.timers
            .posix
            .get(&id)
            .map(|posix| posix.overrun as i64)
            .ok_or(libc::EINVAL)
    }

    pub(super) fn sys_timer_delete(&mut self, id: i32) -> SysResult {
        self.timers.posix.remove(&id).map(|_| 0).ok_or(libc::EINVAL)
    }

    pub(super) fn sys_timerfd_settime(&mut self, a: [u64; 6]) -> SysResult {
        let descriptor = a[0] as i32;
        let (old, clock) = *self
            .timers
            .descriptors
            .get(&descriptor)
            .ok_or(libc::EINVAL)?;
        let timer = self.read_timer(a[2], a[1] & 1 != 0, clock)?;
        if a[3] != 0 {
            self.write_timer(a[3], old)?;
        }
        // Arming discards expirations that were not read: drain the counter behind the descriptor.
        let mut poll = libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut count = 0u64;
        // SAFETY: both calls get valid buffers; the read cannot block since the descriptor is readable.
        unsafe {
            if libc::poll(&mut poll, 1, 0) > 0 {
                libc::read(descriptor, (&raw mut count).cast(), 8);
            }
        }
        self.timers.descriptors.insert(descriptor, (timer, clock));
        Ok(0)
    }

    pub(super) fn sys_timerfd_gettime(&mut self, a: [u64; 6]) -> SysResult {
        let (timer, _) = *self
            .timers
            .descriptors
            .get(&(a[0] as i32))
            .ok_or(libc::EINVAL)?;
        self.write_timer(a[1], timer).map(|()| 0)
    }
}
