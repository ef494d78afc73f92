//! What the shell is told: the one place where exit codes are defined.

use std::process::ExitCode;

/// Shown at the end of `verdict --help` and in the man page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  nothing to report
  1  races were reported (at or above --fail-on, where there is one)
  2  bad usage or bad input
  3  the program could not be run, or verdict itself failed";

/// How a command ended. [`EXIT_CODES`] is its documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Nothing to report.
    Clean = 0,
    /// Races were reported.
    Races = 1,
    /// Bad usage or bad input.
    BadInput = 2,
    /// The guest could not be run, or we failed: an engine fault, a bug.
    CannotRun = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        for exit in [Exit::Clean, Exit::Races, Exit::BadInput, Exit::CannotRun] {
            let line = format!("\n  {}  ", exit as u8);
            assert!(EXIT_CODES.contains(&line), "{exit:?} is missing");
        }
    }
}
