//! Things that the outside does at one and the same moment, as the guest sees it: recorded in some order, and replayed in that.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::record_faults::executor_of;
use crate::recorded::record_with;
use crate::run::{Ending, Program, ending};
use crate::tools::{build_c, text};

/// Waits until a process is in this state, as `/proc/PID/stat` tells it.
fn wait_for(process: Pid, state: char) {
    let file = format!("/proc/{}/stat", process.as_raw_nonzero());
    let is_there = || {
        let stat = fs::read_to_string(&file).unwrap();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        after_name.trim_start().starts_with(state)
    };
    while !is_there() {
        std::thread::yield_now();
    }
}

/// Starts the guest, and lets its input and a signal come while its executor is stopped.
fn disturb(mut command: Command, _: &Path) -> (Ending, Vec<u8>, Vec<u8>) {
    let mut controller = command.spawn().unwrap();
    let mut output = BufReader::new(controller.stdout.take().unwrap());
    let mut told = String::new();
    output.read_line(&mut told).unwrap();
    let executor = executor_of(&controller).unwrap();
    wait_for(executor, 'S');
    kill_process(executor, Signal::STOP).unwrap();
    wait_for(executor, 'T');
    let mut input = controller.stdin.take().unwrap();
    input.write_all(b"line\n").unwrap();
    kill_process(executor, Signal::USR1).unwrap();
    kill_process(executor, Signal::CONT).unwrap();
    output.read_to_string(&mut told).unwrap();
    let mut errors = Vec::new();
    let mut error_pipe = controller.stderr.take().unwrap();
    error_pipe.read_to_end(&mut errors).unwrap();
    let status = controller.wait().unwrap();
    (ending(status), told.into_bytes(), errors)
}

#[test]
fn input_and_a_signal() {
    let program = Program::new(&[text(&build_c("at_once.c"))]);
    let recorded = record_with(&program, disturb);
    assert_eq!(recorded.execution.ending, Ending::Exit(0));
    recorded.replays_the_same("input and a signal at once");
}
