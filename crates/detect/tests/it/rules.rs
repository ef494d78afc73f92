//! What orders what, one small trace each.

use expect_test::{Expect, expect};
use verdict_detect::Algorithm;

use crate::text::{Trace, summary};

fn check(trace: &str, expected: Expect) {
    expected.assert_eq(&summary(&Trace::parse(trace), Algorithm::Hb));
}

#[test]
fn a_lock_orders() {
    check(
        "T1 w x\nT1 rel m\nT2 acq m\nT2 r x",
        expect![[r#"
        no races
    "#]],
    );
    check(
        "T1 w x\nT1 rel m\nT2 acq n\nT2 r x",
        expect![[r#"
        flow: write 1 / read 4 on x, 1 x
    "#]],
    );
    check(
        "T1 rel m\nT1 w x\nT2 acq m\nT2 r x",
        expect![[r#"
        flow: write 2 / read 4 on x, 1 x
    "#]],
    );
}

#[test]
fn readers_of_a_lock_do_not_order_readers() {
    check(
        "T1 racq m\nT1 w x\nT1 rrel m\nT2 racq m\nT2 w x\nT2 rrel m",
        expect![[r#"
            output: write 2 / write 5 on x, 1 x
        "#]],
    );
    check(
        "T1 racq m\nT1 r x\nT1 rrel m\nT2 acq m\nT2 w x\nT2 rel m",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 acq m\nT1 w x\nT1 rel m\nT2 racq m\nT2 r x\nT2 rrel m",
        expect![[r#"
            no races
        "#]],
    );
}

#[test]
fn fork_and_join_order_with_and_without_begin_and_end() {
    check(
        "T1 w x\nT1 fork T2\nT2 r x\nT1 join T2\nT1 w x",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 w x\nT1 fork T2\nT2 begin\nT2 w x\nT2 end\nT1 join T2\nT1 w x",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 fork T2\nT1 w x\nT2 r x",
        expect![[r#"
        flow: write 2 / read 3 on x, 1 x
    "#]],
    );
}

#[test]
fn a_barrier_orders_by_rounds() {
    check(
        "T1 w x\nT1 enter b\nT2 w y\nT2 enter b\nT1 leave b\nT2 leave b\nT1 r y\nT2 r x",
        expect![[r#"
            no races
        "#]],
    );
    // T1 is in its second round before T2 has left the first.
    check(
        "T1 enter b\nT2 enter b\nT1 leave b\nT1 w x\nT1 enter b\nT2 leave b\nT2 r x",
        expect![[r#"
            flow: write 4 / read 7 on x, 1 x
        "#]],
    );
}

#[test]
fn atomics_order_by_memory_order() {
    check(
        "T1 w x\nT1 aw f release\nT2 ar f acquire\nT2 r x",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 w x\nT1 aw f relaxed\nT2 ar f acquire\nT2 r x",
        expect![[r#"
            flow: write 1 / read 4 on x, 1 x
        "#]],
    );
    check(
        "T1 w x\nT1 aw f release\nT2 ar f relaxed\nT2 r x",
        expect![[r#"
            flow: write 1 / read 4 on x, 1 x
        "#]],
    );
    // An update continues the release sequence, a store ends it.
    check(
        "T1 w x\nT1 aw f release\nT3 rmw f relaxed\nT2 ar f acquire\nT2 r x",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 w x\nT1 aw f release\nT3 aw f relaxed\nT2 ar f acquire\nT2 r x",
        expect![[r#"
            flow: write 1 / read 5 on x, 1 x
        "#]],
    );
}

#[test]
fn fences_lend_their_order_to_relaxed_atomics() {
    check(
        "T1 w x\nT1 fence release\nT1 aw f relaxed\nT2 ar f relaxed\nT2 fence acquire\nT2 r x",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 w x\nT1 aw f relaxed\nT1 fence release\nT2 ar f relaxed\nT2 fence acquire\nT2 r x",
        expect![[r#"
            flow: write 1 / read 6 on x, 1 x
        "#]],
    );
}

#[test]
fn atomics_race_with_plain_accesses_only() {
    check(
        "T1 aw x relaxed\nT2 rmw x relaxed\nT3 ar x relaxed",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 aw x relaxed\nT2 r x\nT3 ar x relaxed\nT3 w x",
        expect![[r#"
            flow: atomic-write 1 / read 2 on x, 1 x
            output: atomic-write 1 / write 4 on x, 1 x
            anti: read 2 / write 4 on x, 1 x
        "#]],
    );
}

#[test]
fn one_common_byte_is_enough() {
    check(
        "T1 w 0/8\nT2 r 7/1",
        expect![[r#"
        flow: write 1 / read 2 on 0x7, 1 x
    "#]],
    );
    check(
        "T1 w 0/8\nT2 r 8/1",
        expect![[r#"
        no races
    "#]],
    );
    check(
        "T1 w 0/4\nT1 w 4/4\nT2 w 0/8",
        expect![[r#"
        output: write 1 / write 3 on 0x0, 1 x
        output: write 2 / write 3 on 0x4, 1 x
    "#]],
    );
    check(
        "T1 w 0/8\nT2 w 0/4\nT2 w 4/4",
        expect![[r#"
        output: write 1 / write 2 on 0x0, 1 x
        output: write 1 / write 3 on 0x4, 1 x
    "#]],
    );
}

#[test]
fn memory_is_reused_without_a_race_and_freed_with_one() {
    check(
        "T1 w 0/8\nT1 free 0/64\nT2 alloc 0/64\nT2 w 0/8",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 w 8/8\nT2 free 0/64",
        expect![[r#"
        output: write 1 / free 2 on 0x8, 1 x
    "#]],
    );
    check(
        "T1 free 0/64\nT2 r 8/8",
        expect![[r#"
        flow: free 1 / read 2 on 0x8, 1 x
    "#]],
    );
    check(
        "T1 free 0/1000000\nT2 alloc 5000/8\nT2 r 5000/8\nT2 r 5008/8",
        expect![[r#"
            flow: free 1 / read 4 on 0x1390, 1 x
        "#]],
    );
}
