//! The corpus itself: every program builds at every level, runs to its end, and keeps the
//! instructions that its marks speak of.

mod native;
mod objdump;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use native::{Ending, TIME_LIMIT, TIME_LIMIT_IF_MAY_HANG, run};
use verdict_corpus::{
    AccessKind, BuildError, Case, Class, Consequence, Language, Opt, build_all, cases, programs_dir,
};

const JOBS_MAX: usize = 2;

fn each_build(mut check: impl FnMut(&Case, Opt, &Path) -> Result<(), String>) {
    let binaries = build_all(cases(), Opt::ALL, JOBS_MAX).unwrap_or_else(|error| panic!("{error}"));
    let builds = cases()
        .iter()
        .flat_map(|case| Opt::ALL.iter().map(move |&opt| (case, opt)));
    let mut failures = Vec::new();
    for ((case, opt), binary) in builds.zip(&binaries) {
        if let Err(failure) = check(case, opt, binary) {
            failures.push(format!("programs/{} at {opt}: {failure}", case.name));
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn there_are_enough_programs_in_every_language() {
    let count = |language| {
        cases()
            .iter()
            .filter(|case| case.language == language)
            .count()
    };
    let racy = cases()
        .iter()
        .filter(|case| !case.truth.race_free())
        .count();
    println!("{} programs, {racy} racy", cases().len());
    assert!(cases().len() >= 45);
    assert!(
        [Language::C, Language::Cpp, Language::Rust]
            .into_iter()
            .all(|l| count(l) >= 5)
    );
}

#[test]
fn race_free_programs_print_the_same_in_every_run() {
    each_build(|case, _, binary| {
        if !case.truth.race_free() {
            return Ok(());
        }
        let first = run(binary, &case.truth.args, TIME_LIMIT);
        if first.ending != Ending::Exit(case.truth.exit) {
            return Err(format!("ended with {:?}", first.ending));
        }
        for _ in 0..2 {
            let again = run(binary, &case.truth.args, TIME_LIMIT);
            if again != first {
                return Err(format!("first {first:?}, then {again:?}"));
            }
        }
        Ok(())
    });
}

/// A race may show even natively, so a racy program may also end in a way that its truth names.
#[test]
fn racy_programs_end_as_their_truth_allows() {
    each_build(|case, _, binary| {
        if case.truth.race_free() {
            return Ok(());
        }
        let hang = Ending::TimeLimit;
        let may_hang = consequences(case).any(|consequence| hang.may_be(consequence));
        let time_limit = if may_hang {
            TIME_LIMIT_IF_MAY_HANG
        } else {
            TIME_LIMIT
        };
        let ending = run(binary, &case.truth.args, time_limit).ending;
        let expected = ending == Ending::Exit(case.truth.exit);
        if expected || consequences(case).any(|consequence| ending.may_be(consequence)) {
            return Ok(());
        }
        Err(format!(
            "ended with {ending:?}, expected exit code {}",
            case.truth.exit
        ))
    });
}

fn consequences(case: &Case) -> impl Iterator<Item = Consequence> {
    let classes = case.truth.races.iter().map(|race| race.class);
    classes
        .filter_map(Class::consequences)
        .flat_map(|all| all.iter())
}

/// Optimisation must not remove, merge or move to another line what a mark speaks of.
#[test]
fn marked_lines_still_access_memory() {
    each_build(|case, opt, binary| {
        if case.truth.race_free() {
            return Ok(());
        }
        let code = objdump::instructions_by_line(binary, &case.path);
        for race in case.truth.races.iter().filter(|race| race.exists_at(opt)) {
            for access in &race.accesses {
                let instructions = code.get(&access.line).map_or(&[][..], Vec::as_slice);
                let reads = instructions
                    .iter()
                    .any(|instruction| instruction.may_read());
                let writes = instructions
                    .iter()
                    .any(|instruction| instruction.may_write());
                let kept = match access.kind {
                    AccessKind::Read => reads,
                    AccessKind::Write => writes,
                    AccessKind::Update => reads && writes,
                };
                if !kept {
                    let tag = &race.id;
                    return Err(format!(
                        "line {} does not {} memory as RACE({tag}) says; it has {instructions:?}",
                        access.line, access.kind
                    ));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn every_racy_program_has_a_race_free_twin() {
    for case in cases() {
        let Some(name) = &case.truth.twin else {
            continue;
        };
        let twin = cases().iter().find(|twin| twin.name == *name);
        let twin = twin.unwrap_or_else(|| panic!("{}: twin {name} does not exist", case.name));
        assert!(twin.truth.race_free(), "{}: twin {name} is racy", case.name);
    }
}

#[test]
fn programs_are_built_once() {
    let case = &cases()[0];
    let first = case.build(Opt::O2).expect("builds");
    let made = fs::metadata(&first)
        .and_then(|file| file.modified())
        .expect("is there");
    assert_eq!(case.build(Opt::O2).expect("builds"), first);
    let now = fs::metadata(&first)
        .and_then(|file| file.modified())
        .expect("is there");
    assert_eq!(made, now);
    assert_ne!(case.build(Opt::O0).expect("builds"), first);
}

#[test]
fn a_missing_compiler_is_told_clearly() {
    // In a process of its own, because the environment belongs to all tests of this one.
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "programs_are_built_once"])
        .env("CC", "no-such-compiler")
        .output()
        .expect("this test can be started");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("CompilerMissing") && said.contains("no-such-compiler"),
        "{said}"
    );
    let missing = BuildError::CompilerMissing {
        compiler: "no-such-compiler".into(),
        variable: "CC",
        reason: "not found".into(),
    };
    let message = "the corpus needs the compiler `no-such-compiler`, which cannot be started \
                   (not found): install it or name another one in CC";
    assert_eq!(missing.to_string(), message);
}

#[test]
fn a_program_that_does_not_build_is_named_with_the_compilers_words() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken.c");
    fs::write(&path, "int main(void) { return nowhere; }\n").expect("can be written");
    let case = Case {
        name: "broken.c".into(),
        path,
        ..cases()[0].clone()
    };
    let message = case.build(Opt::O0).expect_err("does not build").to_string();
    assert!(
        message.starts_with("programs/broken.c does not build:\n"),
        "{message}"
    );
    assert!(message.contains("nowhere"), "{message}");
}

/// The figures and examples that the corpus promises; a renamed or lost one must be noticed.
#[test]
fn every_figure_of_the_papers_is_there() {
    let figures: Vec<&str> = cases()
        .iter()
        .filter_map(|case| case.truth.figure.as_deref())
        .collect();
    let promised = [
        "replay-classification fig. 2",
        "replay-classification 5.4 kind 1",
        "replay-classification 5.4 kind 2",
        "replay-classification 5.4 kind 3",
        "replay-classification 5.4 kind 4",
        "replay-classification 5.4 kind 5",
        "replay-classification 5.2.4 kind 6",
        "portend-plus fig. 1",
        "portend-plus fig. 6",
        "portend-plus fig. 8",
        "portend-plus fig. 9",
        "portend-plus fig. 14a",
        "portend-plus fig. 14b",
        "portend-plus fig. 14c",
        "portend-plus fig. 14d",
        "portend-plus fig. 17a",
        "portend-plus fig. 17b",
        "portend-plus fig. 17c",
        "portend-plus fig. 17d",
        "portend-plus table III, AVV",
        "portend-plus table III, DCL",
        "portend-plus table III, DBM",
        "portend-plus table III, RW",
        "racefuzzer fig. 1",
        "racefuzzer fig. 2",
        "racefuzzer 5.3, the cache cleaner's sleep",
        "racefuzzer 5.3, containsAll",
    ];
    for name in promised {
        let there = |figure: &&str| *figure == name || figure.starts_with(&format!("{name},"));
        assert!(figures.iter().any(there), "{name} is missing");
    }
}

/// The README's tables name every program with its truth, and nothing that does not exist.
/// `BLESS=1 cargo test -p verdict-corpus` rewrites them.
#[test]
fn readme_tables_match_the_programs() {
    let path = programs_dir().join("README.md");
    let text = fs::read_to_string(&path).expect("programs/README.md");
    let text = replace_table(&text, "figures", &figures_table());
    let expected = replace_table(&text, "programs", &programs_table());
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &expected).expect("programs/README.md can be written");
    }
    let found = fs::read_to_string(&path).expect("programs/README.md");
    assert!(
        found == expected,
        "programs/README.md is out of date; run the test with BLESS=1"
    );
}

fn replace_table(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (
        format!("<!-- {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("README has no {begin}"));
    let (_, after) = rest
        .split_once(&end)
        .unwrap_or_else(|| panic!("README has no {end}"));
    format!("{before}{begin}{table}{end}{after}")
}

fn figures_table() -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for case in cases() {
        let Some(figure) = &case.truth.figure else {
            continue;
        };
        for (n, race) in case.truth.races.iter().enumerate() {
            let (figure_cell, file) = if n == 0 {
                (figure.clone(), format!("[{0}]({0})", case.name))
            } else {
                (String::new(), String::new())
            };
            let (first, last) = race.lines();
            let row = format!(
                "| {figure_cell} | {file} | {}: {} (lines {first}, {last}) | {} | {} | {} | {} |\n",
                race.id, race.title, race.class, race.replay, race.observed, race.needs
            );
            rows.push((format!("{figure} {} {n}", case.name), row));
        }
    }
    rows.sort();
    let head = "| figure | program | race | class | replay | observed | needs |\n\
                | --- | --- | --- | --- | --- | --- | --- |\n";
    head.to_owned() + &rows.into_iter().map(|(_, row)| row).collect::<String>()
}

fn programs_table() -> String {
    let mut by_topic: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases() {
        for topic in &case.truth.topics {
            by_topic.entry(topic).or_default().push(case);
        }
    }
    let mut table = "| topic | racy | race-free |\n| --- | --- | --- |\n".to_owned();
    for (topic, cases) in by_topic {
        let links = |race_free: bool| -> String {
            let wanted = cases
                .iter()
                .filter(|case| case.truth.race_free() == race_free);
            wanted
                .map(|case| format!("[{0}]({0})", case.name))
                .collect::<Vec<_>>()
                .join(" ")
        };
        table += &format!("| {topic} | {} | {} |\n", links(false), links(true));
    }
    table
}
