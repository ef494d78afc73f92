//! What may race is found from what the executor finds worth telling, and where that says too little, from everything: programs that
//! come by what is hard to tell, looked at both ways.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tools::{build, build_as};

/// The report on a program, with what it prints and how it ends left out.
fn races(program: &std::path::Path, options: &[&str]) -> Value {
    races_by(
        Command::new(env!("CARGO_BIN_EXE_verdict")),
        program,
        options,
    )
}

/// The same, by a command that starts `verdict`.
fn races_by(mut verdict: Command, program: &std::path::Path, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("races.json");
    let run = verdict
        .args(["detect", "--format", "json", "--output"])
        .arg(&output)
        .args(options)
        .arg("--")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let written = fs::read(&output).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&run.stderr);
        panic!("{}: no report ({error}): {stderr}", program.display())
    });
    let document: Value = serde_json::from_slice(&written).unwrap();
    document["races"].clone()
}

/// Pairs of lines, each in order.
fn lines(races: &Value) -> BTreeSet<(u64, u64)> {
    let races = races.as_array().expect("a list of races");
    let line = |race: &Value, side: usize| race["accesses"][side]["line"].as_u64().unwrap_or(0);
    races
        .iter()
        .map(|race| (line(race, 0), line(race, 1)))
        .map(|(first, second)| (first.min(second), first.max(second)))
        .collect()
}

/// The lines of races without optimisation; with it, the compiler may have put several accesses into one.
fn both_ways(source: &str, expected: &[(u64, u64)]) {
    for level in ["-O2", "-O0"] {
        let program = build(source, &["gcc", level, "-g", "-pthread"]);
        let sifted = races(&program, &[]);
        let lines = lines(&sifted);
        match level {
            "-O0" => assert_eq!(lines, expected.iter().copied().collect()),
            _ => assert!(!lines.is_empty()),
        }
        assert_eq!(sifted, races(&program, &["--explain-sync"]), "{level}");
    }
}

#[test]
fn loops_with_constant_steps() {
    let expected = [(13, 23), (14, 24), (15, 26), (16, 27), (16, 28), (17, 29)];
    both_ways("looks_strides.c", &expected);
}

/// It is read before the word that the other thread gave is seen, though that is told first.
#[test]
fn loops_that_come_by_something_atomic() {
    both_ways("looks_gathered.c", &[(16, 25)]);
}

#[test]
fn one_epoch_after_the_other() {
    both_ways("looks_epochs.c", &[(19, 37), (28, 44)]);
}

/// Nothing of what a thread did long ago stands for what it does now.
#[test]
fn epochs_whose_numbers_are_used_again() {
    both_ways("looks_renumbered.c", &[(22, 33)]);
}

/// The guest may have memory where the engine keeps notes on its accesses.
#[test]
fn memory_at_addresses_that_the_engine_uses() {
    both_ways("looks_far.c", &[(12, 12), (19, 19), (20, 20)]);
}

/// The engine looks at its notes through a register that a program may want for itself.
#[test]
fn a_segment_that_the_engine_uses() {
    both_ways("looks_gs.c", &[(12, 12), (17, 17)]);
    let program = build("looks_gs.c", &["gcc", "-O2", "-g", "-pthread"]);
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args([
            "-q",
            "detect",
            "--fail-on",
            "never",
            "--output",
            "/dev/null",
            "--",
        ])
        .arg(&program)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "1000 1000 0\n");
}

/// Whoever limits address space leaves no room for such notes.
#[test]
fn little_address_space() {
    let options = ["gcc", "-O2", "-g", "-pthread"];
    let program = build_as("looks_limited", "looks_renumbered.c", &options);
    let mut limited = Command::new("bash");
    limited
        .args(["-c", "ulimit -v 60000000 && exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_verdict"));
    assert_eq!(
        races_by(limited, &program, &[]),
        races(&program, &["--explain-sync"])
    );
}

/// The engine's own accesses are not refused instead of the guest's.
#[test]
fn accesses_that_are_checked_for_their_alignment() {
    both_ways("looks_checked.c", &[(9, 17)]);
}

#[test]
fn a_function_that_is_left_by_unwinding() {
    both_ways("looks_unwound.c", &[(11, 28), (13, 28)]);
}

#[test]
fn an_allocator_of_the_programs_own() {
    both_ways("looks_allocator.c", &[(33, 33)]);
}

#[test]
fn memory_whose_address_is_stored_by_a_library() {
    both_ways("looks_aligned.c", &[(10, 10)]);
}

#[test]
fn handlers_of_signals() {
    both_ways("looks_handler.c", &[(10, 10), (16, 16), (16, 18), (18, 18)]);
}

#[test]
fn a_loop_that_ends_in_a_fault() {
    both_ways("looks_crashing.c", &[(11, 17)]);
}
