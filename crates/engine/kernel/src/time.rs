//! The guest's clock.
//!
//! Virtual time is a function of what the guest did: one nanosecond per instruction retired, plus what was
//! skipped because every thread was waiting. The same execution sees the same times.

use std::time::{Duration, Instant};

/// CLOCK_REALTIME at the start of a virtual execution: 2033-05-18T03:33:20Z, later than any file a guest may see.
const EPOCH_NS: u64 = 2_000_000_000 * SECOND_NS;
/// CLOCK_MONOTONIC at the start: as if booted a day ago.
const BOOT_NS: u64 = 86_400 * SECOND_NS;
/// How often the host's clock is looked at while its tick is awaited.
const STAMP_WAIT: Duration = Duration::from_micros(200);
/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Which time the guest sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockMode {
    /// Time follows instructions.
    Virtual,
    /// The host's time.
    Real,
}

/// The guest's clocks.
#[derive(Clone, Debug)]
pub struct Clock {
    mode: ClockMode,
    /// Nanoseconds skipped while all threads waited.
    skipped: u64,
    started: Instant,
    real_epoch: u64,
    /// When the run began, by the host's clock: files with later stamps have changed since.
    started_ns: u64,
    /// Files that change now may still get a stamp of before: the host's clock for stamps goes in ticks.
    awaits_first_stamp: bool,
}

impl Clock {
    /// Starts now.
    pub fn new(mode: ClockMode) -> Self {
        let real = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Clock {
            mode,
            skipped: 0,
            started: Instant::now(),
            real_epoch: real.as_nanos() as u64,
            started_ns: host_time(libc::CLOCK_REALTIME),
            awaits_first_stamp: mode == ClockMode::Virtual,
        }
    }

    /// The mode.
    pub fn mode(&self) -> ClockMode {
        self.mode
    }

    fn elapsed(&self, retired: u64) -> u64 {
        match self.mode {
            ClockMode::Virtual => retired + self.skipped,
            ClockMode::Real => self.started.elapsed().as_nanos() as u64,
        }
    }

    /// CLOCK_MONOTONIC, given the instructions retired by all threads.
    pub fn monotonic(&self, retired: u64) -> u64 {
        BOOT_NS + self.elapsed(retired)
    }

    /// CLOCK_REALTIME.
    pub fn realtime(&self, retired: u64) -> u64 {
        self.epoch() + self.elapsed(retired)
    }

    /// CLOCK_REALTIME at the start.
    pub(crate) fn epoch(&self) -> u64 {
        match self.mode {
            ClockMode::Virtual => EPOCH_NS,
            ClockMode::Real => self.real_epoch,
        }
    }

    /// True if the time stamp of a file lies between the start and now.
    pub(crate) fn is_during_run(&self, stamp: u64) -> bool {
        (self.started_ns + 1..=host_time(libc::CLOCK_REALTIME)).contains(&stamp)
    }

    /// True until files that change are known to get a stamp that is of the run.
    pub(crate) fn awaits_first_stamp(&self) -> bool {
        self.awaits_first_stamp
    }

    /// Waits for the host's next tick, unless there was one since the start: at most some milliseconds.
    pub(crate) fn await_first_stamp(&mut self) {
        while host_time(libc::CLOCK_REALTIME_COARSE) <= self.started_ns {
            std::thread::sleep(STAMP_WAIT);
        }
        self.awaits_first_stamp = false;
    }

    /// When the run began, by the host's clock.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// CPU time used: an instruction is a nanosecond.
    pub fn cpu(&self, retired: u64) -> u64 {
        retired
    }

    /// What the clock has skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Goes on where the clock of the program before stopped.
    pub fn resume(&mut self, skipped: u64, started_ns: u64) {
        self.skipped = skipped;
        self.started_ns = started_ns;
    }

    /// Jumps forward so that the monotonic clock shows at least `deadline`.
    pub fn skip_to(&mut self, deadline: u64, retired: u64) {
        if self.mode == ClockMode::Virtual {
            self.skipped += deadline.saturating_sub(self.monotonic(retired));
        }
    }

    /// Turns an absolute time of a clock into one of the monotonic clock.
    pub fn to_monotonic(&self, clock: i32, time: u64, retired: u64) -> u64 {
        match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
                let ahead = time.saturating_sub(self.realtime(retired));
                self.monotonic(retired) + ahead
            }
            _ => time,
        }
    }
}

fn host_time(clock: i32) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid buffer.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stamped_before_the_start_is_not_of_the_run() {
        let before = host_time(libc::CLOCK_REALTIME_COARSE);
        let mut clock = Clock::new(ClockMode::Virtual);
        assert!(!clock.is_during_run(before), "whatever the tick");
        assert!(clock.awaits_first_stamp());
        clock.await_first_stamp();
        assert!(!clock.awaits_first_stamp());
        assert!(clock.is_during_run(host_time(libc::CLOCK_REALTIME_COARSE)));
    }
}
