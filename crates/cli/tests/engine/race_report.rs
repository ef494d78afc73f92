//! What `verdict detect -- PROGRAM` tells of a race besides its two lines: stacks, locks, memory, threads; and what it
//! leaves out when it is asked to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Two workers race on a global, on a block of the heap (one of them through `memset`), and hold different locks.
const PROGRAM: &str = "\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct { long sold; int hits[4]; } stats;
static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static char *block;
static char *make(void) {
    return malloc(64);
}
static void count(int by) {
    stats.hits[2] = by;
}
static void *first(void *unused) {
    pthread_mutex_lock(&lock_a);
    count(1);
    pthread_mutex_unlock(&lock_a);
    block[16] = 1;
    return unused;
}
static void *second(void *unused) {
    pthread_mutex_lock(&lock_b);
    count(2);
    pthread_mutex_unlock(&lock_b);
    memset(block, 0, 64);
    return unused;
}
int main(void) {
    pthread_t one, two;
    block = make();
    pthread_create(&one, NULL, first, NULL);
    pthread_create(&two, NULL, second, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    puts(\"done\");
    return 0;
}
";

struct Built {
    folder: TempDir,
    program: PathBuf,
}

fn build() -> Built {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("shop.c");
    let program = folder.path().join("shop");
    fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("gcc")
        .args(["-g", "-O0", "-pthread"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(built.success());
    Built { folder, program }
}

fn run(built: &Built, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_verdict"))
        .arg("detect")
        .args(options)
        .arg("--")
        .arg(&built.program)
        .current_dir(built.folder.path())
        .output()
        .unwrap()
}

fn races(built: &Built, options: &[&str]) -> Value {
    let output = built.folder.path().join("races.json");
    let told = [
        "--format",
        "json",
        "--fail-on",
        "never",
        "--output",
        "races.json",
    ];
    let ran = run(built, &[&told, options].concat());
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    // The program writes once, however often it is looked at.
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "done\n");
    serde_json::from_slice(&fs::read(output).unwrap()).unwrap()
}

fn functions(stack: &Value) -> Vec<&str> {
    let frames = stack.as_array().unwrap().iter();
    frames
        .filter_map(|frame| frame["function"].as_str())
        .collect()
}

fn lines(race: &Value) -> [Option<u64>; 2] {
    [0, 1].map(|side| race["accesses"][side]["line"].as_u64())
}

#[test]
fn stacks_locks_memory_and_threads() {
    let built = build();
    let document = races(&built, &[]);
    let all = document["races"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{document}");
    let global = all
        .iter()
        .find(|race| race["variable"]["kind"] == "global")
        .unwrap();
    assert_eq!(global["variable"]["name"], "stats.hits[2]");
    assert_eq!(lines(global), [Some(12), Some(12)]);
    let held = |side: usize| &global["accesses"][side]["locks"][0]["name"];
    assert_eq!((held(0), held(1)), (&"lock_a".into(), &"lock_b".into()));
    assert_eq!(
        functions(&global["accesses"][0]["stack"]),
        ["count", "first"]
    );
    assert_eq!(
        functions(&global["accesses"][1]["stack"]),
        ["count", "second"]
    );
    let why = global["why_not_ordered"].as_str().unwrap();
    assert!(why.ends_with("no lock in common"), "{why}");

    let heap = all
        .iter()
        .find(|race| race["variable"]["kind"] == "heap")
        .unwrap();
    assert_eq!(
        (&heap["variable"]["size"], &heap["variable"]["offset"]),
        (&64.into(), &16.into())
    );
    assert_eq!(
        functions(&heap["variable"]["allocated_at"]),
        ["make", "main"]
    );
    assert_eq!(
        lines(heap),
        [Some(18), Some(25)],
        "memset is its caller's doing"
    );

    let threads = document["threads"].as_array().unwrap();
    let names: Vec<_> = threads
        .iter()
        .map(|thread| thread["name"].as_str())
        .collect();
    assert_eq!(names, [Some("main"), Some("first"), Some("second")]);
    assert_eq!(functions(&threads[1]["created_at"]), ["main"]);
    assert_eq!(threads[2]["created_at"][0]["line"], 32);
}

#[test]
fn what_is_not_wanted_is_left_out() {
    let built = build();
    let left = |options: &[&str]| {
        let document = races(&built, options);
        let races = document["races"].as_array().unwrap().clone();
        let kinds = races
            .iter()
            .map(|race| race["variable"]["kind"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(left(&["--ignore", "stats"]), ["heap"]);
    assert_eq!(left(&["--only-function", "count"]), ["global"]);
    assert_eq!(left(&["--only-threads", "first"]), [""; 0]);
    assert_eq!(
        left(&["--only-threads", "first,second", "--only-module", "shop"]).len(),
        2
    );
}

#[test]
fn suppressions_say_why() {
    let built = build();
    let file = built.folder.path().join("known.txt");
    let rules = "variable stats until 2999-01-01 because only statistics\n\
                 race 0123456789ab because it is gone\n";
    fs::write(&file, rules).unwrap();
    let document = races(&built, &["--suppressions", "known.txt"]);
    let reasons: Vec<_> = document["races"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|race| race["suppressed"]["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["only statistics"]);
    let noted = document["coverage"].to_string();
    assert!(noted.contains("known.txt:2"), "{noted}");

    fs::write(&file, "variable * because all of them").unwrap();
    assert_eq!(
        run(&built, &["--suppressions", "known.txt"]).status.code(),
        Some(1),
        "a block has no name"
    );
    fs::write(&file, "file shop.c because all of them").unwrap();
    assert_eq!(
        run(&built, &["--suppressions", "known.txt"]).status.code(),
        Some(0)
    );
    fs::write(&file, "\nvariable stats until soon because\n").unwrap();
    let refused = run(&built, &["--suppressions", "known.txt"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("known.txt:2: `soon` is not a day"), "{told}");
    assert_eq!(refused.stdout, b"", "nothing has run");
}

/// Ids are the same in every run, and after a rebuild elsewhere.
#[test]
fn ids_are_the_same_every_time() {
    let ids = |built: &Built| {
        let document = races(built, &[]);
        let races = document["races"].as_array().unwrap().clone();
        races
            .iter()
            .map(|race| race["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (one, other) = (build(), build());
    assert_ne!(Path::new(&one.program), Path::new(&other.program));
    assert_eq!(ids(&one), ids(&other));
}
