//! Waiting for an executor, and noticing when waiting is of no use.

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use verdict_protocol::Status;

use crate::LaunchOptions;
use crate::channel::Channel;
use crate::signals::GuestDecides;

/// How the process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
    /// It showed no sign of life and was killed by us.
    Silent,
}

/// An executor that is killed when it is no longer watched, so that no error leaves one behind.
pub(crate) struct Watched {
    child: Child,
    descriptor: OwnedFd,
    over: bool,
    end: Option<ProcessEnd>,
}

impl Watched {
    pub(crate) fn new(mut child: Child) -> io::Result<Self> {
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self {
                child,
                descriptor,
                over: false,
                end: None,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// Whether it is known to have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether it has ended by now.
    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        if let Some(status) = self.child.try_wait()? {
            self.over = true;
            self.end = Some(end_of(status));
        }
        Ok(self.over)
    }

    /// How it ended; waits for that.
    pub(crate) fn end(&mut self) -> io::Result<ProcessEnd> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let end = end_of(self.reap()?);
        self.end = Some(end);
        Ok(end)
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.over = true;
        Ok(status)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What is watched beside the executor itself.
pub(crate) struct Watching<'a> {
    pub(crate) channel: &'a Channel,
    pub(crate) signals: Option<&'a GuestDecides>,
    /// Readable when nobody needs the executor any more.
    pub(crate) enough: Option<BorrowedFd<'a>>,
    pub(crate) options: &'a LaunchOptions,
}

/// Waits for the executor's end. Ticks are counted, not seconds: while controller and executor are stopped together
/// (Ctrl-Z), time passes but no ticks do.
pub(crate) fn until_end(child: Child, watching: &Watching<'_>) -> io::Result<ProcessEnd> {
    let options = watching.options;
    let mut executor = Watched::new(child)?;
    let mut silence = Silence::default();
    let mut overdue: u32 = 0;
    loop {
        match wait_once(&executor, watching)? {
            Event::Ended => return Ok(end_of(executor.reap()?)),
            Event::Termination => {
                // It may end at this very moment; then there is nobody to tell.
                let _ = pidfd_send_signal(&executor.descriptor, Signal::TERM);
            }
            Event::Enough => {
                executor.child.kill()?;
                return Ok(end_of(executor.reap()?));
            }
            Event::Tick => {
                if options
                    .deadline
                    .is_some_and(|deadline| Instant::now() >= deadline)
                {
                    overdue += 1;
                    match overdue {
                        // As above, it may have ended by itself.
                        1 => drop(pidfd_send_signal(&executor.descriptor, Signal::TERM)),
                        TICKS_TO_END.. => executor.child.kill()?,
                        _ => {}
                    }
                }
                silence.observe(watching.channel.status()?, is_stopped(&executor.child));
                if silence.ticks >= options.silent_ticks_max {
                    executor.child.kill()?;
                    executor.reap()?;
                    return Ok(ProcessEnd::Silent);
                }
            }
        }
    }
}

/// How many ticks a guest has to end after it was asked to.
const TICKS_TO_END: u32 = 5;

/// For how long nothing has been heard.
#[derive(Default, Debug)]
struct Silence {
    last_beat: u64,
    ticks: u32,
}

impl Silence {
    fn observe(&mut self, status: Status, stopped: bool) {
        let excused = status.blocked || stopped;
        if excused || status.heartbeat != self.last_beat {
            self.ticks = 0;
        } else {
            self.ticks += 1;
        }
        self.last_beat = status.heartbeat;
    }
}

enum Event {
    Ended,
    Termination,
    Enough,
    Tick,
}

fn wait_once(executor: &Watched, watching: &Watching<'_>) -> io::Result<Event> {
    let timeout = Timespec::try_from(watching.options.tick).map_err(io::Error::other)?;
    let signals = watching.signals;
    loop {
        let mut sources = vec![PollFd::new(&executor.descriptor, PollFlags::IN)];
        let enough = watching.enough.iter().copied();
        let others = enough.chain(signals.map(GuestDecides::descriptor));
        sources.extend(others.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
        match poll(&mut sources, Some(&timeout)) {
            Ok(0) => return Ok(Event::Tick),
            Ok(_) if !sources[0].revents().is_empty() => return Ok(Event::Ended),
            Ok(_) if watching.enough.is_some() && !sources[1].revents().is_empty() => {
                return Ok(Event::Enough);
            }
            Ok(_) if signals.is_some_and(GuestDecides::take_termination) => {
                return Ok(Event::Termination);
            }
            // A signal that needs nothing done.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn end_of(status: ExitStatus) -> ProcessEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessEnd::Exited(code),
        (None, signal) => ProcessEnd::Signalled(signal.unwrap_or(0)),
    }
}

/// Stopped by a signal or by a debugger: silent, and rightly so.
fn is_stopped(child: &Child) -> bool {
    // Where there is nothing to read the process is gone, and the next event is its end.
    fs::read_to_string(format!("/proc/{}/stat", child.id()))
        .is_ok_and(|stat| matches!(state(&stat), Some('T' | 't')))
}

/// The state follows the name, which is in parentheses and may hold any characters.
fn state(stat: &str) -> Option<char> {
    stat.rsplit(')').next()?.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_no_beat_without_an_excuse() {
        let mut silence = Silence::default();
        let mut ticks_after = |heartbeat, blocked, stopped| {
            silence.observe(Status { heartbeat, blocked }, stopped);
            silence.ticks
        };
        assert_eq!(ticks_after(0, false, false), 1);
        assert_eq!(ticks_after(0, false, false), 2);
        assert_eq!(ticks_after(1, false, false), 0);
        assert_eq!(ticks_after(1, false, false), 1);
        assert_eq!(ticks_after(1, true, false), 0);
        assert_eq!(ticks_after(1, false, false), 1);
        assert_eq!(ticks_after(1, false, true), 0);
    }

    #[test]
    fn the_state_is_found_behind_any_name() {
        assert_eq!(state("12 (verdict) S 1 12"), Some('S'));
        assert_eq!(state("12 (a) T (b) t 1 12"), Some('t'));
        assert_eq!(state(""), None);
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert!(matches!(state(&own), Some('R' | 'S')), "{own}");
    }
}
