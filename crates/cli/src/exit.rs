//! What the shell is told: the one place where exit codes are defined.

use std::process::ExitCode;

/// Shown at the end of `verdict --help` and in the man page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  nothing to report
  1  races were reported (at or above --fail-on, where there is one)
  2  bad usage or bad input
  3  the program could not be run, or verdict itself failed
  `verdict exec`, `record` and `replay` end as the program does: with its code, or 128+N when
  signal N ended it";

/// How a command ended. [`EXIT_CODES`] is its documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Nothing to report.
    Clean,
    /// Races were reported.
    Races,
    /// Bad usage or bad input.
    BadInput,
    /// The guest could not be run, or we failed: an engine fault, a bug.
    CannotRun,
    /// As the guest ended, where running it is all that was asked for.
    Guest(u8),
}

impl Exit {
    /// As a shell shows it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Races => 1,
            Self::BadInput => 2,
            Self::CannotRun => 3,
            Self::Guest(code) => code,
        }
    }

    /// The code that shells use for a program that a signal ended.
    #[must_use]
    pub fn guest_signalled(signal: i32) -> Self {
        Self::Guest(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        for exit in [Exit::Clean, Exit::Races, Exit::BadInput, Exit::CannotRun] {
            let line = format!("\n  {}  ", exit.code());
            assert!(EXIT_CODES.contains(&line), "{exit:?} is missing");
        }
        assert_eq!(Exit::guest_signalled(11).code(), 128 + 11);
    }
}
