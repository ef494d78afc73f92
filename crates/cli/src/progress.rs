//! Progress on standard error: only for people, and only when it takes long enough to wonder.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use verdict_races::{HowFar, Look};

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

    /// Shows how far a look at a run is, if it is time to.
    pub(crate) fn look(&mut self, far: HowFar) {
        self.text(|| look_text(far));
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

/// `looking for races: 1.2 G of 19.3 G instructions (6 %)`
pub(crate) fn look_text(far: HowFar) -> String {
    let look = match far.look {
        Look::First => "looking for what may race",
        Look::Whole => "looking for what may race, at all that happens",
        Look::Races => "looking for races",
        Look::Closer => "looking closer at the races",
        Look::Predictions => "looking for what could race",
    };
    // Nobody should see more than all: who counts is another process, and the guest has been there.
    let (done, total) = match far.total {
        Some(total) => (far.instructions.min(total), total),
        None => return format!("{look}: {} instructions", readable(far.instructions)),
    };
    // A run of nothing is over before it begins.
    let percent = u128::from(done) * 100 / u128::from(total.max(1));
    let (done, total) = (readable(done), readable(total));
    format!("{look}: {done} of {total} instructions ({percent} %)")
}

/// `950`, `1.2 k`, `850.0 M`, `19.3 G`
pub(crate) fn readable(count: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.into_iter().find(|(size, _)| count as f64 >= *size);
    unit.map_or_else(
        || count.to_string(),
        |(size, unit)| {
            // What is rounded down never reaches the next unit.
            let tenths = (count as f64 / size * 10.0).floor() / 10.0;
            format!("{tenths:.1} {unit}")
        },
    )
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(look: Look, instructions: u64, total: Option<u64>) -> String {
        look_text(HowFar {
            look,
            instructions,
            total,
        })
    }

    #[test]
    fn a_look_says_what_it_is_for_and_how_far_it_is() {
        assert_eq!(
            text(Look::Races, 1_234_567_890, Some(19_300_000_000)),
            "looking for races: 1.2 G of 19.3 G instructions (6 %)"
        );
        assert_eq!(
            text(Look::First, 1_234_567_890, None),
            "looking for what may race: 1.2 G instructions"
        );
        assert_eq!(
            text(Look::Closer, 7, Some(7)),
            "looking closer at the races: 7 of 7 instructions (100 %)"
        );
    }

    #[test]
    fn what_another_process_counts_is_never_more_than_all() {
        assert_eq!(
            text(Look::Whole, u64::MAX, Some(0)),
            "looking for what may race, at all that happens: 0 of 0 instructions (0 %)"
        );
        assert_eq!(
            text(Look::Races, u64::MAX, Some(u64::MAX - 1)),
            "looking for races: 18446744.0 T of 18446744.0 T instructions (100 %)"
        );
    }

    #[test]
    fn numbers_are_short_and_rounded_down() {
        let readable = [0, 999, 1_000, 1_950, 999_999, 1_000_000, 20_450_000_000].map(readable);
        assert_eq!(
            readable,
            ["0", "999", "1.0 k", "1.9 k", "999.9 k", "1.0 M", "20.4 G"]
        );
    }
}
