//! The race-directed random scheduler (Sen 2008, algorithms 1 and 2).
//!
//! A thread that is about to execute one of the two sites is postponed until another thread is about to race with it:
//! the same bytes, one of them written. Then the race is real, a coin decides who goes first, and the run goes on.
//! When all threads that could run are postponed, one of them is released at random.
//!
//! Departs from the paper in how a starving program is noticed: a postponed thread is released after a number of
//! instructions of the others, not after seconds, so that a seed repeats the run exactly. And every other run has
//! priorities (after Burckhardt et al. 2010) where the paper draws a thread at each occasion: a site that a thread reaches
//! only if it is left alone at many occasions before is never met otherwise.

use crate::lock_cycle::{self, Taker};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use verdict_events::ThreadId;
use verdict_schedule::{Decision, DecisionPoint, Next, NextAccess, Reason, Scheduler, SplitMix};

/// What to steer to, and by which dice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Directed {
    /// Where every choice comes from.
    pub seed: u64,
    /// Instructions of one site: a line may have several.
    pub first: BTreeSet<u64>,
    /// Instructions of the other site.
    pub second: BTreeSet<u64>,
    /// What the sites are.
    #[serde(default)]
    pub aim: Aim,
    /// More sites, of a cycle of more than two locks.
    #[serde(default)]
    pub further: Vec<BTreeSet<u64>>,
    /// After how many instructions a thread must let others run, so that spinning ends.
    pub quantum: u64,
    /// How long a thread may be kept waiting for its counterpart, in instructions of all threads. Each time that nobody
    /// comes it is half as long from then on, so that a program in which others spin meanwhile comes to its end.
    pub patience: u64,
}

/// What a run is steered to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Aim {
    /// Two accesses: threads stand before them at the same time, and a coin decides.
    #[default]
    Race,
    /// Calls that take locks, whose argument is what they access: a thread stands before each, and all go on.
    Deadlock,
}

/// Two threads about to race.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Facing {
    /// Instructions retired by all threads.
    pub retired: u64,
    /// The thread that had been waiting, and the instruction it stands before.
    pub waiting: (u32, u64),
    /// The thread that arrived.
    pub arrived: (u32, u64),
    /// The one that had been waiting writes.
    #[serde(default)]
    pub waiting_writes: bool,
    /// The one that arrived writes.
    #[serde(default)]
    pub arrived_writes: bool,
    /// A byte that both access.
    pub address: u64,
    /// The one that arrived goes first.
    pub arrived_first: bool,
}

/// A thread that is kept from going on.
#[derive(Clone, Debug)]
struct Postponed {
    pc: u64,
    accesses: Vec<NextAccess>,
    since: u64,
}

/// Steers two threads to the two sites of a race.
#[derive(Clone, Debug)]
pub struct RaceDirected {
    target: Directed,
    random: SplitMix,
    postponed: BTreeMap<ThreadId, Postponed>,
    /// Postponed before and told to go on: their instruction may run now.
    released: BTreeSet<ThreadId>,
    facings: Vec<Facing>,
    /// How long a thread is kept waiting now.
    patience: u64,
    /// Who goes before whom, where that is not drawn anew each time.
    priorities: Option<Priorities>,
    decisions: u64,
}

/// An order of threads, drawn as they appear; who has used up a turn or gives way goes last.
#[derive(Clone, Default, Debug)]
struct Priorities {
    ranks: BTreeMap<ThreadId, i64>,
    last: i64,
    /// Decisions in a row that left the same thread running.
    in_a_row: u32,
}

impl Priorities {
    fn demote(&mut self, thread: ThreadId) {
        self.last -= 1;
        self.ranks.insert(thread, self.last);
    }

    fn highest(&mut self, threads: &[ThreadId], random: &mut SplitMix) -> ThreadId {
        const RANKS: u64 = 1 << 32;
        for thread in threads {
            self.ranks
                .entry(*thread)
                .or_insert_with(|| random.below(RANKS) as i64);
        }
        let highest = threads.iter().max_by_key(|thread| self.ranks[thread]);
        *highest.expect("somebody can run")
    }
}

/// Decisions that may leave one thread running, one after the other: more is spinning at a site.
const IN_A_ROW_MAX: u32 = 1000;
/// Decisions for which a thread is kept waiting, at most.
const DECISIONS_MAX: u64 = 20_000;
/// Patience does not get shorter than this, in instructions.
const PATIENCE_MIN: u64 = 100_000;
/// More are counted by nobody: the first ones tell.
const FACINGS_MAX: usize = 64;

impl RaceDirected {
    /// A scheduler for one run.
    #[must_use]
    pub fn new(target: Directed) -> Self {
        let mut random = SplitMix::new(target.seed);
        let by_priority = random.below(2) == 0;
        RaceDirected {
            random,
            priorities: by_priority.then(Priorities::default),
            patience: target.patience,
            decisions: 0,
            target,
            postponed: BTreeMap::new(),
            released: BTreeSet::new(),
            facings: Vec::new(),
        }
    }

    /// The races that were created so far.
    #[must_use]
    pub fn facings(&self) -> &[Facing] {
        &self.facings
    }

    /// True if a postponed thread is about to access some of these bytes, and the two would conflict.
    #[must_use]
    pub fn awaits(&self, access: &NextAccess) -> bool {
        self.postponed
            .values()
            .flat_map(|postponed| &postponed.accesses)
            .any(|other| other.conflicts(access))
    }

    /// A thread stands before one of the two sites.
    fn arrive(&mut self, point: &DecisionPoint<'_>, thread: ThreadId, next: &Next<'_>) -> Decision {
        if self.released.remove(&thread) {
            return Decision::Continue;
        }
        if self.target.aim == Aim::Deadlock {
            return self.arrive_at_lock(point, thread, next);
        }
        let rivals = self.rivals(thread, next);
        let Some((first_rival, meeting)) = rivals.first().copied() else {
            self.postpone(thread, next, self.now(point));
            return self.another(point);
        };
        let arrived_first = self.random.below(2) == 0;
        if self.facings.len() < FACINGS_MAX {
            self.facings.push(Facing {
                retired: point.retired,
                waiting: (first_rival.0, self.postponed[&first_rival].pc),
                arrived: (thread.0, next.pc),
                waiting_writes: meeting.waiting_writes,
                arrived_writes: meeting.arrived_writes,
                address: meeting.address,
                arrived_first,
            });
        }
        if arrived_first {
            return Decision::Continue;
        }
        self.postpone(thread, next, self.now(point));
        for (rival, _) in &rivals {
            self.release(*rival);
        }
        self.run(first_rival)
    }

    /// A thread is about to take a lock of the cycle: when somebody stands before each, all go on.
    fn arrive_at_lock(
        &mut self,
        point: &DecisionPoint<'_>,
        thread: ThreadId,
        next: &Next<'_>,
    ) -> Decision {
        let lock = |accesses: &[NextAccess]| accesses.first().map_or(0, |access| access.address);
        let arrived = Taker {
            thread,
            pc: next.pc,
            lock: lock(next.accesses),
        };
        let waiting: Vec<Taker> = self
            .postponed
            .iter()
            .filter(|(other, _)| **other != thread)
            .map(|(other, postponed)| Taker {
                thread: *other,
                pc: postponed.pc,
                lock: lock(&postponed.accesses),
            })
            .collect();
        let Some(others) = lock_cycle::complete(&self.sites(), arrived, &waiting) else {
            self.postpone(thread, next, self.now(point));
            return self.another(point);
        };
        let first = others[0];
        if self.facings.len() < FACINGS_MAX {
            self.facings.push(Facing {
                retired: point.retired,
                waiting: (first.0, self.postponed[&first].pc),
                arrived: (thread.0, next.pc),
                waiting_writes: true,
                arrived_writes: true,
                address: arrived.lock,
                arrived_first: true,
            });
        }
        others.into_iter().for_each(|other| self.release(other));
        Decision::Continue
    }

    fn sites(&self) -> Vec<BTreeSet<u64>> {
        let two = [&self.target.first, &self.target.second];
        two.into_iter()
            .chain(&self.target.further)
            .cloned()
            .collect()
    }

    /// True if sites are calls that take locks.
    #[must_use]
    pub fn aims_at_locks(&self) -> bool {
        self.target.aim == Aim::Deadlock
    }

    /// Postponed threads whose access conflicts with this one, with a byte that both touch.
    fn rivals(&self, thread: ThreadId, next: &Next<'_>) -> Vec<(ThreadId, Meeting)> {
        self.postponed
            .iter()
            .filter(|(other, _)| **other != thread)
            .filter(|(_, postponed)| self.is_pair(postponed.pc, next.pc))
            .filter_map(|(other, postponed)| {
                let meeting = meeting(&postponed.accesses, next.accesses)?;
                Some((*other, meeting))
            })
            .collect()
    }

    fn is_pair(&self, a: u64, b: u64) -> bool {
        let (first, second) = (&self.target.first, &self.target.second);
        first.contains(&a) && second.contains(&b) || first.contains(&b) && second.contains(&a)
    }

    fn is_site(&self, pc: u64) -> bool {
        let further = self.target.further.iter();
        self.target.first.contains(&pc)
            || self.target.second.contains(&pc)
            || further.into_iter().any(|site| site.contains(&pc))
    }

    fn postpone(&mut self, thread: ThreadId, next: &Next<'_>, since: u64) {
        let postponed = Postponed {
            pc: next.pc,
            accesses: next.accesses.to_vec(),
            since,
        };
        self.postponed.insert(thread, postponed);
    }

    fn release(&mut self, thread: ThreadId) {
        if self.postponed.remove(&thread).is_some() {
            self.released.insert(thread);
        }
    }

    /// Any thread that may run; a postponed one if there is no other.
    fn another(&mut self, point: &DecisionPoint<'_>) -> Decision {
        self.end_patience(self.now(point));
        let mut free: Vec<ThreadId> = point
            .runnable
            .iter()
            .copied()
            .filter(|thread| !self.postponed.contains_key(thread))
            .collect();
        if free.is_empty() {
            let chosen = self.any(point.runnable);
            self.release(chosen);
            free.push(chosen);
        }
        let chosen = match &mut self.priorities {
            Some(priorities) => {
                let current = point.current.filter(|current| free.contains(current));
                let had_its_turn = gives_way(point.reason) || priorities.in_a_row > IN_A_ROW_MAX;
                if let (Some(current), true) = (current, had_its_turn) {
                    priorities.demote(current);
                }
                let highest = priorities.highest(&free, &mut self.random);
                let again = point.current == Some(highest);
                priorities.in_a_row = if again { priorities.in_a_row + 1 } else { 0 };
                highest
            }
            None => self.any(&free),
        };
        self.run(chosen)
    }

    /// How far the run is: a decision takes as long as many instructions, so that a thread that spins at a site does not
    /// use up everybody's time.
    fn now(&self, point: &DecisionPoint<'_>) -> u64 {
        point.retired + self.decisions * (self.target.patience / DECISIONS_MAX)
    }

    /// Who has waited too long is told to go on: nobody may ever come.
    fn end_patience(&mut self, now: u64) {
        let patience = self.patience;
        let late: Vec<ThreadId> = self
            .postponed
            .iter()
            .filter(|(_, postponed)| now - postponed.since > patience)
            .map(|(thread, _)| *thread)
            .collect();
        if !late.is_empty() {
            self.patience = (patience / 2).max(self.target.patience.min(PATIENCE_MIN));
        }
        late.into_iter().for_each(|thread| self.release(thread));
    }

    fn any(&mut self, threads: &[ThreadId]) -> ThreadId {
        threads[self.random.below(threads.len() as u64) as usize]
    }

    fn run(&mut self, thread: ThreadId) -> Decision {
        // Whoever goes first is left alone for long, and yet not for ever.
        let turn = match self.priorities {
            Some(_) => self.target.quantum.max(self.target.patience / 4),
            None => self.target.quantum,
        };
        Decision::Run {
            thread,
            instructions_max: turn,
        }
    }
}

impl Scheduler for RaceDirected {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        self.decisions += 1;
        let waiting = |thread: &ThreadId| point.runnable.contains(thread);
        self.postponed.retain(|thread, _| waiting(thread));
        match (point.reason, point.next, point.current) {
            (Reason::Watched, Some(next), Some(thread)) if self.is_site(next.pc) => {
                self.arrive(point, thread, &next)
            }
            // The end of a turn does not take a thread's place at its site.
            _ => self.another(point),
        }
    }
}

/// True where a thread has had its turn: another one must get one, or nobody who spins would ever see an end of it.
fn gives_way(reason: Reason) -> bool {
    matches!(reason, Reason::QuantumEnd | Reason::Yielded)
}

/// Where two threads conflict.
#[derive(Clone, Copy, Debug)]
struct Meeting {
    address: u64,
    waiting_writes: bool,
    arrived_writes: bool,
}

fn meeting(waiting: &[NextAccess], arrived: &[NextAccess]) -> Option<Meeting> {
    waiting.iter().find_map(|first| {
        let second = arrived.iter().find(|second| first.conflicts(second))?;
        Some(Meeting {
            address: first.address.max(second.address),
            waiting_writes: first.write,
            arrived_writes: second.write,
        })
    })
}

#[cfg(test)]
mod tests {
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
        let mut scheduler = RaceDirected::new(target(3));
        let alone = at(&mut scheduler, 0, 0x10, &write(0x100), &[0]);
        assert_eq!(chosen(alone), 0);
        // Back at its site, it may pass.
        assert_eq!(
            at(&mut scheduler, 0, 0x10, &write(0x100), &[0]),
            Decision::Continue
        );
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
}
