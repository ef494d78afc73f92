//! The one line of progress of `verdict run`: which stage, how far it is, how many races there are so far.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

use verdict_results::Stage;

use crate::{Context, Verbosity};

/// One line on standard error that is overwritten. Only for people.
pub(super) struct Display {
    wanted: bool,
    stage: Cell<Option<Stage>>,
    shown: Cell<bool>,
}

impl Display {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            wanted: context.verbosity() >= Verbosity::Normal && io::stderr().is_terminal(),
            stage: Cell::new(None),
            shown: Cell::new(false),
        }
    }

    /// A stage begins.
    pub(super) fn stage(&self, stage: Stage) {
        self.stage.set(Some(stage));
        // The program has the terminal while it is recorded.
        if stage != Stage::Record {
            self.show("");
        }
    }

    /// How far the stage is.
    pub(super) fn done(&self, what: &str) {
        self.show(&format!(": {what}"));
    }

    fn show(&self, what: &str) {
        let Some(stage) = self.stage.get().filter(|_| self.wanted) else {
            return;
        };
        let place = Stage::ALL.iter().position(|other| *other == stage).unwrap_or(0) + 1;
        // Losing progress is better than ending a long run because nobody listens.
        let _ = write!(io::stderr(), "\r[{place}/{}] {}{what}\x1b[K", Stage::ALL.len(), stage.word());
        self.shown.set(true);
    }

    /// Nothing is left of it.
    pub(super) fn clear(&self) {
        if self.shown.replace(false) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
