//! The examples of the papers, as traces.

use expect_test::{Expect, expect};
use verdict_detect::Algorithm;

use crate::text::{Trace, summary};

fn check(algorithm: Algorithm, trace: &str, expected: Expect) {
    expected.assert_eq(&summary(&Trace::parse(trace), algorithm));
}

/// Remark 8: S1 writes and precedes S2; S2 and S3 read; S3 is parallel to both.
const REMARK_8: &str = "
    T1 w x @S1
    T1 rel m
    T2 acq m
    T2 r x @S2
    T3 r x @S3
";

/// Remark 13.2 and figure 2: S1 and S2 read in parallel, S2 precedes S3, which writes; S1 is parallel to S3.
const FIGURE_2: &str = "
    T1 r x @S1
    T2 r x @S2
    T2 rel m
    T3 acq m
    T3 w x @S3
";

#[test]
fn remark_8_adjacent_sees_only_the_input_conflict() {
    check(
        Algorithm::Adjacent,
        REMARK_8,
        expect![[r#"
        x: inconclusive
        kept at most 1
    "#]],
    );
}

#[test]
fn remark_14_local_finds_the_race_of_remark_8() {
    check(
        Algorithm::Local,
        REMARK_8,
        expect![[r#"
        flow: write S1 / read S3 on x, 1 x
        x: race
        kept at most 2
    "#]],
    );
}

#[test]
fn remark_13_2_local_misses_the_anti_race_of_figure_2() {
    check(
        Algorithm::Adjacent,
        FIGURE_2,
        expect![[r#"
        x: inconclusive
        kept at most 1
    "#]],
    );
    check(
        Algorithm::Local,
        FIGURE_2,
        expect![[r#"
        x: inconclusive
        kept at most 2
    "#]],
    );
}

#[test]
fn remark_16_1_race_finds_the_anti_race_of_figure_2() {
    check(
        Algorithm::Race,
        FIGURE_2,
        expect![[r#"
        anti: read S1 / write S3 on x, 1 x
        x: race
        kept at most 2
    "#]],
    );
    check(
        Algorithm::Current,
        FIGURE_2,
        expect![[r#"
        anti: read S1 / write S3 on x, 1 x
        x: race
        kept at most 3
    "#]],
    );
}

/// Remark 16.4: S1..S99 read in parallel; all but S1 precede S100, which writes. S1 must be kept throughout.
#[test]
fn remark_16_4_every_parallel_read_is_needed() {
    let mut trace = String::new();
    for thread in 1..100 {
        trace.push_str(&format!("T{thread} r x @S{thread}\n"));
    }
    for thread in 2..100 {
        trace.push_str(&format!("T{thread} notify c\n"));
    }
    trace.push_str("T100 wait c\nT100 w x @S100\n");
    check(
        Algorithm::Local,
        &trace,
        expect![[r#"
        x: inconclusive
        kept at most 2
    "#]],
    );
    check(
        Algorithm::Race,
        &trace,
        expect![[r#"
        anti: read S1 / write S100 on x, 1 x
        x: race
        kept at most 99
    "#]],
    );
    check(
        Algorithm::Current,
        &trace,
        expect![[r#"
        anti: read S1 / write S100 on x, 1 x
        x: race
        kept at most 100
    "#]],
    );
    check(
        Algorithm::Hb,
        &trace,
        expect![[r#"
        anti: read S1 / write S100 on x, 1 x
    "#]],
    );
}

/// Remark 18: for mutually parallel readers and one write per thread, algorithm 5 keeps 2 per thread.
#[test]
fn remark_18_current_keeps_more_than_race() {
    let trace = "
        T1 w x
        T1 notify c
        T2 wait c
        T2 w x
        T2 notify c
        T3 wait c
        T3 w x
        T3 notify c
        T1 wait c
        T2 wait c
        T1 r x
        T2 r x
        T3 r x
    ";
    check(
        Algorithm::Race,
        trace,
        expect![[r#"
        x: no-race
        kept at most 4
    "#]],
    );
    check(
        Algorithm::Current,
        trace,
        expect![[r#"
        x: no-race
        kept at most 6
    "#]],
    );
}

/// Figure 1 of RaceFuzzer, thread1 first: y is protected, z races, x only seems to.
const RACEFUZZER_1: &str = "
    main fork thread1
    main fork thread2
    thread1 w x @1
    thread1 acq L @2
    thread1 w y @3
    thread1 rel L @4
    thread1 r z @5
    thread2 w z @7
    thread2 acq L @8
    thread2 r y @9
    thread2 r x @10
    thread2 rel L @14
";

#[test]
fn racefuzzer_figure_1_hybrid_reports_5_7_and_1_10() {
    check(
        Algorithm::Hybrid,
        RACEFUZZER_1,
        expect![[r#"
        flow: write 1 / read 10 on x, 1 x
        anti: read 5 / write 7 on z, 1 x
    "#]],
    );
    check(
        Algorithm::Hb,
        RACEFUZZER_1,
        expect![[r#"
        anti: read 5 / write 7 on z, 1 x
    "#]],
    );
}

/// Figure 2 of RaceFuzzer as it usually runs: the lock lies between the accesses to x.
const RACEFUZZER_2: &str = "
    main fork thread1
    main fork thread2
    thread2 w x @10
    thread2 acq L @11
    thread2 rel L @13
    thread1 acq L @1
    thread1 rel L @7
    thread1 r x @8
";

#[test]
fn racefuzzer_figure_2_hybrid_predicts_what_hb_does_not_see() {
    check(
        Algorithm::Hybrid,
        RACEFUZZER_2,
        expect![[r#"
        flow: write 10 / read 8 on x, 1 x
    "#]],
    );
    check(
        Algorithm::Hb,
        RACEFUZZER_2,
        expect![[r#"
        no races
    "#]],
    );
}
