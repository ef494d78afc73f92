//! What `verdict detect` says of accesses that do not race in a run and may in another: apart from the races, and only for runs that are short.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use expect_test::expect;
use serde_json::Value;
use tempfile::TempDir;

use crate::tools::tool;

/// Builds the guest in a folder of its own, where its source has a short name.
fn built(options: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = include_str!("guests/handed_over.c");
    fs::write(folder.path().join("handed_over.c"), source).unwrap();
    let built = Command::new(tool("gcc", "gcc"))
        .args([
            "-g",
            "-O0",
            "-pthread",
            "-o",
            "handed_over",
            "handed_over.c",
        ])
        .args(options)
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(built.success());
    folder
}

fn verdict(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The report on the guest, which must end with this code.
fn report(folder: &TempDir, options: &[&str], code: i32) -> String {
    let words = [
        &["detect", "-o", "report"],
        options,
        &["--", "./handed_over"],
    ]
    .concat();
    let output = verdict(folder.path(), &words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    fs::read_to_string(folder.path().join("report")).unwrap()
}

fn document(folder: &TempDir, options: &[&str]) -> Value {
    let text = report(folder, &[options, &["--format", "json"]].concat(), 0);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_a_lock_orders_by_chance_is_no_race_and_told_apart() {
    let folder = built(&["-DTURNS=200000"]);
    expect![[r#"
        no races in ./handed_over

        could race in another run: 1 pair of lines that no lock keeps apart
          handed_over.c:14 (produce) writes, handed_over.c:44 (consume) reads
          `verdict confirm -- ./handed_over` steers runs to them: those that meet are
            races
    "#]]
    .assert_eq(&report(&folder, &[], 0));
    assert_eq!(report(&folder, &[], 0), report(&folder, &[], 0));
}

#[test]
fn in_json_it_is_told_as_races_are() {
    let folder = built(&["-DTURNS=200000"]);
    let document = document(&folder, &[]);
    assert_eq!(document["schema"], "verdict.races/1");
    assert_eq!(document["races"], serde_json::json!([]));
    assert_eq!(document["coverage"], serde_json::json!([]));
    let threads = document["threads"].as_array().unwrap().iter();
    let threads: Vec<_> = threads.map(|thread| &thread["name"]).collect();
    assert_eq!(threads, ["main", "produce", "consume"]);
    let mut predictions = document["predictions"].clone();
    // Where exactly is for the compiler to say.
    for access in predictions[0]["accesses"].as_array_mut().unwrap() {
        let fields = access.as_object_mut().unwrap();
        for field in ["module", "offset", "stack", "source", "file"] {
            assert!(fields.remove(field).is_some(), "{field}");
        }
    }
    let fields = predictions[0].as_object_mut().unwrap();
    for field in ["address", "variable"] {
        assert!(fields.remove(field).is_some(), "{field}");
    }
    expect![[r#"
        [
          {
            "accesses": [
              {
                "access": "write",
                "atomic": false,
                "column": 12,
                "function": "produce",
                "line": 14,
                "locks": [],
                "size": 4,
                "thread": 1
              },
              {
                "access": "read",
                "atomic": false,
                "column": 10,
                "function": "consume",
                "line": 44,
                "locks": [],
                "size": 4,
                "thread": 2
              }
            ],
            "conflict": "flow",
            "found_by": [
              "hybrid"
            ],
            "id": "942353ad83e4",
            "instances": 0
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&predictions).unwrap());
}

#[test]
fn a_recording_is_read_in_the_same_way() {
    let folder = built(&["-DTURNS=200000"]);
    let told = report(&folder, &[], 0);
    verdict(
        folder.path(),
        &["record", "-o", "run.vrec", "--", "./handed_over"],
    );
    let again = verdict(folder.path(), &["detect", "-o", "again", "run.vrec"]);
    assert_eq!(again.status.code(), Some(0));
    let again = fs::read_to_string(folder.path().join("again")).unwrap();
    assert_eq!(again, told);
}

#[test]
fn nothing_is_predicted_of_what_a_lock_protects() {
    let folder = built(&["-DTURNS=200000", "-DPROTECTED"]);
    expect![[r#"
        no races in ./handed_over
    "#]]
    .assert_eq(&report(&folder, &[], 0));
    assert!(document(&folder, &[]).get("predictions").is_none());
}

#[test]
fn who_says_how_to_look_gets_nothing_beside() {
    let folder = built(&["-DTURNS=200000"]);
    let told = document(&folder, &["--algorithm", "hb"]);
    assert!(told.get("predictions").is_none(), "{told}");
}

#[test]
fn predictions_are_filtered_and_suppressed_as_races_are() {
    let folder = built(&["-DTURNS=200000"]);
    expect![[r#"
        no races in ./handed_over

        not covered
          detect: 1 prediction is not told, as the options ask for
    "#]]
    .assert_eq(&report(&folder, &["--ignore", "consume"], 0));
    fs::write(
        folder.path().join("known.txt"),
        "variable result because rare",
    )
    .unwrap();
    expect![[r#"
        no races in ./handed_over
    "#]]
    .assert_eq(&report(&folder, &["--suppressions", "known.txt"], 0));
}

#[test]
fn of_a_long_run_it_is_told_that_nobody_looked() {
    let folder = built(&["-DTURNS=5000000"]);
    expect![[r#"
        no races in ./handed_over

        not covered
          detect: accesses that could race in another run were not looked for: the run
            is long; `--algorithm hybrid` or `verdict confirm` looks for them
    "#]]
    .assert_eq(&report(&folder, &[], 0));
}

#[test]
fn of_threads_that_share_much_it_is_told_that_nobody_looked() {
    let folder = built(&["-DTURNS=200000", "-DMANY=100000"]);
    expect![[r#"
        no races in ./handed_over

        not covered
          detect: accesses that could race in another run were not looked for: the
            threads share much memory; `--algorithm hybrid` or `verdict confirm` looks
            for them
    "#]]
    .assert_eq(&report(&folder, &[], 0));
}

#[test]
fn a_race_that_is_predicted_too_is_found_by_both() {
    let folder = built(&["-DTURNS=200000", "-DRACY"]);
    let text = report(&folder, &["--format", "json"], 1);
    let document: Value = serde_json::from_str(&text).unwrap();
    let of = |list: &str| -> Vec<String> {
        let list = document[list].as_array().unwrap().iter();
        let told = list.map(|race| {
            let lines = [0, 1].map(|side| &race["accesses"][side]["line"]);
            format!("{} {} {}", lines[0], lines[1], race["found_by"])
        });
        told.collect()
    };
    expect![[r#"
        (
            [
                "14 30 [\"hb\",\"hybrid\"]",
            ],
            [
                "14 44 [\"hybrid\"]",
            ],
        )"#]]
    .assert_eq(&format!("{:#?}", (of("races"), of("predictions"))));
}
