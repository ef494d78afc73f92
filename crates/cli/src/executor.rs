//! `verdict __executor`: this very program as an executor, started by a controller and by nobody else.

use std::ffi::OsString;
use std::process::ExitCode;

use verdict_launch::EXECUTOR_COMMAND;

use crate::Exit;

/// Whether these arguments make us an executor. Looked at before anything else: an executor has an empty environment,
/// the guest's signals to look after, and no use for the table of flags.
pub(crate) fn is_wanted(arguments: &[OsString]) -> bool {
    arguments
        .get(1)
        .is_some_and(|word| word == EXECUTOR_COMMAND)
}

/// Runs the guest. Comes back only if the arguments are not a controller's.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let number = |at: usize| arguments.get(at)?.to_str()?.parse::<i32>().ok();
    match (number(2), number(3), number(4)) {
        (Some(config), Some(report), Some(status)) if arguments.len() == 5 => {
            verdict_executor::main(verdict_executor::Channel {
                config,
                report,
                status,
            })
        }
        _ => {
            eprintln!(
                "error: `verdict {EXECUTOR_COMMAND}` is for verdict itself\nhelp: use `verdict exec`"
            );
            Exit::BadInput.into()
        }
    }
}
