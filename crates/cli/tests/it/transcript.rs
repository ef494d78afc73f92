//! One run of `verdict`, as one would see it.

use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::Expect;

/// `verdict`, in a given folder, without anything of this machine in its environment.
pub fn verdict(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verdict"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null());
    command
}

/// Runs `verdict` in an empty folder and compares all that is printed, and the exit code.
#[track_caller]
pub fn check(arguments: &[&str], expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    check_in(folder.path(), arguments, expected);
}

/// The same in a folder that the test has filled.
#[track_caller]
pub fn check_in(folder: &Path, arguments: &[&str], expected: &Expect) {
    let output = verdict(folder, arguments).output().unwrap();
    expected.assert_eq(&transcript(&output));
}

/// Standard output, then standard error, then the exit code. Escape characters are made visible.
pub fn transcript(output: &Output) -> String {
    let mut text = String::new();
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            write!(
                text,
                "--- {name}\n{}",
                String::from_utf8_lossy(bytes).replace('\x1b', "^[")
            )
            .unwrap();
        }
    }
    match output.status.code() {
        Some(code) => writeln!(text, "--- exit {code}").unwrap(),
        None => writeln!(text, "--- signal {}", output.status.signal().unwrap()).unwrap(),
    }
    text
}
