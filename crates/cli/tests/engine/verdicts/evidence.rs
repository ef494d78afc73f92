//! Every piece of evidence is a recording that replays, every time, to the end that it is evidence of.
//!
//! `VERDICT_EVIDENCE_REPLAYS` says how often; `cargo xtask soak classify` raises it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use verdict_corpus::{Opt, case};

use super::{Classified, built, classify, number};

/// How a replay ended: its exit code, or that of the signal, and what it wrote.
pub(super) fn replay(recording: &Path) -> (Option<i32>, Vec<u8>, String) {
    replay_with(&[], recording)
}

/// The same of a replay that looks for memory errors.
pub(super) fn replay_looking(recording: &Path) -> (Option<i32>, Vec<u8>, String) {
    replay_with(&["--memory-errors"], recording)
}

fn replay_with(options: &[&str], recording: &Path) -> (Option<i32>, Vec<u8>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .arg("replay")
        .args(options)
        .arg(recording)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr).into_owned();
    (run.status.code(), run.stdout, errors)
}

/// Recordings that the document names, each once.
fn recordings(classified: &Classified) -> Vec<PathBuf> {
    let document: Value = serde_json::from_str(&classified.document).unwrap();
    let mut all: Vec<_> = document["races"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|race| race["evidence"].as_array().cloned().unwrap_or_default())
        .filter_map(|path| path.as_str().map(str::to_owned))
        .map(|path| located(classified, &Value::from(path)))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Where a recording that the document names is.
fn located(classified: &Classified, path: &Value) -> PathBuf {
    let folder = fs::canonicalize(classified.folder.path()).unwrap();
    folder.join(path.as_str().unwrap().replace("FOLDER/", ""))
}

/// Replays the evidence on every race so often: each time it must show the same, and what the verdict says.
pub(super) fn check_all(name: &str, classified: &Classified, times: usize) {
    for recording in recordings(classified) {
        let first = replay(&recording);
        let what = format!("{name}: {}", recording.display());
        assert!(!first.2.contains("another way"), "{what}: {}", first.2);
        for _ in 1..times {
            assert!(replay(&recording) == first, "{what}: replays differ");
        }
    }
    let document: Value = serde_json::from_str(&classified.document).unwrap();
    for race in document["races"].as_array().unwrap() {
        let evidence = race["evidence"].as_array().cloned().unwrap_or_default();
        let [shows, other, ..] = evidence.as_slice() else {
            continue;
        };
        let [shows, other] = [shows, other].map(|path| located(classified, path));
        if !race["consequence"]["block"].is_null() {
            check_memory_error(name, race, &shows, times);
            continue;
        }
        let [shows, other] = [shows, other].map(|path| replay(&path));
        let kind = race["consequence"]["kind"].as_str().unwrap_or_default();
        let shown = match (race["class"].as_str().unwrap(), kind) {
            ("output-differs", _) => (shows.0, &shows.1) != (other.0, &other.1),
            ("spec-violated", "crash" | "abort" | "assertion" | "exception") => {
                shows.0.is_none_or(|code| code > 100)
            }
            // The library has noticed, or the execution was stopped where the memory is misused.
            ("spec-violated", "memory-error") => {
                shows.0.is_none_or(|code| code > 100) || shows.2.contains("was stopped")
            }
            _ => true,
        };
        assert!(shown, "{name}: {} is not shown by its evidence", race["id"]);
    }
}

/// Nothing comes of a memory error that was looked for: each replay that looks for it must see it.
fn check_memory_error(name: &str, race: &Value, recording: &Path, times: usize) {
    let place = race["consequence"]["stack"][0]["line"].to_string();
    let first = replay_looking(recording);
    let said = &first.2;
    assert!(said.starts_with("memory error: "), "{name}: {said}");
    assert!(said.contains(&place), "{name}, line {place}: {said}");
    for _ in 1..times {
        assert!(replay_looking(recording) == first, "{name}: replays differ");
    }
}

/// Replays all evidence on a program; `expected` must be said by one of the replays.
fn check(name: &str, expected: &str) {
    let case = case(name);
    let classified = classify(case, &built(case, Opt::O0), &["--jobs", "2"]);
    let recordings = recordings(&classified);
    assert!(recordings.len() > 1, "{name}: no evidence");
    let mut shown = false;
    for recording in recordings {
        let first = replay(&recording);
        let what = format!("{name}: {}", recording.display());
        assert!(!first.2.contains("another way"), "{what}: {}", first.2);
        for _ in 1..number("VERDICT_EVIDENCE_REPLAYS", 2) {
            assert!(replay(&recording) == first, "{what}: replays differ");
        }
        shown |= first.2.contains(expected) || String::from_utf8_lossy(&first.1).contains(expected);
    }
    assert!(shown, "{name}: no replay says {expected:?}");
}

#[test]
fn a_crash() {
    check("effects/null_dereference.c", "SIGSEGV");
}

#[test]
fn another_output() {
    check("papers/portend_fig14c.c", "STAT time 41");
}

#[test]
fn a_deadlock() {
    check("effects/lost_wakeup.c", "wait");
}

#[test]
fn a_crash_after_time_has_passed_for_sleepers_alone() {
    check("papers/racefuzzer_cache_cleaner.c", "SIGUSR1");
}
