//! Programs that are hard to run again and again: what is said of their races is right, and takes bounded time and space.

use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::evidence::replay;
use crate::tools::{build, tool};

/// The races of a guest, with their verdicts.
fn races(source: &str) -> Vec<Value> {
    judged(source, &[], &[])
}

pub(super) fn judged(source: &str, options: &[&str], arguments: &[&str]) -> Vec<Value> {
    judged_in(source, options, arguments).1
}

/// The same, and the folder that has the evidence.
pub(super) fn judged_in(
    source: &str,
    options: &[&str],
    arguments: &[&str],
) -> (TempDir, Vec<Value>) {
    let gcc = tool("gcc", "gcc");
    let binary = build(source, &[&gcc, "-O0", "-g", "-pthread", "-w"]);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("verdicts.json");
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["classify", "--quiet", "--format", "json", "--output"])
        .arg(&output)
        .args(options)
        .arg("--")
        .arg(&binary)
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let text = std::fs::read(&output)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&run.stderr)));
    let document: Value = serde_json::from_slice(&text).unwrap();
    let races = document["races"].as_array().unwrap().clone();
    (folder, races)
}

pub(super) fn only(mut races: Vec<Value>) -> Value {
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
        // The first thread makes all its accesses before the second one: each meets the first of those. With a read and a
        // write, that is twice each.
        let not_tried = instances["not-tried"].as_u64().unwrap();
        let reads = race["accesses"][1]["access"] == "read";
        let expected = if reads { 20_000 } else { 10_000 };
        assert_eq!(tried + not_tried, expected, "{instances}");
    }
}

#[test]
fn a_thread_may_come_before_all_that_the_other_one_does() {
    let race = only(races("judged_first.c"));
    assert_eq!(race["class"], "output-differs");
    let written = ["primary", "alternate"].map(|side| &race["output_difference"][side]["text"]);
    assert_eq!(written, ["some\n", "none\n"]);
}

#[test]
fn a_thread_that_sees_the_same_before_all_writes_may_see_another_before_the_last() {
    let race = only(races("judged_back.c"));
    assert_eq!(race["class"], "output-differs");
    let written = ["primary", "alternate"].map(|side| &race["output_difference"][side]["text"]);
    assert_eq!(written, ["z", "y"]);
}

/// The race on a variable.
fn on<'a>(races: &'a [Value], variable: &str) -> &'a Value {
    let named = |race: &&Value| race["variable"]["name"] == variable;
    races
        .iter()
        .find(named)
        .unwrap_or_else(|| panic!("no race on {variable}"))
}

#[test]
fn a_crash_of_the_recorded_order_is_the_doing_of_the_race_whose_other_order_avoids_it() {
    let races = races("judged_blame.c");
    let guilty = on(&races, "name");
    assert_eq!(guilty["class"], "spec-violated");
    assert_eq!(guilty["consequence"]["kind"], "crash");
    let first = guilty["evidence"][0].as_str().unwrap();
    assert!(first.ends_with("primary.vrec"), "{first} shows the crash");
    let other = on(&races, "counted");
    assert_eq!(other["class"], "k-witness-harmless");
    let why = other["why"].as_str().unwrap();
    assert!(why.contains("not because of this race"), "{why}");
}

#[test]
fn evidence_has_as_few_preemptions_as_it_needs() {
    let (folder, races) = judged_in("judged_quietly.c", &[], &[]);
    let crashes = |race: &&Value| race["class"] == "spec-violated";
    let race = races.iter().find(crashes).expect("a race that crashes");
    let [recorded, other] = [0, 1].map(|nth: usize| &race["orders"][nth]);
    assert!(recorded["preemptions"].as_u64().unwrap() > 20, "{recorded}");
    assert_eq!(other["preemptions"], 1, "{other}");
    let evidence = folder.path().join(other["evidence"].as_str().unwrap());
    let first = replay(&evidence);
    assert_eq!(first.0, Some(128 + 11), "{}", first.2);
    assert!(!first.2.contains("another way"), "{}", first.2);
    for _ in 1..5 {
        assert!(replay(&evidence) == first, "replays differ");
    }
}

#[test]
fn what_the_author_wants_to_hold() {
    let race = only(races("judged_property.c"));
    assert_eq!(race["class"], "spec-violated");
    assert_eq!(race["consequence"]["kind"], "property");
    let detail = race["consequence"]["detail"].as_str().unwrap();
    assert_eq!(detail, "verdict_invariant_the_books_balance does not hold");
    let expression = "lowest <= 10 && balance > 0";
    let race = only(judged(
        "judged_property.c",
        &["--property", expression],
        &[],
    ));
    let detail = race["consequence"]["detail"].as_str().unwrap();
    assert_eq!(detail, "lowest <= 10 && balance > 0 does not hold");
}

#[test]
fn a_block_that_is_freed_before_it_is_read_although_nothing_crashes() {
    let race = only(races("judged_freed.c"));
    assert_eq!(race["class"], "spec-violated");
    assert_eq!(race["consequence"]["kind"], "memory-error");
    let detail = race["consequence"]["detail"].as_str().unwrap();
    assert_eq!(
        detail,
        "use after free: thread 0 reads from a block that thread 1 has freed"
    );
}
