//! `blocks` is `hb`: for every number of workers, strategy and cut, through files, and for some threads only.

use std::collections::BTreeMap;

use std::sync::Mutex;

use verdict_blocks::{
    BlocksError, BuildOptions, Cuts, DetectOptions, Folder, Index, PlanOptions, RunOptions,
    Strategy, Task, Workers, build, detect, plan, read_order, run,
};
use verdict_detect::{AccessKind, PairBy, Race, RaceSet};
use verdict_events::{Event, EventKind};

use crate::random::{Random, Shape, trace};
use crate::traces::{blocks, built, hb, source};

const TRACES: u64 = 2000;
const STRATEGIES: [Strategy; 3] = [Strategy::Auto, Strategy::Pairs, Strategy::Locations];

fn random_build(random: &mut Random) -> BuildOptions {
    let pick = |random: &mut Random, from: &[u32]| from[random.below(from.len() as u64) as usize];
    BuildOptions {
        open_entries_max: pick(random, &[1, 3, 1 << 20]),
        frame_entries: pick(random, &[1, 4, 1 << 16]),
    }
}

fn random_by(random: &mut Random) -> PairBy {
    match random.below(2) {
        0 => PairBy::Site,
        _ => PairBy::ThreadAndSite,
    }
}

fn random_cuts(random: &mut Random) -> Cuts {
    match random.below(3) {
        0 => Cuts::Balanced,
        _ => Cuts::Random {
            seed: random.below(1 << 40),
            parts_max: 1 + random.below(6),
        },
    }
}

#[test]
fn every_way_of_working_answers_as_hb() {
    let mut with_races = 0;
    for seed in 0..TRACES {
        let random = &mut Random::new(seed);
        let shape = Shape::random(random);
        let events = trace(random, shape);
        let by = random_by(random);
        let wanted = hb(&events, by);
        with_races += u64::from(!wanted.races.is_empty());
        let store = built(&events, &random_build(random));
        for workers in [1, 2, 3, 8] {
            for strategy in STRATEGIES {
                let options = DetectOptions {
                    workers,
                    strategy,
                    cuts: random_cuts(random),
                    by,
                    ..DetectOptions::default()
                };
                let found = blocks(&store, &options);
                assert_eq!(found, wanted, "seed {seed}, {shape:?}, {options:?}");
            }
        }
    }
    assert!(
        with_races > TRACES / 3,
        "only {with_races} traces have races"
    );
}

#[test]
fn rounds_for_little_memory_answer_the_same() {
    let mut refusals = 0;
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let shape = Shape {
            variables: 60,
            events: 400,
            ..Shape::random(random)
        };
        let events = trace(random, shape);
        let wanted = hb(&events, PairBy::Site);
        let store = built(&events, &BuildOptions::default());
        for strategy in [Strategy::Pairs, Strategy::Locations] {
            let mut options = DetectOptions {
                strategy,
                workers: 2,
                memory_max: 0,
                ..DetectOptions::default()
            };
            let index = Index::read(&store).unwrap();
            let refused = detect(&store, &index, &options, &|_| {});
            let needed = match refused {
                Err(BlocksError::Memory { needed, allowed: 0 }) => needed,
                Ok(_) if wanted.races.is_empty() => continue,
                other => panic!("{other:?} without memory for {shape:?}"),
            };
            refusals += 1;
            options.memory_max = needed;
            assert_eq!(blocks(&store, &options), wanted, "seed {seed}, {shape:?}");
        }
    }
    assert!(refusals > 400, "{refusals}");
}

/// As a cluster does it that lost some of them, or thought so.
#[test]
fn tasks_in_any_order_and_twice_answer_the_same() {
    let mut with_races = 0;
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let shape = Shape::random(random);
        let events = trace(random, shape);
        let store = built(&events, &random_build(random));
        let index = Index::read(&store).unwrap();
        let threads: Vec<u32> = (0..index.threads.len() as u32).collect();
        let workers = Workers::new(2);
        let order = read_order(&store, &index, &threads, &workers).unwrap();
        for strategy in [Strategy::Pairs, Strategy::Locations] {
            let cuts = Cuts::Random { seed, parts_max: 6 };
            let planned = PlanOptions {
                workers: 2,
                strategy,
                cuts,
                ..PlanOptions::default()
            };
            let tasks = plan(&index, &order, &planned);
            let options = RunOptions {
                workers: &workers,
                by: PairBy::Site,
                memory_max: 1 << 30,
            };
            let results = |tasks: &[Task]| {
                let results = Mutex::new(Vec::new());
                let done = |task: &Task, result: verdict_blocks::TaskResult| {
                    let found = (task.number, result.racy, result.races.into_races());
                    results.lock().unwrap().push(found);
                    Ok(())
                };
                run(&store, &index, &order, tasks, options, &done).unwrap();
                let mut results = results.into_inner().unwrap();
                results.sort_by_key(|result| result.0);
                results
            };
            let wanted = results(&tasks);
            with_races += u64::from(wanted.iter().any(|(_, _, races)| !races.is_empty()));
            let mut twice: Vec<Task> = tasks.iter().rev().cloned().collect();
            twice.extend(tasks);
            let mut found = results(&twice);
            assert_eq!(found.len(), 2 * wanted.len());
            found.dedup();
            assert_eq!(found, wanted, "seed {seed}, {shape:?}, {strategy:?}");
        }
    }
    assert!(with_races > 200, "only {with_races} have races");
}

#[test]
fn files_hold_what_memory_holds() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let shape = Shape::random(random);
        let events = trace(random, shape);
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Folder::new(folder.path());
        let options = random_build(random);
        let built = build(&mut source(&events), &mut sink, &options, &mut |_| {}).unwrap();
        let wanted = hb(&events, PairBy::Site);
        assert_eq!(built.trace, wanted.trace);
        let options = DetectOptions {
            workers: 2,
            ..DetectOptions::default()
        };
        assert_eq!(blocks(&sink, &options), wanted, "seed {seed}, {shape:?}");
    }
}

/// The races of some threads, out of those of all.
fn restricted(events: &[Event], threads: &[u32]) -> Vec<Race> {
    let mut races = RaceSet::new(PairBy::ThreadAndSite);
    for race in hb(events, PairBy::ThreadAndSite).races {
        let within = race
            .accesses
            .iter()
            .all(|side| threads.contains(&side.thread.0));
        if within {
            let [earlier, later] = race.accesses;
            for (nth, &location) in race.locations.iter().enumerate() {
                let instances = if nth == 0 { race.instances } else { 0 };
                races.add(earlier, later, location, instances);
            }
        }
    }
    races.into_races()
}

#[test]
fn some_threads_have_exactly_the_races_among_them() {
    let mut fewer = 0;
    for seed in 0..1500 {
        let random = &mut Random::new(seed);
        let shape = Shape::random(random);
        let events = trace(random, shape);
        let present = events
            .iter()
            .map(|event| 1 + event.thread.0)
            .max()
            .unwrap_or(0);
        let threads: Vec<u32> = (0..present).filter(|_| random.below(3) > 0).collect();
        if threads.is_empty() {
            continue;
        }
        let wanted = restricted(&events, &threads);
        fewer += u64::from(!wanted.is_empty() && threads.len() < present as usize);
        let store = built(&events, &random_build(random));
        for strategy in STRATEGIES {
            let options = DetectOptions {
                workers: 1 + random.below(3) as usize,
                strategy,
                cuts: random_cuts(random),
                threads: threads.clone(),
                by: PairBy::ThreadAndSite,
                ..DetectOptions::default()
            };
            let found = blocks(&store, &options);
            assert_eq!(found.races, wanted, "seed {seed}, {shape:?}, {options:?}");
        }
    }
    assert!(fewer > 300, "only {fewer} traces tell the threads apart");
}

/// With plain accesses only, a trace in which the other threads do nothing but synchronise can be made: what they access
/// becomes output. All of the report must then be the same, but for the size of the trace.
#[test]
fn some_threads_are_as_if_others_accessed_nothing() {
    for seed in 0..1000 {
        let random = &mut Random::new(seed);
        let shape = Shape {
            atomics: false,
            lawless: false,
            ..Shape::random(random)
        };
        let events = trace(random, shape);
        let threads: Vec<u32> = (0..shape.threads).filter(|_| random.below(2) > 0).collect();
        if threads.is_empty() {
            continue;
        }
        let silenced = |event: &Event| {
            let silent = !threads.contains(&event.thread.0)
                && matches!(
                    event.kind,
                    EventKind::Read(_) | EventKind::Write(_) | EventKind::Free { .. }
                );
            let output = EventKind::Output {
                stream: 1,
                bytes: 1,
            };
            Event {
                kind: if silent { output } else { event.kind },
                ..*event
            }
        };
        let silenced: Vec<Event> = events.iter().map(silenced).collect();
        let wanted = hb(&silenced, PairBy::Site);
        let store = built(&events, &BuildOptions::default());
        let present = events
            .iter()
            .map(|event| 1 + event.thread.0)
            .max()
            .unwrap_or(0);
        let options = DetectOptions {
            threads: threads.into_iter().filter(|&t| t < present).collect(),
            ..DetectOptions::default()
        };
        if options.threads.is_empty() {
            continue;
        }
        let found = blocks(&store, &options);
        assert_eq!(found.races, wanted.races, "seed {seed}, {shape:?}");
        let racy: BTreeMap<_, _> = found.locations.into_iter().collect();
        for (location, answer) in wanted.locations {
            assert_eq!(racy.get(&location), Some(&answer), "seed {seed}, {shape:?}");
        }
    }
}

#[test]
fn the_traces_have_every_kind_of_access() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let shape = Shape::random(random);
        for race in hb(&trace(random, shape), PairBy::Site).races {
            seen.extend(race.accesses.map(|side| side.kind));
        }
    }
    let all = [
        AccessKind::Read,
        AccessKind::Write,
        AccessKind::AtomicRead,
        AccessKind::AtomicWrite,
        AccessKind::Free,
    ];
    assert!(all.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}
