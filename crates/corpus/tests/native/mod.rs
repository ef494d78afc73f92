//! Runs a program natively, with a limit of time.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use verdict_corpus::Consequence;

/// Far above what any program needs, even on a loaded machine.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);
/// For programs that may hang: then it does not matter if a slow run is taken for a hang.
pub const TIME_LIMIT_IF_MAY_HANG: Duration = Duration::from_secs(3);

/// How a run ended and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub ending: Ending,
    pub stdout: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exit(i32),
    Signal(i32),
    TimeLimit,
}

impl Ending {
    /// Whether this is how `consequence` looks from outside.
    pub fn may_be(self, consequence: Consequence) -> bool {
        let (signal, hangs) = (matches!(self, Ending::Signal(_)), self == Ending::TimeLimit);
        match consequence {
            Consequence::Crash
            | Consequence::Abort
            | Consequence::Assertion
            | Consequence::MemoryError => signal,
            // A Rust program that panics exits with 101.
            Consequence::Exception => signal || self == Ending::Exit(101),
            Consequence::Deadlock | Consequence::InfiniteLoop => hangs,
            Consequence::Property => false,
        }
    }
}

/// Runs `binary` and waits for it, `time_limit` at most.
pub fn run(binary: &Path, args: &[String], time_limit: Duration) -> Run {
    let mut child = Command::new(binary)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
    let mut pipe = child.stdout.take().expect("stdout is piped");
    let (send, receive) = mpsc::channel();
    // The pipe closes when the program ends, so this thread ends with it.
    let reader = thread::spawn(move || {
        let mut stdout = Vec::new();
        pipe.read_to_end(&mut stdout).expect("a pipe can be read");
        send.send(()).ok();
        stdout
    });
    let timed_out = receive.recv_timeout(time_limit) == Err(RecvTimeoutError::Timeout);
    if timed_out {
        child.kill().expect("a child can be killed");
    }
    let status = child.wait().expect("a child can be waited for");
    let stdout = reader.join().expect("the reader does not panic");
    Run {
        ending: if timed_out {
            Ending::TimeLimit
        } else {
            ending(status)
        },
        stdout,
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => unreachable!("a process ends by exit or by signal"),
    }
}
