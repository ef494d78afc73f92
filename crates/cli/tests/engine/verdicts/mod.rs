//! `verdict classify -- PROGRAM` on the corpus: the class of each race and what replaying both orders gives are its truth's, and
//! the same every time.
//!
//! `VERDICT_CLASSIFY_RUNS` says how often each program is classified, `VERDICT_CLASSIFY_ONLY` which ones are; `cargo xtask soak
//! classify` sets them.

mod evidence;
mod guests;
mod table;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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
    let document = classify(case, &binary, &["--jobs", "2"]).document;
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

/// One program of each kind, so that it takes seconds; `cargo xtask soak classify` takes them all.
const USUAL: [&str; 14] = [
    "effects/conditional_unlock.c",
    "effects/infinite_loop.c",
    "effects/list_insert.c",
    "effects/lost_wakeup.c",
    "effects/null_dereference.c",
    "effects/torn_16_byte.c",
    "papers/portend_fig1.c",
    "papers/portend_fig14a.c",
    "papers/portend_fig14b.c",
    "papers/portend_fig14d.c",
    "papers/portend_fig8.c",
    "papers/racefuzzer_cache_cleaner.c",
    "papers/racefuzzer_fig1.c",
    "papers/replay_double_check.c",
];

#[test]
fn programs_without_optimisation() {
    table::check(Opt::O0, &USUAL, &verdicts_of);
}

#[test]
fn programs_with_optimisation() {
    table::check(Opt::O2, &USUAL, &verdicts_of);
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
