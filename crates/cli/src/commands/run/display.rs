//! The one line of progress of `verdict run`: which stage, how far it is.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use verdict_results::Stage;

use crate::{Context, Verbosity};

/// The line is not written more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// One line on standard error that is overwritten. Only for people.
pub(super) struct Display {
    wanted: bool,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    stage: Option<Stage>,
    shown: Option<Instant>,
}

impl Display {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            wanted: context.verbosity() >= Verbosity::Normal && io::stderr().is_terminal(),
            line: Mutex::default(),
        }
    }

    /// A stage begins.
    pub(super) fn stage(&self, stage: Stage) {
        self.clear();
        self.line().stage = Some(stage);
        // The program has the terminal while it is recorded.
        if stage != Stage::Record {
            self.done("");
        }
    }

    /// How far the stage is, if it is time to say so.
    pub(super) fn done(&self, what: &str) {
        let mut line = self.line();
        let Some(stage) = line.stage.filter(|_| self.wanted) else {
            return;
        };
        if line.shown.is_some_and(|shown| shown.elapsed() < PAUSE) {
            return;
        }
        let place = stage as usize + 1;
        // Losing progress is better than ending a long run because nobody listens.
        let _ = write!(
            io::stderr(),
            "\r[{place}/{}] {} {what}\x1b[K",
            Stage::ALL.len(),
            stage.word()
        );
        line.shown = Some(Instant::now());
    }

    /// Nothing is left of it.
    pub(super) fn clear(&self) {
        if self.line().shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Whatever a panic elsewhere left is good enough for a line of progress.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
