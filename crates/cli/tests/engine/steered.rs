//! `verdict confirm` on guests that were made for it: what makes threads wait, cycles of locks, an access between two others,
//! lines that cannot race; and the same bytes whatever the number of runs at a time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::tools::{build, tool};
use serde_json::Value;

fn guest(name: &str) -> PathBuf {
    let gcc = tool("gcc", "gcc");
    build(name, &[&gcc, "-O1", "-g", "-pthread"])
}

/// The line of a source that has this in it.
fn line(source: &str, mark: &str) -> usize {
    let at = source.lines().position(|line| line.contains(mark));
    at.unwrap_or_else(|| panic!("no line with {mark}")) + 1
}

fn confirm(options: &[&str], binary: &Path, args: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["confirm", "--format", "json", "--runs", "10"])
        .args(options)
        .arg("--")
        .arg(binary)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What is said, as a document.
fn told(options: &[&str], binary: &Path, args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let run = confirm(options, binary, args, folder.path());
    let stderr = String::from_utf8_lossy(&run.stderr);
    serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|error| panic!("{options:?} {args:?}: {error}: {stderr}"))
}

/// Threads that spin, sleep, give up after a while, are woken by signals or take locks again and again are not stuck,
/// however long one of them is kept at its site; nor are two hundred.
#[test]
fn waiting_is_not_being_stuck() {
    let binary = guest("steered.c");
    let line = line(include_str!("guests/steered.c"), "// the race");
    let pair = format!("--pair=steered.c:{line},steered.c:{line}");
    let kinds = [
        "spin", "sleep", "timeout", "signal", "alarm", "locks", "many",
    ];
    for kind in kinds {
        let document = told(&[&pair], &binary, &[kind]);
        let tried = &document["races"][0]["confirmation"];
        println!("{kind}: {} of {} runs", tried["hits"], tried["runs"]);
        assert_eq!(tried["errors"], Value::Null, "{kind}");
        assert_eq!(document["coverage"], Value::Array(Vec::new()), "{kind}");
        // A thread that spins until the other has passed its site never meets it there; for one that sleeps, waits with a
        // timeout or is woken by signals, time passes until it comes.
        let hits = if kind == "spin" { 0 } else { 10 };
        assert_eq!(tried["hits"], hits, "{kind}");
    }
}

/// Two lines that only read are no race in any execution; they are not even tried.
#[test]
fn two_reads_are_refuted() {
    let line = line(include_str!("guests/steered.c"), "while (!ready)");
    let pair = format!("--pair=steered.c:{line},steered.c:{line}");
    let document = told(&[&pair], &guest("steered.c"), &["spin"]);
    let race = &document["races"][0];
    assert_eq!(race["confirmed"], false);
    assert_eq!(race["confirmation"]["runs"], 0);
    let why = race["confirmation"]["refuted"].as_str().unwrap();
    assert!(why.contains("neither line writes"), "{why}");
}

/// How many runs are made at a time changes no byte of what is said.
#[test]
fn jobs_change_nothing() {
    let binary = guest("between.c");
    let source = include_str!("guests/between.c");
    let pair = |first: &str, second: &str| {
        let (first, second) = (line(source, first), line(source, second));
        format!("--pair=between.c:{first},between.c:{second}")
    };
    let pairs = [
        pair("// looks", "// charges"),
        pair("// takes", "// charges"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let with = |jobs: &str| {
        let options = ["--jobs", jobs, &pairs[0], &pairs[1]];
        confirm(&options, &binary, &[], folder.path()).stdout
    };
    let one = with("1");
    assert!(!one.is_empty());
    assert_eq!(
        String::from_utf8_lossy(&one),
        String::from_utf8_lossy(&with("4"))
    );
}

/// What comes between two accesses that belong together: there is no data race, and yet an assertion fails.
#[test]
fn an_access_between_two_others() {
    let binary = guest("between.c");
    let source = include_str!("guests/between.c");
    let [looks, takes, charges] =
        ["// looks", "// takes", "// charges"].map(|mark| line(source, mark));
    let triple = format!("--triple=between.c:{looks},between.c:{takes},between.c:{charges}");
    let options = ["--target", "atomicity", &triple];
    let apart = &told(&options, &binary, &["apart"])["races"][0];
    assert_eq!(apart["confirmed"], true, "{apart}");
    let tried = &apart["confirmation"];
    let error = &tried["errors"][0];
    assert_eq!(error["kind"], "assertion", "{tried}");
    assert_eq!(
        error["runs"], tried["hits"],
        "whenever it comes between, the balance is wrong: {tried}"
    );
    let stacks = tried["stacks"].as_array().unwrap();
    for (stack, function) in stacks.iter().zip(["withdraw", "charge"]) {
        let frames = stack.as_array().unwrap();
        assert!(
            frames.iter().any(|frame| frame["function"] == function),
            "{tried}"
        );
    }
    let together = &told(&options, &binary, &["together"])["races"][0];
    assert_eq!(together["confirmed"], false, "{together}");
}

fn deadlocks(kind: &str) -> Value {
    told(&["--target", "deadlock"], &guest("lock_cycle.c"), &[kind])
}

/// Cycles of two and of three locks are steered to, and shown with who waits for whom.
#[test]
fn locks_in_different_orders() {
    for (kind, length) in [("2", 2), ("3", 3)] {
        let document = deadlocks(kind);
        let cycles = document["cycles"].as_array().unwrap();
        assert_eq!(cycles.len(), 1, "{document}");
        let cycle = &cycles[0];
        assert_eq!(cycle["steps"].as_array().unwrap().len(), length);
        assert_eq!(cycle["confirmed"], true, "{cycle}");
        let stuck = cycle["stuck"].as_array().unwrap();
        assert_eq!(stuck.len(), length);
        for (index, thread) in stuck.iter().enumerate() {
            let next = &stuck[(index + 1) % length];
            assert_eq!(thread["owner"], next["thread"], "{cycle}");
            let frames = thread["stack"].as_array().unwrap();
            assert!(
                frames.iter().any(|frame| frame["function"] == "both"),
                "{cycle}"
            );
            let names = ["left", "middle", "right"].map(Value::from);
            assert!(names.contains(&thread["waits_for"]), "{cycle}");
        }
    }
}

/// A lock that both threads hold meanwhile keeps them apart.
#[test]
fn a_gate_makes_a_cycle_harmless() {
    assert_eq!(deadlocks("gate")["cycles"], Value::Array(Vec::new()));
}
