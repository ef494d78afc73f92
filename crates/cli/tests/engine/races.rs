//! `verdict detect -- PROGRAM` on the whole corpus: what every run shows is reported at its two lines, and nothing else.
//! The tests print a table of what was reported, missed and false.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use verdict_corpus::{Case, Opt, Reported, build_all, cases, score};

/// The reported races as pairs of lines of the program's own file; line 0 is somewhere else.
fn reported(case: &Case, document: &Value) -> Vec<Reported> {
    let side = |access: &Value| {
        let own = access["file"].as_str().map(Path::new) == Some(&case.path);
        let line = access["line"].as_u64().filter(|_| own).unwrap_or(0);
        (line as u32, access["access"] == "write")
    };
    let races = document["races"].as_array().expect("a list of races");
    races
        .iter()
        .map(|race| Reported {
            first: side(&race["accesses"][0]),
            second: side(&race["accesses"][1]),
        })
        .collect()
}

fn detect(case: &Case, binary: &Path, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("races.json");
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args([
            "detect",
            "--format",
            "json",
            "--fail-on",
            "never",
            "--output",
        ])
        .arg(&output)
        .args(options)
        .arg("--")
        .arg(binary)
        .args(&case.truth.args)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let written = fs::read(&output).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&run.stderr);
        panic!("{}: no report ({error}): {stderr}", case.name)
    });
    serde_json::from_slice(&written).unwrap()
}

/// One line of the table, and whether it is as it should be.
fn line(case: &Case, opt: Opt, binary: &Path) -> (String, bool) {
    let document = detect(case, binary, &[]);
    let found = reported(case, &document);
    let score = score(&case.truth, opt, &found);
    let mut text = format!(
        "{:45} {:>3} reported {:>3} missed {:>3} false",
        case.name,
        found.len(),
        score.missed.len(),
        score.false_alarms.len()
    );
    for race in &score.missed {
        let _ = write!(text, "\n    missed {:?}", race.lines());
    }
    for alarm in &score.false_alarms {
        let _ = write!(text, "\n    false {:?} {:?}", alarm.first, alarm.second);
    }
    // What was taken for synchronisation is only known where the first look is at everything.
    let same = opt == Opt::O0 || detect(case, binary, &["--explain-sync"]) == document;
    if !same {
        text.push_str("\n    different with --explain-sync");
    }
    (text, score.perfect() && same)
}

fn whole_corpus(opt: Opt) {
    let wanted = std::env::var("VERDICT_CORPUS_CASE").unwrap_or_default();
    let cases: Vec<Case> = cases()
        .iter()
        .filter(|case| case.name.contains(&wanted))
        .cloned()
        .collect();
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let binaries = build_all(&cases, &[opt], jobs).unwrap_or_else(|error| panic!("{error}"));
    let lines = Mutex::new(vec![(String::new(), true); cases.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < cases.len())
        {
            let line = line(&cases[index], opt, &binaries[index]);
            lines.lock().unwrap()[index] = line;
        }
    };
    thread::scope(|scope| {
        (0..jobs).for_each(|_| drop(scope.spawn(work)));
    });
    let lines = lines.into_inner().unwrap();
    let table: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
    println!("{}", table.join("\n"));
    let wrong: Vec<&str> = lines
        .iter()
        .filter(|(_, right)| !right)
        .map(|(text, _)| text.as_str())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} programs at {opt}:\n{}",
        wrong.len(),
        lines.len(),
        wrong.join("\n")
    );
}

#[test]
fn unoptimised() {
    whole_corpus(Opt::O0);
}

#[test]
fn optimised() {
    whole_corpus(Opt::O2);
}
