//! `verdict trace`: converting, counting and printing.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use expect_test::expect;

use crate::transcript::{check_in, transcript, verdict};

const QUEUE: &str = "\
T0|fork(T1)|1
T1|begin|2
T1|acq(L1)|3
T1|w(V1)|4
T1|rel(L1)|5
T0|r(V1)|6
T1|end|7
T0|join(T1)|8
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("queue.std"), QUEUE).unwrap();
    folder
}

#[test]
fn converted_there_and_back_is_the_same() {
    let folder = folder();
    for (from, to) in [
        ("queue.std", "queue.vtrace"),
        ("queue.vtrace", "queue.csv"),
        ("queue.csv", "back.vtrace"),
        ("back.vtrace", "back.std"),
    ] {
        let output = verdict(folder.path(), &["trace", "convert", from, to]).output();
        assert_eq!(
            transcript(&output.unwrap()),
            "--- exit 0
",
            "{from}"
        );
    }
    let back = fs::read_to_string(folder.path().join("back.std")).unwrap();
    assert_eq!(back, QUEUE);
    let first = fs::read(folder.path().join("queue.vtrace")).unwrap();
    let second = fs::read(folder.path().join("back.vtrace")).unwrap();
    assert_eq!(first, second, "the same trace is the same bytes");
}

#[test]
fn from_standard_input_to_standard_output() {
    let folder = folder();
    let mut command = verdict(
        folder.path(),
        &["trace", "convert", "-", "-", "--to", "csv"],
    );
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(QUEUE.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    expect![[r#"
        --- stdout
        thread,event,object,name,size,value,order,site
        T0,fork,T1,,,,,1
        T1,begin,,,,,,2
        T1,acquire,0x0,L1,,,,3
        T1,write,0x0,V1,1,,,4
        T1,release,0x0,L1,,,,5
        T0,read,0x0,V1,1,,,6
        T1,end,,,,,,7
        T0,join,T1,,,,,8
        --- exit 0
    "#]]
    .assert_eq(&transcript(&output));
}

#[test]
fn info_for_people_and_programs() {
    let folder = folder();
    check_in(
        folder.path(),
        &["trace", "info", "queue.std"],
        &expect![[r#"
        --- stdout
        queue.std: std, 96 bytes, 12.00 an event
                       8  events
                       2  threads
                       8  sites
                       1  locations
                       1  locks and other objects

                       1  read
                       1  write
                       1  acquire
                       1  release
                       1  fork
                       1  begin
                       1  end
                       1  join
        --- exit 0
    "#]],
    );
    check_in(
        folder.path(),
        &["trace", "convert", "queue.std", "queue.vtrace"],
        &expect![[r#"
            --- exit 0
        "#]],
    );
    check_in(
        folder.path(),
        &["trace", "info", "queue.vtrace", "--format", "json"],
        &expect![[r#"
            --- stdout
            {
              "bytes": 290,
              "bytes_per_event": 36.25,
              "complete": true,
              "events": 8,
              "file": "queue.vtrace",
              "format": "native",
              "frames": 1,
              "kinds": {
                "acquire": 1,
                "begin": 1,
                "end": 1,
                "fork": 1,
                "join": 1,
                "read": 1,
                "release": 1,
                "write": 1
              },
              "locations": 1,
              "schema": "verdict.trace-info/1",
              "sites": 8,
              "syncs": 1,
              "threads": 2
            }
            --- exit 0
        "#]],
    );
}

#[test]
fn head() {
    let folder = folder();
    check_in(
        folder.path(),
        &["trace", "head", "-n", "4", "queue.std"],
        &expect![[r#"
            --- stdout
                   0  T0 fork T1 at 1
                   1  T1 begin at 2
                   2  T1 acquire L1 at 3
                   3  T1 write V1 at 4
            --- exit 0
        "#]],
    );
}

#[test]
fn check_reads_to_the_end() {
    let folder = folder();
    check_in(
        folder.path(),
        &["trace", "check", "queue.std"],
        &expect![[r#"
        --- stdout
        sound: 8 events
        --- exit 0
    "#]],
    );
    fs::write(folder.path().join("bad.std"), "T0|w(V1)|1\nT0|").unwrap();
    check_in(
        folder.path(),
        &["trace", "check", "bad.std"],
        &expect![[r#"
        --- stderr
        error: bad.std:2: expected an operation r(..), w(..), acq(..), rel(..), fork(..), join(..), begin or end, found nothing
        --- exit 2
    "#]],
    );
}

#[test]
fn bad_lines_are_told() {
    let folder = folder();
    fs::write(folder.path().join("bad.std"), "T0|w(V1)|1\nT0|wait(V1)|2\n").unwrap();
    check_in(
        folder.path(),
        &["trace", "head", "bad.std"],
        &expect![[r#"
            --- stdout
                   0  T0 write V1 at 1
            --- stderr
            error: bad.std:2: expected an operation r(..), w(..), acq(..), rel(..), fork(..), join(..), begin or end, found `wait(V1)`
            --- exit 2
        "#]],
    );
    check_in(
        folder.path(),
        &["trace", "convert", "bad.std", "bad.vtrace"],
        &expect![[r#"
            --- stderr
            error: bad.std:2: expected an operation r(..), w(..), acq(..), rel(..), fork(..), join(..), begin or end, found `wait(V1)`
            --- exit 2
        "#]],
    );
    assert!(!folder.path().join("bad.vtrace").exists());
    check_in(
        folder.path(),
        &["trace", "info", "bad.std", "--from", "csv"],
        &expect![[r#"
            --- stderr
            error: bad.std:1: expected the header `thread,event,object,name,size,value,order,site`, found `T0|w(V1)|1`
            --- exit 2
        "#]],
    );
    check_in(
        folder.path(),
        &["trace", "info", "nowhere.std"],
        &expect![[r#"
            --- stderr
            error: nowhere.std: cannot be read: No such file or directory (os error 2)
            help: give the path of a trace, or `-` for standard input; `verdict trace generate FILE` makes one up
            --- exit 2
        "#]],
    );
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let folder = folder();
    let csv = "thread,event,object,name,size,value,order,site\nT0,fence,,,,,seq-cst,f:1\n";
    fs::write(folder.path().join("fence.csv"), csv).unwrap();
    check_in(
        folder.path(),
        &["trace", "convert", "fence.csv", "fence.std"],
        &expect![[r#"
            --- stderr
            error: fence.std: std cannot express event 0 (T0 fence (seq-cst) at f:1): it has only r, w, acq, rel, fork, join, begin and end
            --- exit 2
        "#]],
    );
    assert!(!folder.path().join("fence.std").exists());
    check_in(
        folder.path(),
        &["trace", "convert", "fence.csv", "fence.txt"],
        &expect![[r#"
            --- stderr
            error: fence.txt: the name does not say which format to write
            help: `--to native` (or std, csv, roadrunner) does
            --- exit 2
        "#]],
    );
    check_in(
        folder.path(),
        &["trace", "convert", "fence.csv", "x", "--to", "rv-predict"],
        &expect![[r#"
            --- stderr
            error: x: rv-predict traces can be read but not written
            --- exit 2
        "#]],
    );
}

#[test]
fn a_cut_trace_is_read_as_far_as_it_goes() {
    let folder = folder();
    let generate = [
        "trace",
        "generate",
        "whole.vtrace",
        "--events",
        "200000",
        "--locations",
        "200",
    ];
    check_in(
        folder.path(),
        &generate,
        &expect![[r#"
        --- exit 0
    "#]],
    );
    let whole = fs::read(folder.path().join("whole.vtrace")).unwrap();
    fs::write(folder.path().join("cut.vtrace"), &whole[..whole.len() / 2]).unwrap();
    check_in(
        folder.path(),
        &["trace", "info", "cut.vtrace"],
        &expect![[r#"
            --- stdout
            cut.vtrace: native, 159,466 bytes, 2.43 an event, 1 frames, without end
                      65,536  events
                           8  threads
                       3,563  sites
                         196  locations
                          64  locks and other objects

                      43,020  read
                      20,147  write
                       1,179  acquire
                       1,176  release
                           7  fork
                           7  begin
            --- stderr
            cut.vtrace: ends at byte 111106 without an end mark, after 65536 whole events: it is still being written or was cut
            --- exit 0
        "#]],
    );
    check_in(
        folder.path(),
        &["trace", "convert", "cut.vtrace", "rest.vtrace"],
        &expect![[r#"
            --- stderr
            error: cut.vtrace: ends at byte 111106 without an end mark, after 65536 whole events: it is still being written or was cut
            help: the whole events were written to rest.vtrace
            --- exit 2
        "#]],
    );
    check_in(
        folder.path(),
        &["trace", "info", "rest.vtrace"],
        &expect![[r#"
            --- stdout
            rest.vtrace: native, 111,097 bytes, 1.70 an event, 1 frames
                      65,536  events
                           8  threads
                       3,563  sites
                         196  locations
                          64  locks and other objects

                      43,020  read
                      20,147  write
                       1,179  acquire
                       1,176  release
                           7  fork
                           7  begin
            --- exit 0
        "#]],
    );
}

#[test]
fn generated_traces_depend_on_the_options_alone() {
    let folder = folder();
    let generate = [
        "trace",
        "generate",
        "-",
        "--to",
        "std",
        "--events",
        "12",
        "--threads",
        "2",
    ];
    check_in(
        folder.path(),
        &generate,
        &expect![[r#"
            --- stdout
            T0|fork(T1)|0
            T1|begin|0
            T1|acq(L26)|323
            T1|r(V26)|323
            T1|r(V55006)|324
            T1|w(V7706)|325
            T1|r(V55003)|326
            T1|w(V26)|327
            T0|r(V10000)|0
            T1|rel(L26)|0
            T1|end|0
            T0|join(T1)|0
            --- exit 0
        "#]],
    );
}
