//! Programs that are hard to run again and again: what is said of their races is right, and takes bounded time and space.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tools::{build, tool};

/// The races of a guest, with their verdicts.
fn races(source: &str) -> Vec<Value> {
    let gcc = tool("gcc", "gcc");
    let binary = build(source, &[&gcc, "-O0", "-g", "-pthread", "-w"]);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("verdicts.json");
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["classify", "--quiet", "--format", "json", "--output"])
        .arg(&output)
        .arg("--")
        .arg(&binary)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let text = std::fs::read(&output)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&run.stderr)));
    let document: Value = serde_json::from_slice(&text).unwrap();
    document["races"].as_array().unwrap().clone()
}

fn only(mut races: Vec<Value>) -> Value {
    assert_eq!(races.len(), 1, "one race");
    races.remove(0)
}

#[test]
fn one_that_starts_processes() {
    let race = only(races("judged_forks.c"));
    assert_eq!(race["class"], "output-differs");
    assert_eq!(race["output_difference"]["primary"]["text"], "seen 0\n");
}

#[test]
fn one_that_sleeps_for_hours() {
    let race = only(races("judged_sleeps.c"));
    assert_eq!(race["class"], "output-differs");
    assert_eq!(race["output_difference"]["primary"]["text"], "seen 1\n");
}

#[test]
fn one_that_crashes_as_it_is() {
    let race = only(races("judged_crashes.c"));
    assert_eq!(race["class"], "spec-violated");
    assert_eq!(race["consequence"]["kind"], "crash");
    let why = race["why"].as_str().unwrap();
    assert!(why.starts_with("in the recorded order"), "{why}");
}

#[test]
fn one_that_writes_far_more_than_is_kept() {
    let race = only(races("judged_megabytes.c"));
    assert_eq!(race["class"], "output-differs");
}

#[test]
fn ten_thousand_instances_of_a_race() {
    let races = races("judged_instances.c");
    assert!(!races.is_empty());
    for race in races {
        let instances = &race["replay"]["instances"];
        let tried = ["no-state-change", "state-change", "replay-failure"]
            .iter()
            .map(|word| instances[*word].as_u64().unwrap())
            .sum::<u64>();
        assert!((1..=4).contains(&tried), "{instances}");
    }
}
