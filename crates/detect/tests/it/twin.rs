//! Every detector against the naive twin, on thousands of random traces.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use verdict_detect::{Algorithm, Answer, Findings, Keep, PairBy};
use verdict_events::{Addr, Event};

use crate::naive::{Naive, NaiveRace, Twin};
use crate::random::{Random, Shape, trace};
use crate::text::{findings, findings_keeping, show};

/// Runs `check` on `count` random traces. A trace that fails is made as small as it fails, and shown.
fn for_random_traces(
    count: u64,
    shape: impl Fn(&mut Random) -> Shape,
    check: impl Fn(&[Event]) -> Result<(), String>,
) {
    for seed in 0..count {
        let mut random = Random::new(seed);
        let shape = shape(&mut random);
        let mut events = trace(&mut random, shape);
        if check(&events).is_ok() {
            continue;
        }
        let mut at = 0;
        while at < events.len() {
            let mut fewer = events.clone();
            fewer.remove(at);
            match check(&fewer) {
                Err(_) => events = fewer,
                Ok(()) => at += 1,
            }
        }
        let text: Vec<String> = events.iter().map(show).collect();
        panic!(
            "seed {seed}, {shape:?}:\n{}\n{}",
            text.join("\n"),
            check(&events).unwrap_err()
        );
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:#?}\nexpected {expected:#?}"))
    }
}

fn races_of(findings: &Findings) -> Vec<NaiveRace> {
    let convert = |race: &verdict_detect::Race| NaiveRace {
        first: race.accesses.map(|side| {
            (
                side.thread.0,
                side.site.0,
                side.kind,
                side.position.0 as usize,
            )
        }),
        locations: race.locations.iter().map(|addr| addr.0).collect(),
        instances: race.instances,
    };
    findings.races.iter().map(convert).collect()
}

fn racy(findings: &Findings) -> BTreeSet<Addr> {
    findings
        .locations
        .iter()
        .filter(|(_, answer)| *answer == Answer::Race)
        .map(|&(addr, _)| addr)
        .collect()
}

fn check_complete(events: &[Event], algorithm: Algorithm, twin: Twin) -> Result<(), String> {
    let naive = Naive::new(events, twin);
    for by in [PairBy::Site, PairBy::ThreadAndSite] {
        let found = findings(events, algorithm, by);
        equal("races", races_of(&found), naive.races(by))?;
        equal("racy locations", racy(&found), naive.racy_locations())?;
        equal(
            "locations",
            found.trace.locations,
            naive.locations().len() as u64,
        )?;
    }
    Ok(())
}

/// What cannot race any more is not missed; a thread that comes unannounced is noticed. Answers with whether one was.
fn check_forgetful(events: &[Event], algorithm: Algorithm, twin: Twin) -> Result<bool, String> {
    let naive = Naive::new(events, twin);
    let Some(found) = findings_keeping(Keep::WhatCanRace, events, algorithm, PairBy::Site) else {
        return Ok(true);
    };
    equal("races", races_of(&found), naive.races(PairBy::Site))?;
    equal("racy locations", racy(&found), naive.racy_locations())?;
    Ok(false)
}

fn check_exact_answers(events: &[Event]) -> Result<(), String> {
    let naive = Naive::new(events, Twin::Hb);
    for algorithm in [Algorithm::Race, Algorithm::Current] {
        let found = findings(events, algorithm, PairBy::Site);
        equal(algorithm.name(), racy(&found), naive.racy_locations())?;
        let open = found
            .locations
            .iter()
            .filter(|(_, answer)| *answer == Answer::Inconclusive)
            .count();
        equal("inconclusive", open, 0)?;
        check_races_are_real(&found, &naive)?;
    }
    Ok(())
}

fn check_limited_answers(events: &[Event]) -> Result<(), String> {
    let naive = Naive::new(events, Twin::Hb);
    let truly_racy = naive.racy_locations();
    for (algorithm, last_of_each) in [(Algorithm::Adjacent, false), (Algorithm::Local, true)] {
        let found = findings(events, algorithm, PairBy::Site);
        let answers: BTreeMap<Addr, Answer> = found.locations.iter().copied().collect();
        equal(
            algorithm.name(),
            answers.clone(),
            naive.answers(last_of_each),
        )?;
        for (addr, answer) in answers {
            let wrong = match answer {
                Answer::NoRace => truly_racy.contains(&addr),
                Answer::Race => !truly_racy.contains(&addr),
                Answer::Inconclusive => false,
            };
            equal("wrong answer", wrong, false)?;
        }
        check_races_are_real(&found, &naive)?;
    }
    Ok(())
}

fn check_races_are_real(found: &Findings, naive: &Naive) -> Result<(), String> {
    let real: BTreeSet<(usize, usize)> = naive
        .instances()
        .iter()
        .map(|i| (i.earlier, i.later))
        .collect();
    for race in &found.races {
        let [a, b] = race.accesses.map(|side| side.position.0 as usize);
        equal("a reported race is real", real.contains(&(a, b)), true)?;
    }
    Ok(())
}

fn check_fasttrack(events: &[Event]) -> Result<(), String> {
    let naive = Naive::new(events, Twin::Hb);
    let found = findings(events, Algorithm::FastTrack, PairBy::Site);
    equal("racy locations", racy(&found), naive.racy_locations())?;
    check_races_are_real(&found, &naive)?;
    // The later events of the first race of each byte.
    let mut first: BTreeMap<u64, usize> = BTreeMap::new();
    for instance in naive.instances() {
        for byte in instance.common {
            first.entry(byte).or_insert(instance.later);
        }
    }
    let expected: BTreeSet<usize> = first.into_values().collect();
    let reported: BTreeSet<usize> = found
        .races
        .iter()
        .map(|race| race.accesses[1].position.0 as usize)
        .collect();
    equal(
        "races start where a byte has its first",
        reported.is_subset(&expected),
        true,
    )?;
    equal("the very first", reported.first(), expected.first())
}

#[test]
fn hb_equals_the_twin() {
    for_random_traces(3000, Shape::random, |events| {
        check_complete(events, Algorithm::Hb, Twin::Hb)
    });
}

#[test]
fn hybrid_equals_the_twin() {
    for_random_traces(3000, Shape::random, |events| {
        check_complete(events, Algorithm::Hybrid, Twin::Hybrid)
    });
}

#[test]
fn forgetting_what_cannot_race_misses_nothing() {
    for (algorithm, twin) in [(Algorithm::Hb, Twin::Hb), (Algorithm::Hybrid, Twin::Hybrid)] {
        let misled = Cell::new(0);
        for_random_traces(3000, Shape::random, |events| {
            let is_misled = check_forgetful(events, algorithm, twin)?;
            misled.set(misled.get() + u32::from(is_misled));
            Ok(())
        });
        // Some must be, or nothing is tested; most fork their threads or have them all from the start.
        let misled = misled.get();
        assert!((10..1000).contains(&misled), "{algorithm}: {misled}");
    }
}

/// As above, on traces long enough for logs to be merged and swept, whose threads all are forked.
#[test]
fn forgetting_in_long_traces_misses_nothing() {
    let long = |random: &mut Random| Shape {
        events: 500,
        variables: 2,
        locks: 2,
        forks: true,
        lawless: false,
        ..Shape::random(random)
    };
    for_random_traces(60, long, |events| {
        let is_misled = check_forgetful(events, Algorithm::Hb, Twin::Hb)?;
        equal("misled", is_misled, false)
    });
}

/// Long traces over few variables: entries must be merged many times, and counts stay exact.
#[test]
fn merging_keeps_instances_exact() {
    let long = |random: &mut Random| Shape {
        events: 500,
        variables: 1,
        locks: 2,
        lawless: false,
        ..Shape::random(random)
    };
    for_random_traces(60, long, |events| {
        check_complete(events, Algorithm::Hb, Twin::Hb)
    });
    for_random_traces(30, long, |events| {
        check_complete(events, Algorithm::Hybrid, Twin::Hybrid)
    });
}

#[test]
fn race_and_current_find_exactly_the_racy_locations() {
    for_random_traces(3000, Shape::random, check_exact_answers);
}

#[test]
fn adjacent_and_local_answer_as_defined_and_never_deny_a_race() {
    for_random_traces(3000, Shape::random, check_limited_answers);
}

#[test]
fn fasttrack_finds_the_first_race_of_each_location() {
    for_random_traces(3000, Shape::random, check_fasttrack);
}
