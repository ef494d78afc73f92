//! What every command is given: how much to say, in which colours, and where output goes.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use verdict_files::{PendingFiles, WholeFile, WholeFolder};

use crate::interrupt::Interrupts;
use crate::{CliError, ColorChoice, Paint};

/// How much is said on standard error. Reports on standard output do not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Also what a user should know.
    Normal,
    /// Also what was done.
    Verbose,
}

/// The surroundings of one command.
#[derive(Debug)]
pub struct Context {
    verbosity: Verbosity,
    color: ColorChoice,
    interrupts: Interrupts,
}

impl Context {
    /// The context of this process.
    #[must_use]
    pub fn new(verbosity: Verbosity, color: ColorChoice) -> Self {
        Self {
            verbosity,
            color,
            interrupts: Interrupts::default(),
        }
    }

    /// How much to say.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Writes a report to standard output, buffered. The only way commands write there.
    pub fn report(
        &self,
        write: impl FnOnce(&mut dyn Write, Paint) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out, self.paint_stdout())
            .and_then(|()| out.flush())
            .map_err(|error| CliError::writing("standard output", &error))
    }

    /// Writes text that the user asked for to standard error, where standard output is not ours to write to.
    pub fn remark(&self, text: &str) {
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Tells the user something worth knowing, on standard error, unless `-q`.
    pub fn note(&self, text: impl Display) {
        self.say(Verbosity::Normal, text);
    }

    /// Tells the user what was done, on standard error, with `-v`.
    pub fn detail(&self, text: impl Display) {
        self.say(Verbosity::Verbose, text);
    }

    /// Starts an output file that appears whole or not at all, also when the user presses Ctrl-C. Call
    /// [`WholeFile::finish`] when everything is written.
    pub fn create_file(&self, path: &Path) -> Result<WholeFile, CliError> {
        let pending = self.interrupts.pending_files();
        pending.create(path).map_err(|error| {
            let problem = CliError::writing(path.display(), &error);
            match error.kind() {
                io::ErrorKind::NotFound => problem.with_help("the folder must exist"),
                _ => problem,
            }
        })
    }

    /// Starts a folder that appears whole or not at all. Call [`WholeFolder::finish`] when everything is in it.
    pub fn create_folder(&self, path: &Path) -> Result<WholeFolder, CliError> {
        let created = self.interrupts.pending_files().create_folder(path);
        created.map_err(|error| {
            let problem = CliError::writing(path.display(), &error);
            match error.kind() {
                io::ErrorKind::NotFound => problem.with_help("the folder around it must exist"),
                io::ErrorKind::AlreadyExists => {
                    problem.with_help("remove it, or choose another name")
                }
                _ => problem,
            }
        })
    }

    /// The list of unfinished files, which Ctrl-C removes.
    pub(crate) fn pending_files(&self) -> &PendingFiles {
        self.interrupts.pending_files()
    }

    pub(crate) fn paint_stdout(&self) -> Paint {
        Paint::new(self.color.wanted(io::stdout().is_terminal()))
    }

    pub(crate) fn paint_stderr(&self) -> Paint {
        Paint::new(self.color.wanted(io::stderr().is_terminal()))
    }

    fn say(&self, least: Verbosity, text: impl Display) {
        if self.verbosity >= least {
            // Losing a remark is better than ending a long run because nobody listens.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}
