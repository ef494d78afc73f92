//! A panic is a bug of ours. It must still end like every other error: one sentence, what to do, a documented code.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::process::ExitCode;

use crate::Exit;

/// Runs `run`; if it panics, says so in the form of all errors.
pub(crate) fn guarded(run: impl FnOnce() -> ExitCode + UnwindSafe) -> ExitCode {
    panic::set_hook(Box::new(|info| {
        let _ = io::stderr().write_all(message(info).as_bytes());
    }));
    panic::catch_unwind(run).unwrap_or_else(|_| Exit::CannotRun.into())
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("unknown failure");
    let place = info
        .location()
        .map(|at| format!(" ({at})"))
        .unwrap_or_default();
    let mut text = format!(
        "error: verdict has failed: {what}{place}\n\
         help: this is a bug in verdict {}; please report it with the command you ran\n",
        env!("CARGO_PKG_VERSION"),
    );
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("{backtrace}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn message_names_the_failure_the_place_and_what_to_do() {
        let seen = Arc::new(Mutex::new(String::new()));
        let hook_seen = Arc::clone(&seen);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            *hook_seen.lock().unwrap() = message(info)
        }));
        let caught = panic::catch_unwind(|| panic!("clock went backwards"));
        panic::set_hook(before);
        assert!(caught.is_err());
        let text = seen.lock().unwrap();
        assert!(
            text.starts_with("error: verdict has failed: clock went backwards ("),
            "{text}"
        );
        assert!(
            text.contains("bug.rs:") && text.contains("\nhelp: this is a bug"),
            "{text}"
        );
    }
}
