//! The command line of verdict: one module per subcommand under `commands`, and what they share.
//!
//! Commands never print or exit by themselves. They write through a [`Context`], answer with an [`Exit`] or a
//! [`CliError`], and [`main`] turns that into what the shell sees.
#![forbid(unsafe_code)]

mod arguments;
mod bug;
pub mod commands;
mod context;
mod error;
mod executor;
mod exit;
mod interrupt;
mod paint;
mod progress;

use std::ffi::OsString;
use std::process::ExitCode;

pub use arguments::{Arguments, ColorChoice, Format, FormatArgs, command};
pub use context::{Context, Verbosity};
pub use error::CliError;
pub use exit::Exit;
pub use paint::Paint;

/// Runs `verdict` with the given arguments, the first of which is the program's name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if executor::is_wanted(&arguments) {
        return executor::run(&arguments);
    }
    bug::guarded(|| run(arguments))
}

fn run(arguments: Vec<OsString>) -> ExitCode {
    let (context, result) = match arguments::parse(arguments) {
        Ok(arguments) => {
            let context = Context::new(arguments.verbosity(), arguments.color);
            let result = commands::run(&arguments.command, &context);
            (context, result)
        }
        Err(refusal) => {
            let context = Context::new(Verbosity::Normal, ColorChoice::Auto);
            (context, refusal.print())
        }
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => error.print(&context),
    }
}
