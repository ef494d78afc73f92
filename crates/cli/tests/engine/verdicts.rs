//! `verdict classify -- PROGRAM` on programs of the corpus: the class of each race is its truth's, and the same every time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use verdict_corpus::{Case, Needs, Observed, Opt, case};

fn classify(case: &Case, binary: &Path, jobs: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("verdicts.json");
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["classify", "--format", "json", "--jobs", jobs, "--output"])
        .arg(&output)
        .arg("--")
        .arg(binary)
        .args(&case.truth.args)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let written = fs::read_to_string(&output).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&run.stderr);
        panic!("{}: no verdicts ({error}): {stderr}", case.name)
    });
    // Evidence has the folder's name in it, which is another one every time.
    let folder = fs::canonicalize(folder.path()).unwrap();
    written.replace(&folder.display().to_string(), "FOLDER")
}

/// The worst class that was said of the races at a pair of lines.
fn class(case: &Case, document: &Value, lines: (u32, u32)) -> String {
    const WORST_FIRST: [&str; 4] = [
        "spec-violated",
        "output-differs",
        "k-witness-harmless",
        "single-ordering",
    ];
    let line = |access: &Value| {
        let own = access["file"].as_str().map(Path::new) == Some(&case.path);
        access["line"].as_u64().filter(|_| own).unwrap_or(0) as u32
    };
    let races: Vec<&Value> = document["races"]
        .as_array()
        .expect("a list of races")
        .iter()
        .filter(|race| {
            let pair = (line(&race["accesses"][0]), line(&race["accesses"][1]));
            pair == lines || pair == (lines.1, lines.0)
        })
        .collect();
    let worst = WORST_FIRST
        .iter()
        .find(|word| races.iter().any(|race| race["class"] == **word));
    worst.map_or("none".into(), |word| (*word).to_string())
}

/// Every race that each run shows, and whose class takes no more than other schedules to find.
fn check(name: &str) {
    let case = case(name);
    let binary = case
        .build(Opt::O0)
        .unwrap_or_else(|error| panic!("{error}"));
    let document: Value = serde_json::from_str(&classify(case, &binary, "1")).unwrap();
    let mut checked = 0;
    for race in &case.truth.races {
        if race.observed != Observed::Always || race.needs != Needs::None {
            continue;
        }
        let found = class(case, &document, race.lines());
        let right = found == race.class.word() || race.or.is_some_and(|or| found == or.word());
        assert!(
            right,
            "{name} {}: {found}, not {}",
            race.id,
            race.class.word()
        );
        checked += 1;
    }
    assert!(checked > 0, "{name} has no race to check");
}

#[test]
fn a_harmless_race_and_ad_hoc_synchronisation() {
    check("papers/portend_fig1.c");
}

#[test]
fn a_race_that_crashes() {
    check("papers/portend_fig14a.c");
}

#[test]
fn a_race_that_changes_the_output() {
    check("papers/portend_fig14c.c");
}

#[test]
fn redundant_writes_are_harmless() {
    check("papers/portend_fig14b.c");
    check("papers/portend_fig8.c");
}

#[test]
fn four_races_of_two_variables() {
    check("papers/portend_fig17a.c");
}

#[test]
fn the_same_verdicts_every_time_with_any_number_of_jobs() {
    let case = case("papers/portend_fig14c.c");
    let binary = case
        .build(Opt::O0)
        .unwrap_or_else(|error| panic!("{error}"));
    let first = classify(case, &binary, "1");
    for jobs in ["1", "2", "4"] {
        assert!(first == classify(case, &binary, jobs), "with {jobs} jobs");
    }
}
