//! Overlap of sequencing regions, as in the paper's figure, and against happens-before.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use verdict_detect::{Algorithm, PairBy};
use verdict_events::Event;

use crate::random::{Random, Shape, trace};
use crate::text::{Trace, findings, show, summary};

fn check(trace: &str, expected: Expect) {
    expected.assert_eq(&summary(&Trace::parse(trace), Algorithm::Regions));
}

#[test]
fn regions_race_where_they_overlap() {
    check(
        "T1 fork T2\nT1 w x\nT2 r x",
        expect![[r#"
            flow: write 2 / read 3 on x, 1 x
        "#]],
    );
    // Nothing orders the accesses, but the writer's region is over when the reader's begins.
    check(
        "T1 fork T2\nT1 w x\nT1 rel m\nT2 acq n\nT2 r x",
        expect![[r#"
            no races
        "#]],
    );
    check(
        "T1 fork T2\nT2 acq n\nT1 w x\nT1 rel m\nT2 r x",
        expect![[r#"
            flow: write 3 / read 5 on x, 1 x
        "#]],
    );
}

fn pairs(events: &[Event], algorithm: Algorithm) -> BTreeSet<[(u32, bool); 2]> {
    let found = findings(events, algorithm, PairBy::Site);
    let pair = |race: &verdict_detect::Race| {
        let mut sides = race
            .accesses
            .map(|side| (side.site.0, side.kind.is_write()));
        sides.sort_unstable();
        sides
    };
    found.races.iter().map(pair).collect()
}

#[test]
fn what_overlaps_is_not_ordered() {
    let (mut found, mut missed) = (0, 0);
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let shape = Shape {
            forks: true,
            lawless: false,
            ..Shape::random(&mut random)
        };
        let events = trace(&mut random, shape);
        let regions = pairs(&events, Algorithm::Regions);
        let all = pairs(&events, Algorithm::Hb);
        let shown = || events.iter().map(show).collect::<Vec<_>>().join("\n");
        assert!(regions.is_subset(&all), "seed {seed}\n{}", shown());
        found += regions.len();
        missed += all.len() - regions.len();
    }
    assert!(
        found > 100 && missed > 100,
        "{found} found, {missed} missed"
    );
}
