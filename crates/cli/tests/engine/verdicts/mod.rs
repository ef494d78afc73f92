//! `verdict classify -- PROGRAM` on the corpus: the class of each race and what replaying both orders gives are its truth's, and
//! the same every time.
//!
//! `VERDICT_CLASSIFY_RUNS` says how often each program is classified, `VERDICT_CLASSIFY_ONLY` which ones are,
//! `VERDICT_EVIDENCE_REPLAYS` how often the evidence on each is replayed; `cargo xtask soak classify` sets them.

mod compared;
mod evidence;
mod explored;
mod guests;
mod memory;
mod table;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use verdict_corpus::{Case, Opt, case};

use table::{Row, rows};

/// What one run of `verdict classify` left.
struct Classified {
    folder: TempDir,
    /// The document, with `FOLDER` for the folder's name, which is another one every time.
    document: String,
}

fn classify(case: &Case, binary: &Path, options: &[&str]) -> Classified {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("verdicts.json");
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["classify", "--format", "json", "--output"])
        .arg(&output)
        .args(options)
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
    let name = fs::canonicalize(folder.path()).unwrap();
    Classified {
        document: written.replace(&name.display().to_string(), "FOLDER"),
        folder,
    }
}

fn built(case: &Case, opt: Opt) -> std::path::PathBuf {
    case.build(opt).unwrap_or_else(|error| panic!("{error}"))
}

fn number(variable: &str, default: usize) -> usize {
    let text = std::env::var(variable).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The verdicts on one program, which are the same every time.
fn verdicts_of(case: &Case, opt: Opt) -> Vec<Row> {
    let binary = built(case, opt);
    let classified = classify(case, &binary, &["--jobs", "2"]);
    match number("VERDICT_EVIDENCE_REPLAYS", 0) {
        0 => {}
        times => evidence::check_all(&case.name, &classified, times),
    }
    let document = classified.document;
    for run in 1..number("VERDICT_CLASSIFY_RUNS", 1) {
        let again = classify(case, &binary, &["--jobs", "2"]).document;
        assert!(
            again == document,
            "{} {opt}: run {} differs from run 1",
            case.name,
            run + 1
        );
    }
    rows(case, opt, &document)
}

/// Programs of each kind, so that it takes seconds; `cargo xtask soak classify` takes them all. With optimisation, all are
/// compared always.
const USUAL: [&str; 26] = [
    "effects/conditional_unlock.c",
    "effects/infinite_loop.c",
    "effects/list_insert.c",
    "effects/lost_wakeup.c",
    "effects/memcpy.c",
    "effects/null_dereference.c",
    "effects/printf_argument.c",
    "effects/read_system_call.c",
    "effects/rust_panic.rs",
    "effects/rust_use_after_free.rs",
    "effects/strcpy.c",
    "effects/torn_16_byte.c",
    "effects/use_after_free.c",
    "effects/write_system_call.c",
    "papers/portend_dcl.cpp",
    "papers/portend_fig1.c",
    "papers/portend_fig14a.c",
    "papers/portend_fig14b.c",
    "papers/portend_fig14d.c",
    "papers/portend_fig8.c",
    "papers/racefuzzer_cache_cleaner.c",
    "papers/racefuzzer_contains_all.cpp",
    "papers/racefuzzer_fig1.c",
    "papers/replay_double_check.c",
    "papers/replay_redundant_write.c",
    "papers/replay_user_sync.c",
];

#[test]
fn programs_without_optimisation() {
    let usual = |name: &str| USUAL.contains(&name);
    table::check(Opt::O0, "", &usual, &verdicts_of);
}

#[test]
fn effects_with_optimisation() {
    table::check(Opt::O2, "effects/", &|_| true, &verdicts_of);
}

#[test]
fn papers_with_optimisation() {
    table::check(Opt::O2, "papers/", &|_| true, &verdicts_of);
}

/// Class of each race, and whether states differ.
fn classes(document: &str) -> Vec<(String, Option<bool>)> {
    let document: Value = serde_json::from_str(document).unwrap();
    let races = document["races"].as_array().unwrap();
    let one = |race: &Value| {
        let class = race["class"].as_str().unwrap_or("none");
        (class.to_owned(), race["states_differ"].as_bool())
    };
    races.iter().map(one).collect()
}

/// Portend+, table III.
#[test]
fn micro_benchmarks_are_harmless_and_with_locks_that_the_detector_does_not_see_single_orderings() {
    for name in ["avv", "dcl", "dbm", "rw"] {
        for opt in [Opt::O0, Opt::O2] {
            let racy = case(&format!("papers/portend_{name}.cpp"));
            let found = classes(&classify(racy, &built(racy, opt), &[]).document);
            let harmless = ("k-witness-harmless".to_owned(), Some(false));
            assert!(!found.is_empty(), "{name}");
            assert!(
                found.iter().all(|one| *one == harmless),
                "{name} {opt}: {found:?}"
            );
            let locked = case(&format!("racefree/micro_{name}_mutex.cpp"));
            let blind = classify(locked, &built(locked, opt), &["--ignore-locks"]);
            let found = classes(&blind.document);
            assert!(!found.is_empty(), "{name} with locks");
            let is_single = |one: &(String, Option<bool>)| one.0 == "single-ordering";
            assert!(
                found.iter().all(is_single),
                "{name} {opt} with locks: {found:?}"
            );
        }
    }
}

#[test]
fn who_wrote_what_differs_is_told() {
    let case = case("effects/write_system_call.c");
    let verdicts = classify(case, &built(case, Opt::O2), &[]).document;
    let verdicts: Value = serde_json::from_str(&verdicts).unwrap();
    let difference = &verdicts["races"][0]["output_difference"];
    for (side, text) in [("primary", "jello\n"), ("alternate", "hello\n")] {
        let piece = &difference[side];
        assert_eq!(piece["text"], text, "{difference}");
        let stack = piece["stack"].as_array().unwrap();
        let own = stack.iter().find(|frame| frame["function"] == "print");
        let line = own.map(|frame| frame["line"].clone());
        assert_eq!(line, Some(25.into()), "{side}: {stack:?}");
    }
}

#[test]
fn the_same_verdicts_every_time_with_any_number_of_jobs() {
    for name in ["papers/portend_fig14c.c", "papers/portend_fig1.c"] {
        let case = case(name);
        let binary = built(case, Opt::O0);
        let first = classify(case, &binary, &["--jobs", "1"]).document;
        for jobs in ["1", "2", "4"] {
            let again = classify(case, &binary, &["--jobs", jobs]).document;
            assert!(first == again, "{name} with {jobs} jobs");
        }
    }
}
