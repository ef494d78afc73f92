//! `verdict classify --compare`: both ways to judge a race, side by side (Portend+, table V).
//!
//! `cargo xtask soak classify` has it printed for the whole corpus.

use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect;
use verdict_corpus::{Opt, cases};

use super::built;
use crate::tools::{build, tool};

/// What is printed of a program. Its path and its environment are the same wherever the test runs: how many instructions a program
/// takes to start depends on them, and with that who runs when.
fn compared(program: &Path, arguments: &[String]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(program, folder.path().join("program")).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args([
            "classify",
            "--quiet",
            "--compare",
            "--output",
            "table",
            "--",
        ])
        .arg("./program")
        .args(arguments)
        .env_clear()
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    std::fs::read_to_string(folder.path().join("table")).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&run.stderr);
        panic!("{}: no table ({error}): {stderr}", program.display())
    })
}

/// The same table with `k` for `k = 3`.
fn without_k(table: &str) -> String {
    let mut parts = table.split("k = ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{text}k{rest}")
    })
}

#[test]
fn both_classifiers_side_by_side() {
    let gcc = tool("gcc", "gcc");
    let example = "../../../../../examples/classes.c";
    let program = build(example, &[&gcc, "-O0", "-g", "-pthread"]);
    // How many runs it took depends on the C library and on the CPU that it chooses its code for.
    let table = without_k(&compared(&program, &[]));
    expect![[r#"
        race          where                       replay analysis                       consequence analysis
        27eab7c94560  classes.c:40, classes.c:23  potentially benign (no-state-change)  k-witness-harmless (k, states same)
        c22c9d807b92  classes.c:41, classes.c:26  potentially harmful (replay-failure)  single-ordering
        59889f181e2c  classes.c:42, classes.c:24  potentially benign (no-state-change)  k-witness-harmless (k, states same)
        3686aef24c00  classes.c:43, classes.c:27  potentially harmful (state-change)    output-differs
        b3099c759c96  classes.c:44, classes.c:28  potentially harmful (state-change)    spec-violated (crash)

        harmful to both: 2; to neither: 2; to replay analysis alone: 1; to consequence analysis alone: 0
    "#]].assert_eq(&table);
}

/// Races that both, neither, replay analysis alone and consequence analysis alone take for harmful: the last line of a table.
fn counts(table: &str) -> [u64; 4] {
    let last = table.lines().last().unwrap_or_default();
    let numbers = last.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{table}"))
}

/// In a soak, the whole corpus.
const USUAL: &str = "papers/portend_fig14";

#[test]
fn every_race_is_judged_by_both() {
    let only = std::env::var("VERDICT_CLASSIFY_ONLY").unwrap_or_else(|_| USUAL.to_owned());
    let racy = cases().iter().filter(|case| !case.truth.race_free());
    let mut all = [0; 4];
    for case in racy.filter(|case| case.name.contains(&only)) {
        let table = compared(&built(case, Opt::O2), &case.truth.args);
        println!("{}\n{table}", case.name);
        let counts = counts(&table);
        // A heading, an empty line, and what the two come to.
        let races = table.lines().count() as u64 - 3;
        let not_known = table.matches("not known").count() as u64;
        assert_eq!(counts.iter().sum::<u64>() + not_known, races, "{table}");
        for (sum, one) in all.iter_mut().zip(counts) {
            *sum += one;
        }
    }
    let [both, neither, replay, consequences] = all;
    println!(
        "all: harmful to both: {both}; to neither: {neither}; to replay analysis alone: {replay}; \
         to consequence analysis alone: {consequences}"
    );
    assert!(both > 0 || only != USUAL, "of these, some are");
}
