//! How far a long run is, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::{Context, Verbosity};

/// Nothing is shown of what takes less.
const SILENT: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(200);

/// Counts events and shows the count from time to time. Removes what it has shown when it is dropped.
pub(super) struct Progress {
    shown_next: Option<Instant>,
    started: Instant,
    events: u64,
    shown: bool,
}

impl Progress {
    pub(super) fn new(context: &Context) -> Self {
        let wanted = context.verbosity() > Verbosity::Quiet && io::stderr().is_terminal();
        let started = Instant::now();
        Self {
            shown_next: wanted.then_some(started + SILENT),
            started,
            events: 0,
            shown: false,
        }
    }

    pub(super) fn add(&mut self, events: usize) {
        self.events += events as u64;
        let Some(next) = self.shown_next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.shown_next = Some(now + EVERY);
        self.shown = true;
        let millions = self.events as f64 / 1e6;
        let speed = millions / (now - self.started).as_secs_f64();
        // Progress is a courtesy: failing to show it is no reason to stop.
        let _ = write!(
            io::stderr(),
            "\r{millions:.1} million events, {speed:.1} million/s\x1b[K"
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
