//! `verdict detect`: what it prints, for people and for programs, and how it ends.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};

use crate::transcript::{check_in, verdict};

/// Two races on V1, one of them twice; V2 is under a lock; V3 is only read.
const TRACE: &str = "\
T0|fork(T1)|1
T0|w(V1)|10
T1|r(V1)|20
T1|r(V1)|20
T0|acq(L)|11
T0|w(V2)|12
T0|rel(L)|13
T0|r(V3)|14
T1|acq(L)|21
T1|r(V2)|22
T1|rel(L)|23
T1|r(V3)|24
T0|w(V1)|15
T0|join(T1)|16
T0|w(V1)|17
";

#[track_caller]
fn check(arguments: &[&str], expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trace.std"), TRACE).unwrap();
    fs::write(folder.path().join("quiet.std"), "T0|w(V1)|1\n").unwrap();
    fs::write(folder.path().join("bad.std"), "T0|w(V1)|1\nT0|jump(V1)|2\n").unwrap();
    check_in(folder.path(), &[&["detect"], arguments].concat(), expected);
}

#[test]
fn text() {
    check(
        &["trace.std"],
        &expect![[r#"
            --- stdout
            2 races in 1 of 3 locations

            V1: 2 races, 4 instances
              flow    write 10  read 20   2 times  events 1, 2
              anti    read 20   write 15  2 times  events 2, 12

            hb: 15 events, 2 threads, 3 locations, 8 segments
            --- exit 1
        "#]],
    );
    check(
        &["quiet.std"],
        &expect![[r#"
        --- stdout
        no races

        hb: 1 event, 1 thread, 1 location, 1 segment
        --- exit 0
    "#]],
    );
}

#[test]
fn text_per_thread_in_colour() {
    check(
        &["trace.std", "--per-thread", "--color", "always"],
        &expect![[r#"
            --- stdout
            ^[[1;31m2 races^[[0m in 1 of 3 locations

            ^[[1mV1^[[0m: 2 races, 4 instances
              flow    T0 write 10  T1 read 20   ^[[2m2 times  events 1, 2^[[0m
              anti    T1 read 20   T0 write 15  ^[[2m2 times  events 2, 12^[[0m

            ^[[2mhb: 15 events, 2 threads, 3 locations, 8 segments^[[0m
            --- exit 1
        "#]],
    );
}

#[test]
fn json() {
    check(
        &["trace.std", "--format", "json"],
        &expect![[r#"
        --- stdout
        {"schema":"verdict.detect/1","algorithm":"hb","trace":{"events":15,"threads":2,"locations":3,"segments":8},"races":[{"accesses":[{"site":"10","access":"write"},{"site":"20","access":"read"}],"conflict":"flow","locations":["V1"],"location_count":1,"instances":2,"first":[1,2]},{"accesses":[{"site":"20","access":"read"},{"site":"15","access":"write"}],"conflict":"anti","locations":["V1"],"location_count":1,"instances":2,"first":[2,12]}],"locations":{"V1":"race"}}
        --- exit 1
    "#]],
    );
    check(
        &[
            "trace.std",
            "--format",
            "json",
            "--per-thread",
            "--algorithm",
            "fasttrack",
        ],
        &expect![[r#"
            --- stdout
            {"schema":"verdict.detect/1","algorithm":"fasttrack","trace":{"events":15,"threads":2,"locations":3,"segments":8},"races":[{"accesses":[{"thread":"T0","site":"10","access":"write"},{"thread":"T1","site":"20","access":"read"}],"conflict":"flow","locations":["V1"],"location_count":1,"instances":1,"first":[1,2]}],"locations":{"V1":"race"}}
            --- exit 1
        "#]],
    );
}

#[test]
fn json_of_limited_history_answers_for_every_location() {
    check(
        &["trace.std", "--format", "json", "--algorithm", "local"],
        &expect![[r#"
            --- stdout
            {"schema":"verdict.detect/1","algorithm":"local","trace":{"events":15,"threads":2,"locations":3,"segments":8},"races":[{"accesses":[{"site":"10","access":"write"},{"site":"20","access":"read"}],"conflict":"flow","locations":["V1"],"location_count":1,"instances":2,"first":[1,2]},{"accesses":[{"site":"20","access":"read"},{"site":"15","access":"write"}],"conflict":"anti","locations":["V1"],"location_count":1,"instances":1,"first":[3,12]}],"locations":{"V1":"race","V2":"no-race","V3":"inconclusive"},"history":{"segments_max":2,"segments_total":5}}
            --- exit 1
        "#]],
    );
}

#[test]
fn text_names_what_stays_inconclusive() {
    check(
        &["trace.std", "--algorithm", "adjacent"],
        &expect![[r#"
            --- stdout
            2 races in 1 of 3 locations

            V1: 2 races, 2 instances
              flow    write 10  read 20   once  events 1, 2
              anti    read 20   write 15  once  events 3, 12

            1 location inconclusive
              V3

            adjacent: 15 events, 2 threads, 3 locations, 8 segments
            adjacent: kept at most 1 segment for a location, 3 in all
            --- exit 1
        "#]],
    );
}

#[test]
fn compare() {
    check(
        &["trace.std", "--compare"],
        &expect![[r#"
        --- stdout
        algorithm  race  no-race  inconclusive  kept/location  kept in all
        adjacent      1        1             1              1            3
        local         1        1             1              2            5
        race          1        2             0              2            6
        current       1        2             0              2            6

        15 events, 2 threads, 3 locations; kept are segments
        --- exit 1
    "#]],
    );
    check(
        &["trace.std", "--compare", "--format", "json"],
        &expect![[r#"
            --- stdout
            {"schema":"verdict.detect-compare/1","trace":{"events":15,"threads":2,"locations":3,"segments":8},"algorithms":[{"algorithm":"adjacent","race":1,"no-race":1,"inconclusive":1,"history":{"segments_max":1,"segments_total":3}},{"algorithm":"local","race":1,"no-race":1,"inconclusive":1,"history":{"segments_max":2,"segments_total":5}},{"algorithm":"race","race":1,"no-race":2,"inconclusive":0,"history":{"segments_max":2,"segments_total":6}},{"algorithm":"current","race":1,"no-race":2,"inconclusive":0,"history":{"segments_max":2,"segments_total":6}}]}
            --- exit 1
        "#]],
    );
}

#[test]
fn exit_code_as_asked_for() {
    check(
        &["trace.std", "--fail-on", "never", "--algorithm", "hybrid"],
        &expect![[r#"
            --- stdout
            2 races in 1 of 3 locations

            V1: 2 races, 4 instances
              flow    write 10  read 20   2 times  events 1, 2
              anti    read 20   write 15  2 times  events 2, 12

            hybrid: 15 events, 2 threads, 3 locations, 8 segments
            --- exit 0
        "#]],
    );
}

#[test]
fn whoever_leaves_out_the_dashes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy("/bin/true", folder.path().join("server")).unwrap();
    fs::write(folder.path().join("start.sh"), "#!/bin/sh\n./server\n").unwrap();
    check_in(
        folder.path(),
        &["detect", "server"],
        &expect![[r#"
            --- stderr
            error: server: is a program
            help: to run it: `verdict detect -- ./server`
            --- exit 2
        "#]],
    );
    check_in(
        folder.path(),
        &["detect", "./start.sh"],
        &expect![[r#"
            --- stderr
            error: ./start.sh: is a program
            help: to run it: `verdict detect -- ./start.sh`
            --- exit 2
        "#]],
    );
}

#[test]
fn whoever_gives_something_else_is_told_what_there_is_to_give() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "hello world\n").unwrap();
    check_in(
        folder.path(),
        &["detect", "notes.txt"],
        &expect![[r#"
        --- stderr
        error: notes.txt: expected a trace in one of the formats native, std, csv, roadrunner, rv-predict, found `hello world`
        help: `verdict detect -- PROGRAM` runs a program, and `verdict record` makes a recording of one; `verdict trace --help` lists the formats of traces
        --- exit 2
    "#]],
    );
    check_in(
        folder.path(),
        &["detect"],
        &expect![[r#"
        --- stderr
        error: the following required arguments were not provided:
          <RECORDING|TRACE>

        Usage: verdict detect [OPTIONS] -- <PROGRAM>...
               verdict detect [OPTIONS] <RECORDING|TRACE>

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
}

#[test]
fn bad_input_is_one_sentence() {
    check(
        &["bad.std"],
        &expect![[r#"
        --- stderr
        error: bad.std:2: expected an operation r(..), w(..), acq(..), rel(..), fork(..), join(..), begin or end, found `jump(V1)`
        --- exit 2
    "#]],
    );
    check(
        &["missing.std"],
        &expect![[r#"
            --- stderr
            error: missing.std: cannot be read: No such file or directory (os error 2)
            help: give the path of a trace, or `-` for standard input; `verdict trace generate FILE` makes one up
            --- exit 2
        "#]],
    );
    check(
        &["trace.std", "--algorithm", "magic"],
        &expect![[r#"
            --- stderr
            error: invalid value 'magic' for '--algorithm <NAME>'
              [possible values: adjacent, local, race, current, fasttrack, hb, regions, hybrid, blocks]

            For more information, try '--help'.
            --- exit 2
        "#]],
    );
    check(
        &["trace.std", "--compare", "--algorithm", "hb"],
        &expect![[r#"
            --- stderr
            error: the argument '--compare' cannot be used with '--algorithm <NAME>'

            Usage: verdict detect [OPTIONS] -- <PROGRAM>...
                   verdict detect [OPTIONS] <RECORDING|TRACE>

            For more information, try '--help'.
            --- exit 2
        "#]],
    );
}

#[test]
fn every_algorithm_says_the_same_twice() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/queue.std");
    for algorithm in [
        "adjacent",
        "local",
        "race",
        "current",
        "fasttrack",
        "hb",
        "hybrid",
    ] {
        for format in ["text", "json"] {
            let arguments = [
                "detect",
                trace.to_str().unwrap(),
                "--algorithm",
                algorithm,
                "--format",
                format,
            ];
            let run = || verdict(Path::new("/"), &arguments).output().unwrap().stdout;
            let first = run();
            assert!(!first.is_empty());
            assert_eq!(first, run(), "{algorithm} {format}");
        }
    }
}

#[test]
fn text_fits_a_terminal() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/queue.std");
    for arguments in [
        &["--per-thread"][..],
        &["--algorithm", "local"],
        &["--compare"],
    ] {
        let arguments = [&["detect", trace.to_str().unwrap()], arguments].concat();
        let output = verdict(Path::new("/"), &arguments).output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
