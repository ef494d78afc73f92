//! Many threads, many events: it works, and what is held does not grow with the number of events.

use verdict_detect::{Algorithm, PairBy, detect, detect_reading_ahead};
use verdict_events::generate::{GenerateOptions, Generator};
use verdict_events::{Access, Addr, Event, EventKind, LockMode, SiteId, SyncId, ThreadId};

use crate::random::Random;
use crate::text::findings;

fn event(thread: u32, site: u32, kind: EventKind) -> Event {
    Event {
        thread: ThreadId(thread),
        site: SiteId(site),
        kind,
    }
}

fn bytes(variable: u64) -> Access {
    Access {
        addr: Addr(variable * 8),
        size: 8,
        value: None,
    }
}

/// Main forks ten thousand threads; all count under a lock, the last two also race.
#[test]
fn ten_thousand_threads() {
    const THREADS: u32 = 10_000;
    let lock = SyncId(0);
    let mut events: Vec<Event> = (1..=THREADS)
        .map(|t| event(0, 0, EventKind::Fork(ThreadId(t))))
        .collect();
    for thread in 1..=THREADS {
        events.push(event(
            thread,
            1,
            EventKind::Acquire(lock, LockMode::Exclusive),
        ));
        events.push(event(thread, 2, EventKind::Read(bytes(0))));
        events.push(event(thread, 3, EventKind::Write(bytes(0))));
        events.push(event(thread, 4, EventKind::Write(bytes(u64::from(thread)))));
        events.push(event(
            thread,
            5,
            EventKind::Release(lock, LockMode::Exclusive),
        ));
    }
    events.push(event(THREADS - 1, 6, EventKind::Write(bytes(1 << 30))));
    events.push(event(THREADS, 7, EventKind::Read(bytes(1 << 30))));
    events.extend((1..=THREADS).map(|t| event(0, 8, EventKind::Join(ThreadId(t)))));
    events.push(event(0, 9, EventKind::Write(bytes(0))));
    for algorithm in Algorithm::ALL {
        let found = findings(&events, algorithm, PairBy::Site);
        let races: Vec<_> = found
            .races
            .iter()
            .map(|race| race.accesses.map(|side| side.site.0))
            .collect();
        assert_eq!(races, [[6, 7]], "{algorithm}");
        assert_eq!(found.trace.threads, u64::from(THREADS) + 1, "{algorithm}");
    }
}

/// Eight threads work on twenty variables, some under locks, some not, for 600,000 events. Answers with the most
/// records of accesses that the detector held during the first quarter, and during the rest.
fn most_records(algorithm: Algorithm) -> [u64; 2] {
    let mut random = Random::new(7);
    let mut detector = algorithm.detector(PairBy::Site);
    let mut most = [0, 0];
    for round in 0..600 {
        let mut batch = Vec::new();
        for _ in 0..200 {
            let thread = random.below(8) as u32;
            let lock = SyncId(random.below(10));
            let site = random.below(5) as u32;
            let mut push = |site, kind| batch.push(event(thread, site, kind));
            push(0, EventKind::Acquire(lock, LockMode::Exclusive));
            push(site, EventKind::Write(bytes(lock.0)));
            push(site, EventKind::Read(bytes(10 + random.below(10))));
            push(0, EventKind::Release(lock, LockMode::Exclusive));
            push(site, EventKind::Write(bytes(10 + random.below(10))));
        }
        detector.events(&batch);
        let part = &mut most[usize::from(round >= 150)];
        *part = (*part).max(detector.records());
    }
    most
}

#[test]
fn history_does_not_grow_with_events() {
    for algorithm in Algorithm::ALL {
        let [first, rest] = most_records(algorithm);
        // Four times the events: a little noise, no growth.
        assert!(
            rest < first + first / 2,
            "{algorithm}: {first} records in the first quarter, {rest} later"
        );
    }
}

/// Where a trace is read ahead, repeated accesses are found by the thread that reads; otherwise by the detector.
#[test]
fn reading_ahead_changes_no_answer() {
    for seed in 0..4 {
        let trace = || {
            Generator::new(GenerateOptions {
                events: 30_000,
                locations: 400,
                seed,
                ..GenerateOptions::default()
            })
        };
        let detectors = || {
            let all = Algorithm::ALL.into_iter();
            all.map(|algorithm| algorithm.detector(PairBy::Site))
                .collect()
        };
        let plain = detect(&mut trace(), detectors(), &mut |_| {}).expect("a sound trace");
        let ahead = detect_reading_ahead(&mut trace(), detectors(), &mut |_| {});
        assert!(plain.iter().all(|found| !found.races.is_empty()));
        assert!(plain == ahead.expect("a sound trace"), "seed {seed}");
    }
}
