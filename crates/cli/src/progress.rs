//! Progress on standard error: only for people, and only when it takes long enough to wonder.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::{Context, Verbosity};

/// Nothing is said before this.
const PATIENCE: Duration = Duration::from_secs(1);
/// And not more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// One line that is overwritten, and removed at the end.
pub(crate) struct Progress {
    started: Instant,
    last: Option<Instant>,
    wanted: bool,
}

impl Progress {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            started: Instant::now(),
            last: None,
            wanted: context.verbosity() >= Verbosity::Normal && io::stderr().is_terminal(),
        }
    }

    /// Shows how many `what` have been dealt with, if it is time to.
    pub(crate) fn done(&mut self, what: &str, count: u64) {
        self.show(|seconds| {
            let millions = count as f64 / 1e6;
            let speed = millions / seconds;
            format!("{millions:.1} million {what}, {speed:.1} million/s")
        });
    }

    /// Shows how many of all tasks are done, and when the rest will be, if `fraction` of the work is done.
    pub(crate) fn tasks(&mut self, done: u64, total: u64, fraction: f64) {
        self.show(|seconds| {
            let left = seconds * (1.0 - fraction) / fraction.max(1e-9);
            format!("{done} of {total} tasks, about {left:.0} s left")
        });
    }

    /// Shows something else, if it is time to.
    pub(crate) fn text(&mut self, text: impl FnOnce() -> String) {
        self.show(|_| text());
    }

    fn show(&mut self, text: impl FnOnce(f64) -> String) {
        let wait_until = self
            .last
            .map_or(self.started + PATIENCE, |last| last + PAUSE);
        if self.wanted && Instant::now() >= wait_until {
            let text = text(self.started.elapsed().as_secs_f64());
            // Losing progress is better than ending a long run because nobody listens.
            let _ = write!(io::stderr(), "\r{text}\x1b[K");
            self.last = Some(Instant::now());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
