//! Programs that make it hard to tell of their races: without names, crashing on the way, never ending. There is a useful report
//! of each.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Two threads race on a global; then the program does what its first argument says.
const PROGRAM: &str = "\
#include <pthread.h>
#include <string.h>
#include <unistd.h>
long counter;
static void *work(void *unused) {
    counter++;
    return unused;
}
int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    work(NULL);
    pthread_join(thread, NULL);
    if (strcmp(argv[1], \"crash\") == 0) *(volatile int *)8 = 1;
    if (strcmp(argv[1], \"wait\") == 0) {
        char byte;
        while (read(0, &byte, 1) != 0) {}
    }
    if (strcmp(argv[1], \"again\") == 0) {
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(argv[1], \"replaced\") == 0) execl(argv[0], argv[0], \"end\", NULL);
    if (strcmp(argv[1], \"child\") == 0 && fork() == 0) execl(argv[0], argv[0], \"end\", NULL);
    return 0;
}
";

struct Told {
    output: Output,
    document: Value,
}

/// Builds the program with these flags, runs it with this argument, and says what was told of it.
fn detect(flags: &[&str], argument: &str, options: &[&str]) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("count.c"), PROGRAM).unwrap();
    let built = Command::new("gcc")
        .args(["-O1", "-pthread", "-o", "count", "count.c"])
        .args(flags)
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(built.success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["detect", "--format", "json", "--output", "races.json"])
        .args(options)
        .args(["--", "./count", argument])
        .current_dir(folder.path())
        // Stays open: whoever reads from it waits.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    let document = fs::read(path("races.json")).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    Told {
        document: serde_json::from_slice(&document).unwrap(),
        output,
    }
}

fn only_race(told: &Told) -> &Value {
    assert_eq!(told.output.status.code(), Some(1));
    let races = told.document["races"].as_array().unwrap();
    // Read by one, written by the other, and written by both.
    assert!((1..=3).contains(&races.len()), "{}", told.document);
    &races[0]
}

fn is_module(access: &Value) -> bool {
    let module = access["module"].as_str().unwrap_or_default();
    Path::new(module)
        .file_name()
        .is_some_and(|name| name == "count")
        && access["offset"].as_u64().is_some_and(|offset| offset > 0)
}

#[test]
fn without_debug_information_functions_and_variables_have_names() {
    let told = detect(&[], "end", &[]);
    let race = only_race(&told);
    for access in race["accesses"].as_array().unwrap() {
        assert!(is_module(access), "{access}");
        assert_eq!(access["function"], "work");
    }
    assert_eq!(race["variable"]["name"], "counter");
}

#[test]
fn stripped_the_places_in_the_file_are_told() {
    let told = detect(&["-s"], "end", &[]);
    let race = only_race(&told);
    for access in race["accesses"].as_array().unwrap() {
        assert!(is_module(access), "{access}");
        assert!(!access["stack"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_crash_hides_nothing_that_came_before() {
    let told = detect(&["-g"], "crash", &[]);
    let race = only_race(&told);
    assert_eq!(race["accesses"][0]["line"], 6);
    assert_eq!(told.document["program"]["signal"], 11);
    let stderr = String::from_utf8_lossy(&told.output.stderr);
    assert!(stderr.contains("count.c:15"), "{stderr}");
}

#[test]
fn threads_are_told_of_that_began_after_the_last_race() {
    let told = detect(&["-g"], "again", &[]);
    only_race(&told);
    let threads = told.document["threads"].as_array().unwrap();
    let names = threads.iter().map(|thread| thread["name"].as_str());
    let expected = ["main", "work", "work"].map(Some);
    assert!(names.eq(expected), "{}", told.document["threads"]);
    assert_eq!(threads[2]["created_at"][0]["line"], 21);
}

/// As `env` and shells do.
#[test]
fn a_program_that_takes_the_place_of_another_is_looked_at() {
    let told = detect(&["-g"], "replaced", &[]);
    let race = only_race(&told);
    assert_eq!(race["accesses"][0]["line"], 6);
    assert_eq!(told.document["program"]["exit"], 0);
    assert_eq!(told.document["coverage"], Value::Array(Vec::new()));
}

#[test]
fn processes_that_are_not_looked_at_are_counted() {
    let told = detect(&["-g"], "child", &[]);
    only_race(&told);
    let what = &told.document["coverage"][0]["what"];
    let expected = "1 process that the program started was not looked at";
    assert_eq!(what, expected, "{}", told.document);
}

#[test]
fn a_program_that_never_ends_is_ended() {
    let told = detect(&["-g"], "wait", &["--time-limit", "8"]);
    let race = only_race(&told);
    assert_eq!(race["accesses"][0]["line"], 6);
    let coverage = told.document["coverage"].to_string();
    assert!(coverage.contains("its time was up"), "{coverage}");
}
