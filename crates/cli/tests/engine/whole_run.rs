//! `verdict run`: the whole way from a program to a report, at once and in pieces.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::tools::tool;

/// A folder with the bundled example that has one race of each class, built.
fn project() -> TempDir {
    built("../../examples", "classes.c")
}

/// A folder with one program, built from a source file.
fn built(sources: &str, file: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(sources);
    let source = sources.join(file);
    let program = file.trim_end_matches(".c");
    let built = Command::new(tool("gcc", "gcc"))
        .args(["-g", "-pthread", "-o", program])
        .arg(source.canonicalize().unwrap())
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(built.success());
    folder
}

/// Where the example says this.
fn line_of(text: &str) -> usize {
    let source = include_str!("../../../../examples/classes.c");
    1 + source.lines().position(|line| line == text).unwrap()
}

fn verdict(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verdict"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    verdict(folder, arguments).output().unwrap()
}

const RUN: [&str; 5] = ["run", "--runs", "3", "--", "./classes"];

/// What is left in the result folder and is the same in every run.
fn results(folder: &Path) -> [Vec<u8>; 3] {
    ["results.json", "report.html", "report.sarif"]
        .map(|name| fs::read(folder.join("verdict-out").join(name)).unwrap())
}

#[test]
fn a_race_that_only_another_order_shows_is_reported() {
    let folder = built("tests/engine/guests", "judged_hidden.c");
    let arguments = ["run", "--runs", "3", "--", "./judged_hidden"];
    let first = run(folder.path(), &arguments);
    let text = String::from_utf8(first.stdout).unwrap();
    assert!(text.contains("found by hb, exploration"), "{text}");
    assert!(
        text.contains("=> writes something                     => writes nothing\n"),
        "{text}"
    );
    let commands = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("verdict replay "));
    let shown: Vec<String> = commands
        .map(|recording| {
            let replayed = run(folder.path(), &["replay", recording]);
            assert!(replayed.status.success(), "{recording}: {replayed:?}");
            String::from_utf8(replayed.stdout).unwrap()
        })
        .collect();
    assert_eq!(shown[..2], ["nothing\n", "something\n"]);
    // It is not looked for again.
    let again = run(folder.path(), &arguments);
    assert!(text.ends_with(&String::from_utf8(again.stdout).unwrap()));
}

#[test]
fn races_of_the_example_are_reported_and_remembered() {
    let folder = project();
    let first = run(folder.path(), &RUN);
    assert_eq!(
        first.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    let text = String::from_utf8(first.stdout).unwrap();
    for line in [
        "    used = 1;",
        "    opened = 1;",
        "    order = NULL;",
        "    delivered = 1;",
        "    price = 30;",
    ] {
        let place = format!("classes.c:{}:", line_of(line));
        assert!(text.contains(&place), "{place}: {text}");
    }
    assert!(
        text.contains("spec-violated  crash: ") && text.contains("output-differs  writes "),
        "{text}"
    );
    evidence_replays(folder.path(), &text);
    let crash = line_of("    order = NULL;");
    let both_orders = [
        format!("\n    T1 * writes order (classes.c:{crash})"),
        "=> segmentation fault (SIGSEGV)\n".to_owned(),
        "\n  => writes delivered: 0 ".to_owned(),
        "=> writes delivered: 1\n".to_owned(),
        "T0 * is kept from writing price\n".to_owned(),
        "=> thread 1 spins at classes.c:".to_owned(),
    ];
    for told in both_orders {
        assert!(text.contains(&told), "{told}: {text}");
    }
    assert!(text.contains("new: not seen in earlier runs"), "{text}");
    // The same run again has nothing left to do, and says the same.
    let again = run(folder.path(), &RUN);
    assert!(
        text.ends_with(&String::from_utf8(again.stdout.clone()).unwrap()),
        "but for the program's own output"
    );
    // Interrupted after it was written into the history, and before it knew: still one run, and still new.
    fs::remove_file(folder.path().join("verdict-out/since.json")).unwrap();
    let resumed = run(folder.path(), &RUN);
    assert_eq!(resumed.stdout, again.stdout);
    // Another run knows these races.
    let other = run(
        folder.path(),
        &["run", "--runs", "3", "-o", "other", "--", "./classes"],
    );
    let text = String::from_utf8(other.stdout).unwrap();
    assert!(
        text.contains("seen in earlier runs, too") && !text.contains("new: "),
        "{text}"
    );
    let known = run(folder.path(), &["list", "--format", "json"]);
    let known: serde_json::Value = serde_json::from_slice(&known.stdout).unwrap();
    assert!(
        known["races"]
            .as_array()
            .unwrap()
            .iter()
            .all(|race| race["verdicts"].as_array().unwrap().len() == 2)
    );
}

/// Every recording that the report names, as its class says.
fn evidence_replays(folder: &Path, report: &str) {
    let [results, ..] = results(folder);
    let results: serde_json::Value = serde_json::from_slice(&results).unwrap();
    let races = results["races"].as_array().unwrap();
    let commands = report
        .lines()
        .filter_map(|line| line.trim().strip_prefix("verdict replay "));
    let mut replayed = 0;
    for recording in commands {
        let has_it = |race: &&serde_json::Value| recording.contains(race["id"].as_str().unwrap());
        let race = races.iter().find(has_it).expect("it belongs to a race");
        let output = run(folder, &["replay", recording]);
        let ended = output.status.code().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let as_expected = match (race["class"].as_str().unwrap(), ended) {
            (_, 0) => true,
            ("spec-violated", 139) => true,
            // Only one order is possible: the recording of the other one shows how far that comes, and what everybody waits for.
            ("single-ordering", 3) => told.contains("stopped after as many instructions"),
            _ => false,
        };
        assert!(as_expected, "{recording}: {race:#}, {output:?}");
        replayed += 1;
    }
    assert!(replayed > races.len(), "some have two orders");
}

/// A random schedule after a race may lead to what another race does; with some of these seeds it does.
#[test]
fn harm_that_another_race_does_is_not_blamed_on_a_harmless_one() {
    let folder = project();
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let arguments = ["classify", "--format", "json", "--seed", seed];
        let classified = run(
            folder.path(),
            &[&arguments[..], &["--", "./classes"]].concat(),
        );
        let text = String::from_utf8(classified.stdout).unwrap();
        // The program's own output comes first.
        let document: serde_json::Value =
            serde_json::from_str(&text[text.find("\n{").unwrap()..]).unwrap();
        let mut classes: Vec<_> = document["races"]
            .as_array()
            .unwrap()
            .iter()
            .map(|race| race["class"].as_str().unwrap())
            .collect();
        classes.sort_unstable();
        let harmless = "k-witness-harmless";
        assert_eq!(
            classes,
            [
                harmless,
                harmless,
                "output-differs",
                "single-ordering",
                "spec-violated"
            ],
            "seed {seed}"
        );
    }
}

/// Nothing races in the recorded run, where one thread is done before the other begins.
#[test]
fn what_only_chance_has_ordered_is_brought_together_and_judged() {
    let folder = built("tests/engine/guests", "counted_out.c");
    let detected = run(folder.path(), &["detect", "--", "./counted_out"]);
    assert_eq!(detected.status.code(), Some(0), "{detected:?}");
    let ended = run(folder.path(), &["run", "--", "./counted_out"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let results = fs::read(folder.path().join("verdict-out/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&results).unwrap();
    let races = results["races"].as_array().unwrap();
    let crash = |race: &&serde_json::Value| race["class"] == "spec-violated";
    let crashes: Vec<_> = races.iter().filter(crash).collect();
    assert!(!crashes.is_empty(), "{results:#}");
    for race in races {
        assert_eq!(race["confirmed"], true, "{race:#}");
    }
    let evidence = crashes[0]["evidence"][0].as_str().unwrap();
    let replayed = run(&folder.path().join("verdict-out"), &["replay", evidence]);
    assert_eq!(replayed.status.code(), Some(128 + 8), "{replayed:?}");
}

#[test]
fn a_name_that_was_mistyped_can_be_typed_again() {
    let folder = project();
    let mistyped = run(folder.path(), &["run", "--", "./clases"]);
    assert_eq!(mistyped.status.code(), Some(3));
    assert!(!folder.path().join("verdict-out").exists());
    let again = run(folder.path(), &RUN);
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn evidence_shows_the_crash_where_nothing_else_is() {
    let folder = project();
    run(folder.path(), &RUN);
    let results = fs::read(folder.path().join("verdict-out/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&results).unwrap();
    let races = results["races"].as_array().unwrap();
    let crash = races.iter().find(|race| race["class"] == "spec-violated");
    let id = crash.unwrap()["id"].as_str().unwrap();
    let packed = run(folder.path(), &["evidence", &id[..6], "-o", "crash.vrec"]);
    assert_eq!(packed.status.code(), Some(0), "{packed:?}");
    // Somewhere else, after the program is gone.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(
        folder.path().join("crash.vrec"),
        elsewhere.path().join("seen.vrec"),
    )
    .unwrap();
    drop(folder);
    let replayed = run(elsewhere.path(), &["replay", "seen.vrec"]);
    assert_eq!(replayed.status.code(), Some(128 + 11), "{replayed:?}");
    let told = run(elsewhere.path(), &["report", "seen.vrec"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("spec-violated  crash: "), "{told}");
    assert!(told.contains("    verdict replay seen.vrec\n"), "{told}");
    assert_eq!(told.matches("verdict replay ").count(), 1, "{told}");
}

#[test]
fn evidence_that_cannot_be_had_is_refused() {
    let folder = project();
    let none = run(folder.path(), &["evidence", "abc"]);
    assert_eq!(none.status.code(), Some(2));
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(
        said.contains("verdict-out: there is no such folder"),
        "{said}"
    );
    let recorded = run(folder.path(), &["-q", "record", "--", "./classes"]);
    assert!(recorded.status.success());
    let report = run(folder.path(), &["report", "classes.vrec"]);
    assert_eq!(report.status.code(), Some(2));
    let said = String::from_utf8(report.stderr).unwrap();
    assert!(said.contains("is a recording without a report"), "{said}");
}

/// `VERDICT_INTERRUPTIONS` says how often; `cargo xtask soak faults` raises it.
fn interruptions() -> u32 {
    let asked = std::env::var("VERDICT_INTERRUPTIONS").ok();
    asked.map_or(5, |count| count.parse().expect("a number"))
}

#[test]
fn interrupted_at_any_moment_and_resumed_reports_the_same() {
    let interruptions = interruptions();
    let folder = project();
    let started = Instant::now();
    run(folder.path(), &RUN);
    let duration = started.elapsed();
    let expected = results(folder.path());
    for number in 0..interruptions {
        for forgotten in ["verdict-out", ".verdict"] {
            fs::remove_dir_all(folder.path().join(forgotten)).unwrap();
        }
        kill_after(folder.path(), duration.mul_f64(moment(number)));
        let resumed = run(folder.path(), &RUN);
        assert_eq!(
            resumed.status.code(),
            Some(1),
            "{}",
            String::from_utf8_lossy(&resumed.stderr)
        );
        assert!(results(folder.path()) == expected, "interruption {number}");
    }
}

/// A moment anywhere in a run, from 0 to 1: as random as a number in a list of random ones.
fn moment(number: u32) -> f64 {
    let mut bits = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31) as f64 / u64::MAX as f64
}

/// Runs until the moment has come, or the end.
fn kill_after(folder: &Path, moment: Duration) {
    let mut child = verdict(folder, &RUN)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Nobody ever sends: this is only about the time.
    let (_keep, alarm) = mpsc::channel::<()>();
    let _ = alarm.recv_timeout(moment);
    // It may have ended already.
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn another_program_does_not_go_on_with_these_results() {
    let folder = project();
    run(folder.path(), &RUN);
    let refused = run(
        folder.path(),
        &["run", "--runs", "3", "--", "./classes", "other"],
    );
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        message,
        "error: verdict-out: holds the results of a run with other arguments\n\
         help: `--restart` begins anew, `-o DIR` uses another folder\n"
    );
    let restarted = run(
        folder.path(),
        &[
            "run",
            "--runs",
            "3",
            "--restart",
            "--",
            "./classes",
            "other",
        ],
    );
    assert_eq!(restarted.status.code(), Some(1));
}

#[test]
fn program_that_cannot_be_run_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["run", "--", "./missing"]);
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn program_that_never_ends_is_ended_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut waiting = verdict(
        folder.path(),
        &["run", "--time-limit", "3", "--", "/bin/cat"],
    );
    // Nobody ever writes into it.
    let (input, _keep) = std::io::pipe().unwrap();
    let output = waiting.stdin(input).output().unwrap();
    let [text, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(text.starts_with("no races in /bin/cat"), "{text}");
}
