//! Watching an instruction is noticed by the engine every time it runs, and by nobody else.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::run::{Program, observe};
use crate::tools::{build, text, tool};

/// Address of a function in a program that is not moved when it is loaded.
fn address_of(binary: &str, function: &str) -> String {
    let output = Command::new(tool("nm", "binutils"))
        .arg(binary)
        .output()
        .unwrap();
    let symbols = String::from_utf8(output.stdout).unwrap();
    let mut lines = symbols.lines().map(|line| line.split(' '));
    let found = lines.find_map(|mut words| {
        let address = words.next()?;
        (words.nth(1)? == function).then(|| address.to_owned())
    });
    found.unwrap_or_else(|| panic!("{binary} has no {function}"))
}

/// Standard output and statistics; what depends on how blocks are cut is left out.
fn execute(binary: &str, options: &[&str]) -> (Vec<u8>, Value) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    let stats = root.path().join("stats.json");
    let program = Program::new(&[binary]).options(options).options(&[
        "--stats-file",
        &text(&stats),
        "--format",
        "json",
    ]);
    program.prepare(&folder);
    let seen = observe(program.under_engine(&folder), &program.stdin, &folder);
    let mut stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
    let fields = stats.as_object_mut().unwrap();
    for field in ["blocks_translated", "pages_invalidated", "times_ns"] {
        fields.remove(field);
    }
    (seen.stdout, stats)
}

#[test]
fn every_run_of_the_instruction_stops_and_nothing_else_changes() {
    let gcc = tool("gcc", "gcc");
    let options = [&gcc, "-O1", "-g", "-pthread", "-no-pie", "-w"];
    let binary = text(&build("watched.c", &options));
    let (entry, inside) = (
        address_of(&binary, "step"),
        address_of(&binary, "step_inside"),
    );
    for accesses in ["off", "hash"] {
        let common = ["--quantum", "777", "--accesses", accesses];
        let (output, mut plain) = execute(&binary, &common);
        let watching = ["--watch", &entry, "--watch", &inside];
        let (same_output, mut watched) = execute(&binary, &[&common[..], &watching].concat());
        assert_eq!(output, same_output);
        // Two threads call the function 500 times each.
        assert_eq!(plain["watch_stops"].take(), 0);
        assert_eq!(watched["watch_stops"].take(), 2 * 2 * 500);
        assert_eq!(plain, watched);
    }
}
