//! The one style of error: what went wrong and where, then what to do about it.
//!
//! ```text
//! error: queue.std:3: expected an operation, found `foo`
//! help: `verdict trace --help` lists the formats
//! ```

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::{Context, Exit};

/// Why a command could not do what it was asked to do.
#[derive(Debug)]
pub enum CliError {
    /// A problem to tell the user about.
    Problem {
        /// Whose fault it is.
        exit: Exit,
        /// What went wrong and where, in one sentence without a full stop.
        what: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// Whoever read our output has gone (`verdict ... | head`). Not worth a word.
    OutputClosed,
}

impl CliError {
    /// Bad usage or bad input (exit code 2).
    pub fn bad_input(what: impl Display) -> Self {
        Self::Problem {
            exit: Exit::BadInput,
            what: what.to_string(),
            help: None,
        }
    }

    /// The guest or the engine could not be run (exit code 3).
    pub fn cannot_run(what: impl Display) -> Self {
        Self::Problem {
            exit: Exit::CannotRun,
            what: what.to_string(),
            help: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_help(mut self, advice: impl Display) -> Self {
        if let Self::Problem { help, .. } = &mut self {
            *help = Some(advice.to_string());
        }
        self
    }

    /// Writing `destination` (a path, or `standard output`) failed.
    pub fn writing(destination: impl Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::bad_input(format_args!("{destination}: cannot be written: {error}"))
    }

    /// Tells the user, and answers with the exit code.
    pub(crate) fn print(&self, context: &Context) -> ExitCode {
        match self {
            Self::OutputClosed => end_by_broken_pipe(),
            Self::Problem { exit, what, help } => {
                let paint = context.paint_stderr();
                let mut text = format!("{} {what}\n", paint.red("error:"));
                if let Some(help) = help {
                    text.push_str(&format!("{} {help}\n", paint.cyan("help:")));
                }
                // Where standard error cannot be written there is nobody left to tell.
                let _ = io::stderr().write_all(text.as_bytes());
                (*exit).into()
            }
        }
    }
}

/// Ends the process the way every Unix filter ends when its reader has gone, so that scripts see the same.
/// Exit code 0 would claim that there was nothing to report.
fn end_by_broken_pipe() -> ExitCode {
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
    // Reached only if the signal is blocked. 128 + SIGPIPE is what a shell would have shown.
    ExitCode::from(128 + 13)
}
