//! `verdict detect --budget`: of a long run only parts are looked at. What is told of them is true, the same every time, and goes with
//! how much was looked at.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tools::build;

const FLAGS: [&str; 4] = ["gcc", "-O1", "-g", "-pthread"];
/// A million instructions and more.
const ROUNDS: &str = "500";

/// The report on a run with these words, and how the command ended.
fn detect(program: &Path, options: &[&str], words: &[&str]) -> (Value, i32) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("races.json");
    let output = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["detect", "--format", "json", "--output"])
        .arg(&report)
        // Threads take turns in each part.
        .args(["--quantum", "3000"])
        .args(options)
        .arg("--")
        .arg(program)
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let written = std::fs::read(&report).unwrap_or_else(|error| panic!("{error}: {said}"));
    let document = serde_json::from_slice(&written).unwrap();
    (document, output.status.code().unwrap())
}

/// The variables that race.
fn variables(document: &Value) -> BTreeSet<&str> {
    let races = document["races"].as_array().unwrap().iter();
    races
        .map(|race| race["variable"]["name"].as_str().unwrap())
        .collect()
}

fn notes(document: &Value) -> Vec<&str> {
    let notes = document["coverage"].as_array().unwrap().iter();
    notes.map(|note| note["what"].as_str().unwrap()).collect()
}

fn is_of_parts(note: &&str) -> bool {
    note.starts_with("only ") && note.contains(" instructions (")
}

#[test]
fn what_is_ordered_between_the_parts_is_no_race_in_them() {
    let program = build("long_run.c", &FLAGS);
    for by in ["mutex", "atomic"] {
        // Parts begin and end everywhere, also while a thread waits.
        for budget in [
            "1k", "81k", "200001", "222k", "244k", "266k", "288k", "310k",
        ] {
            let (document, exit) = detect(&program, &["--budget", budget], &[ROUNDS, by]);
            assert_eq!(
                (variables(&document), exit),
                (BTreeSet::new(), 0),
                "{by} {budget}"
            );
            assert!(notes(&document).iter().any(is_of_parts), "{document}");
        }
    }
}

#[test]
fn a_race_of_the_whole_run_is_found_in_any_part_and_the_same_every_time() {
    let program = build("long_run.c", &FLAGS);
    for by in ["mutex", "atomic"] {
        let words = [ROUNDS, by, "always"];
        let (whole, _) = detect(&program, &[], &words);
        let id = |document: &Value| document["races"][0]["id"].clone();
        for budget in ["400k", "333k"] {
            let look = || detect(&program, &["--budget", budget], &words);
            let (document, exit) = look();
            assert_eq!(
                (variables(&document), exit),
                (BTreeSet::from(["always"]), 1)
            );
            assert_eq!(id(&document), id(&whole));
            assert_eq!(look().0, document, "{by} {budget}");
        }
    }
}

/// In the part in which the other one reads them, a thread that waits for nobody writes words that it has written before. It never comes
/// back to them: that it would be told of as soon as the other one had been there does not help.
#[test]
fn what_a_thread_did_in_an_earlier_part_is_told_again() {
    let program = build("long_run.c", &FLAGS);
    let words = ["1500", "nothing", "joined"];
    let (document, exit) = detect(&program, &["--budget", "1M"], &words);
    assert!(notes(&document).iter().any(is_of_parts), "{document}");
    let joined = |name: &&str| name.starts_with("joined");
    assert!(variables(&document).iter().any(joined), "{document}");
    assert_eq!(exit, 1);
}

#[test]
fn what_races_between_the_parts_is_not_seen_and_the_report_says_that_it_may_be_so() {
    let program = build("long_run.c", &FLAGS);
    let words = [ROUNDS, "mutex", "early", "late"];
    let (whole, _) = detect(&program, &[], &words);
    assert_eq!(variables(&whole), ["early", "late"].into());
    let (document, exit) = detect(&program, &["--budget", "400k"], &words);
    assert_eq!((variables(&document), exit), (["early"].into(), 1));
    assert!(notes(&document).iter().any(is_of_parts), "{document}");
}

#[test]
fn a_run_that_is_shorter_is_looked_at_as_a_whole() {
    let program = build("long_run.c", &FLAGS);
    let words = [ROUNDS, "mutex", "late"];
    assert_eq!(
        detect(&program, &["--budget", "1G"], &words),
        detect(&program, &[], &words)
    );
}
