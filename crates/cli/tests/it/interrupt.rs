//! A command that is ended while it writes a file leaves no file that looks whole.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::transcript::verdict;

/// Enough for the reader to be sure of the format; the trace then never ends.
const BEGINNING: &str = "T0|w(V1)|1\nT0|r(V1)|2\n";

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Starts a conversion of standard input and returns when the output file is being written.
fn converting(folder: &Path) -> Child {
    let mut command = verdict(folder, &["trace", "convert", "-", "out.std"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // More than any buffer on the way holds, so that what is opened last is opened too. The input stays open.
    let input = child.stdin.as_mut().unwrap();
    input
        .write_all(BEGINNING.repeat(100_000).as_bytes())
        .unwrap();
    while !names(folder).iter().any(|name| name.ends_with(".partial")) {
        assert!(child.try_wait().unwrap().is_none(), "ended by itself");
        thread::yield_now();
    }
    child
}

fn end_by(signal: Signal, folder: &Path) -> ExitStatus {
    let mut child = converting(folder);
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, signal).unwrap();
    child.wait().unwrap()
}

#[test]
fn signals_that_ask_remove_the_unfinished_file() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let status = end_by(signal, folder.path());
        assert_eq!(
            status.signal(),
            Some(signal.as_raw()),
            "a shell must see why it ended"
        );
        assert_eq!(names(folder.path()), [] as [&str; 0]);
    }
}

#[test]
fn interrupted_command_leaves_the_file_that_was_there() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("out.std"), "before").unwrap();
    end_by(Signal::INT, folder.path());
    assert_eq!(names(folder.path()), ["out.std"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("out.std")).unwrap(),
        "before"
    );
}

#[test]
fn signal_that_does_not_ask_leaves_a_file_that_says_it_is_partial() {
    let folder = tempfile::tempdir().unwrap();
    end_by(Signal::KILL, folder.path());
    let left = names(folder.path());
    assert!(
        left.iter()
            .all(|name| name.starts_with('.') && name.ends_with(".partial")),
        "{left:?}"
    );
}

#[test]
fn broken_input_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = converting(folder.path());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"no event\n")
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(names(folder.path()), [] as [&str; 0]);
}
