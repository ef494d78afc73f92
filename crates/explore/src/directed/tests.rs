//! Single decisions of the race-directed scheduler.

use super::*;

const QUANTUM: u64 = 1000;
/// A seed whose run has no priorities.
const UNIFORM: u64 = 2;

fn target(seed: u64) -> Directed {
    Directed {
        seed,
        first: BTreeSet::from([0x10]),
        second: BTreeSet::from([0x20]),
        aim: Aim::Race,
        further: Vec::new(),
        others: BTreeSet::new(),
        meet_at_others: false,
        quantum: QUANTUM,
        patience: 10_000,
    }
}

fn write(address: u64) -> [NextAccess; 1] {
    [NextAccess {
        address,
        len: 4,
        write: true,
    }]
}

fn at(
    scheduler: &mut RaceDirected,
    thread: u32,
    pc: u64,
    accesses: &[NextAccess],
    runnable: &[u32],
) -> Decision {
    let runnable: Vec<_> = runnable.iter().copied().map(ThreadId).collect();
    scheduler.decide(&DecisionPoint {
        reason: Reason::Watched,
        current: Some(ThreadId(thread)),
        runnable: &runnable,
        retired: 0,
        next: Some(Next { pc, accesses }),
    })
}

fn chosen(decision: Decision) -> u32 {
    match decision {
        Decision::Run { thread, .. } => thread.0,
        Decision::Continue | Decision::Wait => panic!("somebody else was to run"),
    }
}

#[test]
fn a_thread_waits_at_its_site_and_the_race_is_seen_when_the_other_comes() {
    let (mut first, mut second) = (0, 0);
    for seed in 0..200 {
        let mut scheduler = RaceDirected::new(target(seed));
        let other = at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1]);
        assert_eq!(chosen(other), 1);
        let decision = at(&mut scheduler, 1, 0x20, &write(0x102), &[0, 1]);
        assert_eq!(scheduler.facings().len(), 1);
        let facing = scheduler.facings()[0];
        assert_eq!((facing.waiting, facing.arrived), ((0, 0x10), (1, 0x20)));
        assert_eq!(facing.address, 0x102);
        match decision {
            Decision::Continue => first += 1,
            Decision::Run { thread, .. } => {
                assert_eq!(thread, ThreadId(0));
                second += 1;
            }
            Decision::Wait => panic!("nobody sleeps"),
        }
    }
    assert!(first > 60 && second > 60, "{first} and {second}");
}

#[test]
fn other_bytes_or_two_reads_are_no_race() {
    let mut scheduler = RaceDirected::new(target(1));
    at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1, 2]);
    at(&mut scheduler, 1, 0x20, &write(0x104), &[0, 1, 2]);
    assert!(scheduler.facings().is_empty());
    let read = [NextAccess {
        write: false,
        ..write(0x100)[0]
    }];
    let mut scheduler = RaceDirected::new(target(1));
    at(&mut scheduler, 0, 0x10, &read, &[0, 1, 2]);
    at(&mut scheduler, 1, 0x20, &read, &[0, 1, 2]);
    assert!(scheduler.facings().is_empty());
}

#[test]
fn the_same_side_twice_is_not_the_pair() {
    let mut scheduler = RaceDirected::new(target(1));
    at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1, 2]);
    at(&mut scheduler, 1, 0x10, &write(0x100), &[0, 1, 2]);
    assert!(scheduler.facings().is_empty());
}

#[test]
fn locks_are_taken_when_somebody_stands_before_each() {
    let mut scheduler = RaceDirected::new(Directed {
        aim: Aim::Deadlock,
        further: vec![BTreeSet::from([0x30])],
        ..target(1)
    });
    at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1, 2]);
    at(&mut scheduler, 1, 0x20, &write(0x200), &[0, 1, 2]);
    assert!(scheduler.facings().is_empty());
    let last = at(&mut scheduler, 2, 0x30, &write(0x300), &[0, 1, 2]);
    assert_eq!(last, Decision::Continue);
    assert_eq!(scheduler.facings().len(), 1);
    for (thread, pc) in [(0, 0x10), (1, 0x20)] {
        let next = at(&mut scheduler, thread, pc, &write(0x100), &[0, 1]);
        assert_eq!(next, Decision::Continue);
    }
}

#[test]
fn when_everybody_is_postponed_one_is_released() {
    for seed in 0..20 {
        let mut scheduler = RaceDirected::new(target(seed));
        assert_eq!(
            chosen(at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1])),
            1
        );
        let released = chosen(at(&mut scheduler, 1, 0x10, &write(0x100), &[0, 1]));
        if released == 0 {
            // Back at its site, it may pass.
            let back = at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1]);
            assert_eq!(back, Decision::Continue);
        }
    }
}

#[test]
fn patience_ends_by_instructions() {
    let mut scheduler = RaceDirected::new(target(UNIFORM));
    at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1]);
    let both = [ThreadId(0), ThreadId(1)];
    let ends = |retired| DecisionPoint {
        reason: Reason::QuantumEnd,
        current: Some(ThreadId(1)),
        runnable: &both,
        retired,
        next: None,
    };
    for _ in 0..50 {
        assert_eq!(chosen(scheduler.decide(&ends(10_000))), 1);
    }
    let later: BTreeSet<u32> = (0..50)
        .map(|_| chosen(scheduler.decide(&ends(10_001))))
        .collect();
    assert_eq!(later, BTreeSet::from([0, 1]));
}

#[test]
fn a_thread_is_left_alone_at_many_occasions_in_some_runs() {
    let both = [ThreadId(0), ThreadId(1)];
    let alone = |seed: &u64| {
        let mut scheduler = RaceDirected::new(target(*seed));
        (0..40).all(|retired| {
            let decision = scheduler.decide(&DecisionPoint {
                reason: Reason::SystemCall,
                current: Some(ThreadId(1)),
                runnable: &both,
                retired,
                next: None,
            });
            chosen(decision) == 1
        })
    };
    let runs = (0..200).filter(alone).count();
    assert!((25..75).contains(&runs), "{runs} of 200");
}

#[test]
fn who_has_had_a_turn_goes_last() {
    let both = [ThreadId(0), ThreadId(1)];
    for seed in 0..50 {
        let mut scheduler = RaceDirected::new(target(seed));
        let mut current = ThreadId(1);
        let mut seen = BTreeSet::new();
        for retired in 0..60 {
            let decision = scheduler.decide(&DecisionPoint {
                reason: Reason::QuantumEnd,
                current: Some(current),
                runnable: &both,
                retired,
                next: None,
            });
            current = ThreadId(chosen(decision));
            seen.insert(current.0);
        }
        assert_eq!(seen, BTreeSet::from([0, 1]));
    }
}

#[test]
fn a_seed_repeats_a_run() {
    let run = |seed| {
        let mut scheduler = RaceDirected::new(target(seed));
        let threads = [ThreadId(0), ThreadId(1), ThreadId(2)];
        (0..100)
            .map(|index| {
                scheduler.decide(&DecisionPoint {
                    reason: Reason::QuantumEnd,
                    current: Some(threads[index % 3]),
                    runnable: &threads,
                    retired: index as u64,
                    next: None,
                })
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn asleep(scheduler: &mut RaceDirected, sleepers: bool) {
    scheduler.tell(Situation {
        sleepers,
        ..Situation::default()
    });
}

#[test]
fn time_passes_before_a_postponed_thread_is_released() {
    let mut scheduler = RaceDirected::new(target(3));
    asleep(&mut scheduler, true);
    for _ in 0..100 {
        let alone = at(&mut scheduler, 0, 0x10, &write(0x100), &[0]);
        assert_eq!(alone, Decision::Wait);
    }
    // Whoever wakes up is the counterpart.
    assert_eq!(
        chosen(at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1])),
        1
    );
    at(&mut scheduler, 1, 0x20, &write(0x100), &[0, 1]);
    assert_eq!(scheduler.facings().len(), 1);
}

#[test]
fn waiting_for_those_who_sleep_has_an_end() {
    let mut scheduler = RaceDirected::new(Directed {
        patience: DECISIONS_MAX,
        ..target(3)
    });
    asleep(&mut scheduler, true);
    let waits = (0..2 * DECISIONS_MAX)
        .take_while(|_| at(&mut scheduler, 0, 0x10, &write(0x100), &[0]) == Decision::Wait)
        .count();
    assert!(
        (DECISIONS_MAX - 2..=DECISIONS_MAX + 2).contains(&(waits as u64)),
        "{waits}"
    );
}

#[test]
fn who_passes_its_site_at_once_is_stopped_at_the_next() {
    let mut scheduler = RaceDirected::new(target(3));
    assert_eq!(chosen(at(&mut scheduler, 0, 0x10, &write(0x100), &[0])), 0);
    // It has passed: this is another access.
    assert_eq!(
        chosen(at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1])),
        1
    );
}

/// 0x10 and 0x20 belong together, 0x30 is to come between.
fn atomicity() -> RaceDirected {
    RaceDirected::new(Directed {
        aim: Aim::Atomicity,
        further: vec![BTreeSet::from([0x30])],
        ..target(UNIFORM)
    })
}

/// The thread comes to a place where it could be switched, which is no site.
fn elsewhere(scheduler: &mut RaceDirected, thread: u32, runnable: &[u32]) -> u32 {
    let runnable: Vec<_> = runnable.iter().copied().map(ThreadId).collect();
    chosen(scheduler.decide(&DecisionPoint {
        reason: Reason::SystemCall,
        current: Some(ThreadId(thread)),
        runnable: &runnable,
        retired: 0,
        next: None,
    }))
}

#[test]
fn the_third_access_comes_between() {
    let both = &[0, 1];
    let mut scheduler = atomicity();
    let first = at(&mut scheduler, 0, 0x10, &write(0x100), both);
    assert_eq!(first, Decision::Continue);
    assert_eq!(chosen(at(&mut scheduler, 0, 0x20, &write(0x100), both)), 1);
    let third = at(&mut scheduler, 1, 0x30, &write(0x100), both);
    assert_eq!(third, Decision::Continue);
    assert!(scheduler.facings().is_empty(), "the second is to come");
    let second = at(&mut scheduler, 0, 0x20, &write(0x100), both);
    assert_eq!(second, Decision::Continue);
    let facing = scheduler.facings()[0];
    assert_eq!((facing.waiting.0, facing.arrived), (0, (1, 0x30)));
}

#[test]
fn who_waits_at_the_third_access_goes_when_somebody_is_between() {
    let both = &[0, 1];
    let mut scheduler = atomicity();
    assert_eq!(chosen(at(&mut scheduler, 1, 0x30, &write(0x100), both)), 0);
    at(&mut scheduler, 0, 0x10, &write(0x100), both);
    assert_eq!(elsewhere(&mut scheduler, 0, both), 1);
    let third = at(&mut scheduler, 1, 0x30, &write(0x100), both);
    assert_eq!(third, Decision::Continue);
    let second = at(&mut scheduler, 0, 0x20, &write(0x100), both);
    assert_eq!(second, Decision::Continue);
    assert_eq!(scheduler.facings().len(), 1);
}

#[test]
fn who_is_between_is_held_back_wherever_it_is() {
    let both = &[0, 1];
    let mut scheduler = atomicity();
    at(&mut scheduler, 0, 0x10, &write(0x100), both);
    for _ in 0..20 {
        assert_eq!(elsewhere(&mut scheduler, 0, both), 1);
    }
    assert_eq!(elsewhere(&mut scheduler, 1, &[0]), 0, "nobody else can run");
}

#[test]
fn without_all_three_on_the_same_bytes_nothing_is_violated() {
    let both = &[0, 1];
    let mut scheduler = atomicity();
    // No first access.
    at(&mut scheduler, 0, 0x20, &write(0x100), both);
    // Other bytes.
    at(&mut scheduler, 0, 0x10, &write(0x100), both);
    at(&mut scheduler, 0, 0x20, &write(0x100), both);
    at(&mut scheduler, 1, 0x30, &write(0x200), both);
    assert!(scheduler.facings().is_empty());
    // The second access of the first time is never made.
    let mut scheduler = atomicity();
    at(&mut scheduler, 0, 0x10, &write(0x100), both);
    at(&mut scheduler, 1, 0x30, &write(0x100), both);
    at(&mut scheduler, 0, 0x10, &write(0x100), both);
    at(&mut scheduler, 0, 0x20, &write(0x100), &[0]);
    assert!(scheduler.facings().is_empty());
}

/// 0x40 and 0x50 are sites of another race.
fn with_others(seed: u64) -> RaceDirected {
    RaceDirected::new(Directed {
        others: BTreeSet::from([0x40, 0x50]),
        meet_at_others: true,
        ..target(seed)
    })
}

#[test]
fn threads_meet_at_other_races_in_both_orders_and_nobody_counts_it() {
    let mut orders = BTreeSet::new();
    for seed in 0..20 {
        let mut scheduler = with_others(seed);
        let waits = at(&mut scheduler, 0, 0x40, &write(0x100), &[0, 1]);
        assert_eq!(chosen(waits), 1);
        orders.insert(match at(&mut scheduler, 1, 0x50, &write(0x100), &[0, 1]) {
            Decision::Continue => 1,
            other => chosen(other),
        });
        assert!(scheduler.facings().is_empty());
    }
    assert_eq!(orders, BTreeSet::from([0, 1]));
}

#[test]
fn who_waits_at_another_race_is_let_go_first() {
    for seed in 0..20 {
        let mut scheduler = with_others(seed);
        at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1]);
        let next = at(&mut scheduler, 1, 0x40, &write(0x200), &[0, 1]);
        assert_eq!(chosen(next), 1);
    }
}

#[test]
fn a_loop_at_another_race_is_left_alone_after_a_while() {
    let mut scheduler = with_others(UNIFORM);
    let mut stops = 0;
    while !scheduler.is_done_with(0x40) {
        at(&mut scheduler, 0, 0x40, &write(0x100), &[0]);
        stops += 1;
    }
    assert!((100..10_000).contains(&stops), "{stops}");
}

#[test]
fn a_loop_that_synchronises_is_left_alone_after_a_while() {
    let mut scheduler = RaceDirected::new(target(UNIFORM));
    let mut stops = 0;
    while !scheduler.is_done_with(0x99) {
        at(&mut scheduler, 0, 0x99, &[], &[0, 1]);
        stops += 1;
    }
    assert!((1000..100_000).contains(&stops), "{stops}");
}

#[test]
fn a_loop_at_the_race_is_left_alone_only_when_the_race_was_created() {
    let mut scheduler = RaceDirected::new(target(UNIFORM));
    for _ in 0..100_000 {
        at(&mut scheduler, 0, 0x10, &write(0x100), &[0]);
    }
    assert!(!scheduler.is_done_with(0x10));
    at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1]);
    at(&mut scheduler, 1, 0x20, &write(0x100), &[0, 1]);
    assert_eq!(scheduler.facings().len(), 1);
    assert!(scheduler.is_done_with(0x10));
    assert!(!scheduler.is_done_with(0x20));
}

#[test]
fn a_thread_is_kept_waiting_however_often_others_synchronise() {
    let mut scheduler = RaceDirected::new(target(UNIFORM));
    at(&mut scheduler, 0, 0x10, &write(0x100), &[0, 1]);
    for _ in 0..100_000 {
        assert_eq!(chosen(at(&mut scheduler, 1, 0x99, &[], &[0, 1])), 1);
    }
    at(&mut scheduler, 1, 0x20, &write(0x100), &[0, 1]);
    assert_eq!(scheduler.facings().len(), 1);
}
