//! The flags that every command shares, and how arguments are taken apart.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::commands::Command;
use crate::exit::EXIT_CODES;
use crate::{CliError, Exit, Verbosity};

/// Under this heading the flags of every command stand apart from a command's own.
const GLOBAL: &str = "Global options";

/// Finds the data races of a program, and says what they are worth.
#[derive(Parser, Debug)]
#[command(name = "verdict", version, after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    /// Say what is done, on standard error
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "quiet", overrides_with = "verbose")]
    verbose: bool,

    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, help_heading = GLOBAL, overrides_with = "quiet")]
    quiet: bool,

    /// When to use colour: `auto` is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, value_name = "WHEN", default_value_t)]
    pub color: ColorChoice,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Where colour is wanted.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    #[value(help = None)]
    Auto,
    /// Everywhere
    #[value(help = None)]
    Always,
    /// Nowhere
    #[value(help = None)]
    Never,
}

impl ColorChoice {
    /// Whether to use colour on a stream that is a terminal or not.
    pub(crate) fn wanted(self, terminal: bool) -> bool {
        self.wanted_in(terminal, |name| env::var_os(name))
    }

    fn wanted_in(self, terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                // https://no-color.org: set and not empty.
                let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
                let incapable = variable("TERM").is_some_and(|value| value == "dumb");
                terminal && !refused && !incapable
            }
        }
    }
}

/// `--format`, for commands that report something. Flatten it into the command's arguments.
#[derive(Args, Clone, Copy, Debug)]
pub struct FormatArgs {
    /// How to report: `text` for people, `json` for programs
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// How to report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// For people
    #[default]
    #[value(help = None)]
    Text,
    /// For programs
    #[value(help = None)]
    Json,
}

impl Arguments {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

/// The table of all commands and flags: help, man page and completions are made from it.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Help, version, or a complaint: what there is to print instead of running a command.
pub(crate) struct Refusal(clap::Error);

pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, Refusal> {
    let matches = command().try_get_matches_from(arguments).map_err(Refusal)?;
    Arguments::from_arg_matches(&matches).map_err(Refusal)
}

impl Refusal {
    pub(crate) fn print(&self) -> Result<Exit, CliError> {
        let text = self.0.render().to_string();
        if self.0.use_stderr() {
            // Where standard error cannot be written there is nobody left to tell.
            let _ = io::stderr().write_all(text.as_bytes());
            return Ok(Exit::BadInput);
        }
        let written = io::stdout().write_all(text.as_bytes());
        written.map_err(|error| CliError::writing("standard output", &error))?;
        Ok(Exit::Clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_that_can_and_users_who_want() {
        let wanted = |choice: ColorChoice, terminal, set: (&str, &str)| {
            choice.wanted_in(terminal, |name| (name == set.0).then(|| set.1.into()))
        };
        let plain = ("TERM", "xterm");
        assert!(wanted(ColorChoice::Auto, true, plain));
        assert!(wanted(ColorChoice::Auto, true, ("NO_COLOR", "")));
        assert!(!wanted(ColorChoice::Auto, true, ("NO_COLOR", "1")));
        assert!(!wanted(ColorChoice::Auto, true, ("TERM", "dumb")));
        assert!(!wanted(ColorChoice::Auto, false, plain));
        assert!(wanted(ColorChoice::Always, false, ("NO_COLOR", "1")));
        assert!(!wanted(ColorChoice::Never, true, plain));
    }
}
