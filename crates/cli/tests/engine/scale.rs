//! Races are found in programs of a size that people have: a thousand threads at once, gigabytes of address space, runs whose
//! two accesses lie far apart; and the memory that it takes is in proportion to what the program itself takes.
//!
//! `cargo xtask soak detect` runs the same with far more instructions and prints what was measured.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tools::build_c;

/// The goal: so many times the memory of the program itself,
const TIMES: u64 = 4;
/// and what our two processes take with the smallest of programs. Most of it is our own code, and the debug information of
/// the C library, which is read to name the functions below `main` once there is a race to report.
const FIXED_BYTES: u64 = 64 << 20;

/// How often the processes are looked at. Each one's peak is the kernel's own figure: only what happens within the last
/// moment of a process can be missed.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A guest and what is true of it.
struct Scaled {
    source: &'static str,
    args: Vec<String>,
    /// Marks in the source, `RACE(name)`, and how many races have their lines among those with the mark.
    races: Vec<(&'static str, usize)>,
}

/// Looks for its races and compares all that there are with the marks, and the memory with the goal.
fn check(scaled: &Scaled) {
    let program = build_c(scaled.source);
    let native = native_peak(&program, &scaled.args);
    let started = Instant::now();
    let (document, peak) = detect(&program, &scaled.args);
    let seconds = started.elapsed().as_secs_f64();
    let allowed = TIMES * native + FIXED_BYTES;
    println!(
        "{} {}: {seconds:.1} s, {} MB; natively {} MB, so {} MB are allowed",
        scaled.source,
        scaled.args.join(" "),
        peak >> 20,
        native >> 20,
        allowed >> 20
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/engine/guests")
        .join(scaled.source);
    let source = fs::read_to_string(source).unwrap();
    let mut found = pairs_of_lines(&document);
    for (name, count) in &scaled.races {
        let lines = marked(&source, name);
        let before = found.len();
        found.retain(|pair| !pair.iter().all(|line| lines.contains(line)));
        assert_eq!(before - found.len(), *count, "races {name} at {lines:?}");
    }
    assert!(found.is_empty(), "no races: lines {found:?}");
    assert!(
        peak <= allowed,
        "{peak} bytes at most, {allowed} are allowed"
    );
}

/// Lines with a mark.
fn marked(source: &str, name: &str) -> Vec<u64> {
    let mark = format!("RACE({name})");
    let lines = (1..).zip(source.lines());
    let marked = lines.filter(|(_, line)| line.contains(&mark));
    marked.map(|(number, _)| number).collect()
}

fn pairs_of_lines(document: &Value) -> Vec<[u64; 2]> {
    let races = document["races"].as_array().expect("a list of races");
    let line = |race: &Value, side: usize| race["accesses"][side]["line"].as_u64().unwrap_or(0);
    let pairs = races.iter().map(|race| [line(race, 0), line(race, 1)]);
    pairs.collect()
}

/// What the guest says of itself at its end.
fn native_peak(program: &Path, args: &[String]) -> u64 {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let words = said.lines().find_map(|line| line.strip_prefix("peak "));
    let kilobytes: u64 = words
        .and_then(|words| words.strip_suffix(" kB"))
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("it does not say what it took: {said}"));
    kilobytes << 10
}

/// The report, and the most memory that our processes had together.
fn detect(program: &Path, args: &[String]) -> (Value, u64) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("races.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["detect", "--format", "json", "--fail-on", "never"])
        .arg("--output")
        .arg(&report)
        .arg("--")
        .arg(program)
        .args(args)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let peak = peak_until_end(&mut child);
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    let written = fs::read(&report).unwrap_or_else(|error| panic!("no report ({error}): {said}"));
    (serde_json::from_slice(&written).unwrap(), peak)
}

fn peak_until_end(child: &mut Child) -> u64 {
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_of(child.id()));
        sleep(LOOK_EVERY);
    }
    peak
}

/// The peaks of a process and of all that it has started, in bytes. Pages that two of them share count twice.
fn peak_of(process: u32) -> u64 {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let own = read("status")
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .unwrap_or(0);
    let own_words = read("cmdline");
    let threads = fs::read_dir(folder.join("task")).into_iter();
    let lists = threads
        .flatten()
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let children = lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|number| number.parse::<u32>().ok())
        // One that has not executed its program yet has the memory of its parent.
        .filter(|child| {
            fs::read_to_string(format!("/proc/{child}/cmdline"))
                .is_ok_and(|words| words != own_words)
        });
    (own << 10) + children.map(peak_of).sum::<u64>()
}

#[test]
fn a_thousand_threads_at_once() {
    check(&Scaled {
        source: "scale_threads.c",
        args: Vec::new(),
        // The update is a load and a store: each races with the store.
        races: vec![("votes", 2), ("handed", 1)],
    });
}

#[test]
fn gigabytes_of_address_space_touched_here_and_there() {
    check(&Scaled {
        source: "scale_sparse.c",
        args: Vec::new(),
        races: vec![("far", 2)],
    });
}

/// The soak's rounds come to 10^10 instructions.
#[test]
fn accesses_that_lie_a_whole_run_apart() {
    let rounds = std::env::var("VERDICT_SCALE_ROUNDS");
    check(&Scaled {
        source: "scale_long.c",
        args: vec![rounds.unwrap_or_else(|_| "2000".to_owned())],
        races: vec![("far apart", 1)],
    });
}
