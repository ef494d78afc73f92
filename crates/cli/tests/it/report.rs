//! `verdict report`, `list` and `mark`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use expect_test::{expect, expect_file};
use tempfile::TempDir;
use verdict_history::{Entry, Log, Run, Seen, Severity};

use crate::transcript::{check, check_in, transcript, verdict};

/// A project with a result folder, made up by hand.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("verdict-out")).unwrap();
    fs::write(folder.path().join("verdict-out/results.json"), fixture()).unwrap();
    folder
}

fn fixture() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/it/one_of_each.json");
    fs::read_to_string(path).unwrap()
}

/// Earlier runs, as the project's history has them.
fn remember(folder: &Path, races: &[(&str, Severity)]) {
    let seen = races.iter().map(|(id, severity)| Seen {
        id: (*id).to_owned(),
        severity: *severity,
        headline: format!("what {id} does"),
    });
    let run = Run {
        day: "2026-11-15".parse().unwrap(),
        program: "./pipeline".to_owned(),
        args: Vec::new(),
        races: seen.collect(),
        token: String::new(),
    };
    Log::in_folder(&folder.join(".verdict"))
        .append(&Entry::Run(run))
        .unwrap();
}

#[test]
fn text_is_what_is_printed() {
    let project = project();
    let output = verdict(project.path(), &["report", "verdict-out"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/it/one_of_each.txt");
    expect_file![expected].assert_eq(&String::from_utf8(output.stdout).unwrap());
}

#[test]
fn files_are_written_beside_the_results() {
    let project = project();
    check_in(
        project.path(),
        &[
            "report",
            "verdict-out",
            "--html",
            "--sarif",
            "--json=races.json",
            "--fail-on",
            "never",
        ],
        &expect![[r#"
            --- stderr
            verdict-out/report.html: written
            verdict-out/report.sarif: written
            races.json: written
            --- exit 0
        "#]],
    );
    let read = |name: &str| fs::read_to_string(project.path().join(name)).unwrap();
    assert!(read("verdict-out/report.html").starts_with("<!DOCTYPE html>"));
    let sarif: serde_json::Value = serde_json::from_str(&read("verdict-out/report.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let json: serde_json::Value = serde_json::from_str(&read("races.json")).unwrap();
    assert_eq!(json["schema"], "verdict.verdicts/1");
}

#[test]
fn same_results_give_the_same_bytes() {
    let project = project();
    let made = |form: &str| {
        let arguments = ["report", "verdict-out", form];
        verdict(project.path(), &arguments).output().unwrap().stdout
    };
    for form in ["--text", "--html=-", "--sarif=-", "--json", "--github"] {
        let first = made(form);
        assert!(!first.is_empty());
        assert_eq!(first, made(form), "{form}");
    }
}

#[test]
fn worst_race_decides_on_the_exit_code() {
    let project = project();
    let exit = |limit: &str| {
        let arguments = ["report", "verdict-out", "--fail-on", limit];
        verdict(project.path(), &arguments)
            .output()
            .unwrap()
            .status
            .code()
            .unwrap()
    };
    let limits = ["spec-violated", "output-differs", "any", "never"];
    assert_eq!(limits.map(exit), [1, 1, 1, 0]);
    let harmless = fixture().replace(
        r#""class": "spec-violated""#,
        r#""class": "k-witness-harmless""#,
    );
    let harmless = harmless.replace(
        r#""class": "output-differs""#,
        r#""class": "single-ordering""#,
    );
    fs::write(project.path().join("verdict-out/results.json"), harmless).unwrap();
    assert_eq!(limits.map(exit), [0, 0, 1, 0]);
}

#[test]
fn what_is_no_result_is_said() {
    let project = project();
    check_in(
        project.path(),
        &["report", "nowhere"],
        &expect![[r#"
        --- stderr
        error: nowhere: there is no such folder
        help: `verdict run -- PROGRAM` makes a result folder
        --- exit 2
    "#]],
    );
    fs::create_dir(project.path().join("empty")).unwrap();
    check_in(
        project.path(),
        &["report", "empty"],
        &expect![[r#"
        --- stderr
        error: empty: not a result folder: it has no results.json
        help: `verdict run -- PROGRAM` makes a result folder
        --- exit 2
    "#]],
    );
    fs::write(project.path().join("verdict-out/results.json"), "[]").unwrap();
    check_in(
        project.path(),
        &["report", "verdict-out"],
        &expect![[r#"
            --- stderr
            error: verdict-out/results.json: not a list of races or verdicts: invalid length 0, expected struct Head with 1 element at line 1 column 2
            --- exit 2
        "#]],
    );
    fs::write(
        project.path().join("other.json"),
        r#"{"schema":"verdict.detect/1"}"#,
    )
    .unwrap();
    check_in(
        project.path(),
        &["report", "other.json"],
        &expect![[r#"
        --- stderr
        error: other.json: schema `verdict.detect/1` is not known; known are `verdict.races/1` and `verdict.verdicts/1`
        --- exit 2
    "#]],
    );
}

#[test]
fn folder_whose_name_is_not_text() {
    let project = project();
    let strange = std::ffi::OsStr::from_bytes(b"r\xe9sultats");
    fs::rename(
        project.path().join("verdict-out"),
        project.path().join(strange),
    )
    .unwrap();
    let mut command = verdict(project.path(), &["report", "--html", "--text"]);
    let output = command.arg(strange).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(r"verdict replay $'r\xe9sultats/evidence/"),
        "{text}"
    );
    assert!(project.path().join(strange).join("report.html").exists());
}

#[test]
fn marked_races_are_not_reported_until_they_are_worse() {
    let project = project();
    let (harmless, crash) = ("c0ffee000004", "c0ffee000001");
    remember(
        project.path(),
        &[
            (harmless, Severity::KWitnessHarmless),
            (crash, Severity::KWitnessHarmless),
        ],
    );
    let shown = |id: &str| {
        let output = verdict(project.path(), &["report", "verdict-out"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .contains(&format!("race {id};"))
    };
    assert!(shown(harmless) && shown(crash));
    for id in [harmless, crash] {
        let marked = verdict(
            project.path(),
            &["mark", id, "benign", "--reason", "on purpose"],
        )
        .output()
        .unwrap();
        assert!(marked.status.success());
    }
    assert!(!shown(harmless), "as marked");
    assert!(shown(crash), "it was harmless when it was marked");
    let opened = verdict(project.path(), &["mark", harmless, "open"])
        .output()
        .unwrap();
    assert!(opened.status.success());
    assert!(shown(harmless));
}

#[test]
fn known_races_are_listed() {
    let project = project();
    check_in(
        project.path(),
        &["list"],
        &expect![[r#"
        --- stdout
        no races are known
        --- exit 0
    "#]],
    );
    remember(
        project.path(),
        &[
            ("aa01", Severity::KWitnessHarmless),
            ("aa02", Severity::Unknown),
        ],
    );
    remember(
        project.path(),
        &[
            ("aa01", Severity::SpecViolated),
            ("bb\u{1b}[31m", Severity::OutputDiffers),
        ],
    );
    check_in(
        project.path(),
        &["list"],
        &expect![[r#"
        --- stdout
        aa01          spec-violated       what aa01 does
        aa02          unclassified        what aa02 does
        bb\u{1b}[31m  output-differs      what bb\u{1b}[31m does
        --- exit 0
    "#]],
    );
    check_in(
        project.path(),
        &["list", "--race", "aa01"],
        &expect![[r#"
            --- stdout
            aa01
              2026-11-15  k-witness-harmless  ./pipeline: what aa01 does
              2026-11-15  spec-violated       ./pipeline: what aa01 does
            --- exit 0
        "#]],
    );
    check_in(
        project.path(),
        &["list", "--race", "aa02", "--format", "json"],
        &expect![[r#"
            --- stdout
            {"races":[{"id":"aa02","mark":null,"verdicts":[{"day":"2026-11-15","headline":"what aa02 does","program":"./pipeline","severity":"unclassified"}],"worst":"unclassified"}],"schema":"verdict.known-races/1"}
            --- exit 0
        "#]],
    );
    check_in(
        project.path(),
        &["list", "--race", "cc"],
        &expect![[r#"
        --- stderr
        error: no known race has the id `cc`
        help: `verdict list` lists the known races
        --- exit 2
    "#]],
    );
    // The history is that of the project, from every folder of it.
    check_in(
        &project.path().join("verdict-out"),
        &["list", "--race", "aa02"],
        &expect![[r#"
            --- stdout
            aa02
              2026-11-15  unclassified        ./pipeline: what aa02 does
            --- exit 0
        "#]],
    );
}

#[test]
fn marks_need_a_race_a_reason_and_a_day_to_come() {
    let project = project();
    remember(
        project.path(),
        &[("aa01", Severity::Unknown), ("aa02", Severity::Unknown)],
    );
    check_in(
        project.path(),
        &["mark", "aa", "benign", "--reason", "x"],
        &expect![[r#"
            --- stderr
            error: `aa` is the beginning of 2 races
            help: `verdict list` lists the known races
            --- exit 2
        "#]],
    );
    check_in(
        project.path(),
        &["mark", "bb", "benign", "--reason", "x"],
        &expect![[r#"
            --- stderr
            error: no known race has the id `bb`
            help: `verdict list` lists the known races
            --- exit 2
        "#]],
    );
    check_in(
        project.path(),
        &["mark", "aa01", "benign"],
        &expect![[r#"
            --- stderr
            error: the following required arguments were not provided:
              --reason <TEXT>

            Usage: verdict mark --reason <TEXT> <ID> <OPINION>

            For more information, try '--help'.
            --- exit 2
        "#]],
    );
    check_in(
        project.path(),
        &["mark", "aa01", "benign", "--reason", " "],
        &expect![[r#"
            --- stderr
            error: the reason is empty
            --- exit 2
        "#]],
    );
    check_in(
        project.path(),
        &[
            "mark", "aa01", "benign", "--reason", "x", "--until", "tomorrow",
        ],
        &expect![[r#"
            --- stderr
            error: invalid value 'tomorrow' for '--until <DATE>': `tomorrow` is not a day; days are written as 2027-01-31

            For more information, try '--help'.
            --- exit 2
        "#]],
    );
    check_in(
        project.path(),
        &[
            "mark",
            "aa01",
            "benign",
            "--reason",
            "x",
            "--until",
            "2020-02-29",
        ],
        &expect![[r#"
            --- stderr
            error: the day of --until has passed already
            --- exit 2
        "#]],
    );
    check(
        &["list"],
        &expect![[r#"
        --- stdout
        no races are known
        --- exit 0
    "#]],
    );
}

#[test]
fn damaged_history_is_noticed_and_not_lost() {
    let project = project();
    remember(project.path(), &[("aa01", Severity::Unknown)]);
    let path = project.path().join(".verdict/history");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("nonsense\n{good}")).unwrap();
    let output = verdict(project.path(), &["list"]).output().unwrap();
    let shown = transcript(&output).replace(
        &format!("{}/", project.path().canonicalize().unwrap().display()),
        "",
    );
    expect![[r#"
        --- stdout
        aa01  unclassified        what aa01 does
        --- stderr
        .verdict/history: 1 damaged lines were skipped
        --- exit 0
    "#]]
    .assert_eq(&shown);
}
