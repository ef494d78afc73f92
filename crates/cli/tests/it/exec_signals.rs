//! Signals during `verdict exec`: the guest decides, and nobody is left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::transcript::verdict;

/// A running `verdict exec -- sh -c SCRIPT` whose guest has said that it is ready, and waits for its input.
struct Running {
    controller: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(script: &str) -> Self {
        let mut controller = verdict(Path::new("/"), &["exec", "--", "/bin/sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(controller.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { controller, stdout }
    }

    fn executor(&self) -> String {
        let path = format!("/proc/{0}/task/{0}/children", self.controller.id());
        let children = fs::read_to_string(path).unwrap();
        children.split_whitespace().next().unwrap().to_owned()
    }

    fn signal_controller(&self, signal: &str) {
        send(signal, &self.controller.id().to_string());
    }

    /// The rest of what is printed on both outputs, and the exit code.
    fn end(mut self) -> (String, String, Option<i32>) {
        // The input stays open until the end: only a signal can have ended the guest.
        let input = self.controller.stdin.take();
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        self.controller
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        let code = self.controller.wait().unwrap().code();
        drop(input);
        (out, err, code)
    }
}

fn send(signal: &str, pid: &str) {
    assert!(
        Command::new("kill")
            .args([signal, pid])
            .status()
            .unwrap()
            .success()
    );
}

const WAITS: &str = "echo ready; read line";

#[test]
fn termination_is_passed_on_to_the_guest() {
    let running = Running::start("trap 'echo caught; exit 7' TERM; echo ready; read line");
    running.signal_controller("-TERM");
    assert_eq!(
        running.end(),
        ("caught\n".to_owned(), String::new(), Some(7))
    );

    let running = Running::start(WAITS);
    running.signal_controller("-TERM");
    assert_eq!(
        running.end(),
        (String::new(), String::new(), Some(128 + 15))
    );
}

/// The terminal sends Ctrl-C to both.
#[test]
fn an_interrupt_ends_the_guest_and_then_the_controller() {
    let running = Running::start(WAITS);
    running.signal_controller("-INT");
    send("-INT", &running.executor());
    assert_eq!(running.end(), (String::new(), String::new(), Some(128 + 2)));

    let running = Running::start("trap 'echo caught; exit 7' INT; echo ready; read line");
    running.signal_controller("-INT");
    send("-INT", &running.executor());
    assert_eq!(
        running.end(),
        ("caught\n".to_owned(), String::new(), Some(7))
    );
}

/// Both outputs end only when the executor, which holds them as well, has gone.
#[test]
fn the_executor_dies_with_its_controller() {
    let running = Running::start(WAITS);
    running.signal_controller("-KILL");
    assert_eq!(running.end(), (String::new(), String::new(), None));
}
