//! What is said of the bytes that may race: detectors that read only these find the same.

use verdict_detect::{AccessKind, Algorithm, PairBy, SuspectBytes, Suspects};
use verdict_events::{Addr, Event, EventKind, SiteId, SyncId, ThreadId};

use crate::random::{Random, Shape, trace};
use crate::text::{Trace, findings, show};

fn suspects(events: &[Event]) -> SuspectBytes {
    suspected(Suspects::new(), events)
}

fn suspected(mut suspects: Suspects, events: &[Event]) -> SuspectBytes {
    events.iter().for_each(|event| suspects.event(event));
    suspects.finish()
}

fn kept(events: &[Event], suspects: &SuspectBytes) -> Vec<Event> {
    let wanted = |event: &&Event| match event.kind {
        EventKind::Read(access) | EventKind::Write(access) => {
            suspects.touches(access.addr.0, u64::from(access.size))
        }
        _ => true,
    };
    events.iter().filter(wanted).copied().collect()
}

type Told = Vec<([(u32, u32, AccessKind); 2], u64, Vec<u64>)>;

/// Races without the positions of their events.
fn told(events: &[Event], algorithm: Algorithm) -> Told {
    let found = findings(events, algorithm, PairBy::Site);
    let mut told: Told = found
        .races
        .iter()
        .map(|race| {
            let sides = race
                .accesses
                .map(|side| (side.thread.0, side.site.0, side.kind));
            let locations = race.locations.iter().map(|addr| addr.0).collect();
            (sides, race.instances, locations)
        })
        .collect();
    told.sort_unstable();
    told
}

#[test]
fn nothing_is_missed() {
    let mut dropped = [0, 0];
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let shape = Shape {
            forks: !seed.is_multiple_of(8),
            ..Shape::random(&mut random)
        };
        let events = trace(&mut random, shape);
        let shown = || events.iter().map(show).collect::<Vec<_>>().join("\n");
        for (count, (suspects, algorithm)) in dropped.iter_mut().zip([
            (Suspects::new(), Algorithm::Hb),
            (Suspects::of_predictions(), Algorithm::Hybrid),
        ]) {
            let kept = kept(&events, &suspected(suspects, &events));
            *count += events.len() - kept.len();
            let (kept, all) = (told(&kept, algorithm), told(&events, algorithm));
            assert_eq!(kept, all, "{algorithm}, seed {seed}\n{}", shown());
        }
    }
    let [races, predictions] = dropped;
    assert!(races > 10_000, "only {races} accesses were dropped");
    assert!(predictions > 1_000, "only {predictions} of predictions");
}

fn granules(text: &str) -> u64 {
    let trace = Trace::parse(text);
    let suspects = suspects(&trace.events);
    suspects.granules()
}

#[test]
fn what_is_ordered_is_not_suspected() {
    let begin = "T1 fork T2\nT1 fork T3\n";
    for (ordered, count) in [
        ("T1 acq m\nT1 w x\nT1 rel m\nT2 acq m\nT2 w x\nT2 rel m", 0),
        ("T1 w x\nT2 w x", 1),
        // Other bytes of one granule, in no order.
        ("T1 w 64/4\nT2 w 68/4\nT1 w 64/4\nT2 r 68/4\nT3 r 71/1", 1),
        ("T1 w 64/4\nT2 w 68/4\nT1 w 64/4\nT2 r 68/4\nT3 w 72/8", 0),
        // Readers of all kinds, then a writer that has waited for them.
        (
            "T1 r x\nT2 r x\nT3 r x\nT2 r x\nT2 end\nT3 end\nT1 join T2\nT1 join T3\nT1 w x",
            0,
        ),
        ("T1 r x\nT2 r x\nT3 end\nT1 join T3\nT1 w x", 1),
        // Memory that is used again, and memory that is used after it was given back.
        ("T2 w 64/8\nT1 alloc 64/8\nT1 w 64/8", 0),
        ("T2 w 1024/8\nT2 free 1024/90000\nT1 r 50000/8", 1),
        ("T2 free 1024/90000\nT1 alloc 49000/2000\nT1 r 50000/8", 0),
        ("T2 free 1024/90000\nT1 alloc 49000/2000\nT1 r 60000/8", 1),
        // Atomic operations among themselves, and beside plain ones.
        ("T1 rmw x relaxed\nT2 rmw x relaxed\nT3 ar x relaxed", 0),
        ("T1 rmw x relaxed\nT2 w x", 1),
        ("T1 w x\nT2 rmw x relaxed", 1),
    ] {
        let trace = format!("{begin}{ordered}");
        assert_eq!(granules(&trace), count, "{trace}");
    }
}

#[test]
fn a_thread_that_nobody_forked_may_race_with_anything() {
    let trace = Trace::parse("T1 w x\nT2 w x");
    assert!(suspects(&trace.events).touches(1, 1));
}

/// What a thread does to several pages at once is the same as what it does to them byte by byte.
#[test]
fn ranges_are_what_they_are_made_of() {
    const PAGE: u64 = 4096;
    const BASE: u64 = 16 * PAGE;
    let (mut found, mut clean) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut whole = Suspects::new();
        let mut single = Suspects::new();
        let both = |whole: &mut Suspects, single: &mut Suspects, thread, kind| {
            let (thread, site) = (ThreadId(thread), SiteId(0));
            let event = Event { thread, site, kind };
            whole.event(&event);
            single.event(&event);
        };
        for child in 1..4 {
            both(&mut whole, &mut single, 0, EventKind::Fork(ThreadId(child)));
        }
        for _ in 0..12 {
            let thread = random.below(4) as u32;
            let lock = SyncId(random.below(2));
            match random.below(8) {
                0 => both(&mut whole, &mut single, thread, EventKind::Notify(lock)),
                1 => both(&mut whole, &mut single, thread, EventKind::Wait(lock)),
                2 => {
                    let addr = Addr(BASE + 8 * random.below(1024));
                    let size = PAGE * random.below(3) + 8;
                    both(
                        &mut whole,
                        &mut single,
                        thread,
                        EventKind::Allocate { addr, size },
                    );
                }
                _ => {
                    let start = BASE + 8 * random.below(3) + PAGE * random.below(3);
                    let size = 16 + PAGE * random.below(4) + 8 * random.below(3);
                    let is_write = random.below(3) == 0;
                    whole.access_range(ThreadId(thread), start, size, is_write);
                    for at in (start..start + size).step_by(8) {
                        single.access_plain(ThreadId(thread), at, 8, is_write);
                    }
                }
            }
        }
        let (whole, single) = (whole.finish(), single.finish());
        assert_eq!(whole.granules(), single.granules(), "seed {seed}");
        for at in (BASE - PAGE..BASE + 9 * PAGE).step_by(8) {
            assert_eq!(
                whole.touches(at, 8),
                single.touches(at, 8),
                "seed {seed}, {at:#x}"
            );
        }
        *(if whole.is_empty() {
            &mut clean
        } else {
            &mut found
        }) += 1;
    }
    assert!(
        found > 20 && clean > 20,
        "{found} with suspects, {clean} without"
    );
}
