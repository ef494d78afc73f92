//! The race-directed random scheduler (Sen 2008, algorithms 1 and 2).
//!
//! A thread that is about to execute one of the two sites is postponed until another thread is about to race with it:
//! the same bytes, one of them written. Then the race is real, a coin decides who goes first, and the run goes on.
//! When all threads that could run are postponed, one of them is released at random.
//!
//! Departs from the paper:
//! - A starving program is noticed by the instructions and decisions of the others, not by seconds, so that a seed repeats
//!   the run exactly.
//! - Where everybody else sleeps or waits with a timeout, time passes before anybody is released: whoever wakes up may be
//!   the counterpart. Each such step is a decision, so that this has an end, too.
//! - Other races of the program are on the way to this one: threads can be made to meet at their sites, too.
//! - Every other run has priorities (after Burckhardt et al. 2010) where the paper draws a thread at each occasion: a
//!   site that a thread reaches only if it is left alone at many occasions before is never met otherwise.

mod atomicity;
mod others;
mod priorities;
mod stops;

use crate::Situation;
use crate::lock_cycle::{self, Taker};
use atomicity::Atomicity;
use priorities::Priorities;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use stops::Stops;
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
    /// Sites of other races: occasions to switch.
    #[serde(default)]
    pub others: BTreeSet<u64>,
    /// Threads wait for each other at those, too, so that what the other races can do is done: it may be the way here.
    #[serde(default)]
    pub meet_at_others: bool,
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
    /// Two accesses of one thread, the first and the second site, that another thread is to come between with an access
    /// of the third: `further` has it.
    Atomicity,
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
    atomicity: Atomicity,
    /// Somebody waits for a time that will come.
    sleepers: bool,
    stops: Stops,
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
            atomicity: Atomicity::default(),
            sleepers: false,
            stops: Stops::default(),
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

    /// Says how things stand, before each decision.
    pub fn tell(&mut self, situation: Situation) {
        self.sleepers = situation.sleepers;
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
            self.pass(thread, next);
            return Decision::Continue;
        }
        match self.target.aim {
            Aim::Race => self.arrive_at_access(point, thread, next),
            Aim::Deadlock => self.arrive_at_lock(point, thread, next),
            Aim::Atomicity => self.arrive_at_third(point, thread, next),
        }
    }

    /// A thread is about to make one of the two accesses.
    fn arrive_at_access(
        &mut self,
        point: &DecisionPoint<'_>,
        thread: ThreadId,
        next: &Next<'_>,
    ) -> Decision {
        let rivals = self.rivals(thread, next);
        let Some((first_rival, meeting)) = rivals.first().copied() else {
            self.postpone(thread, next, self.now(point));
            return self.another(point);
        };
        let arrived_first = self.random.below(2) == 0;
        self.note(Facing {
            retired: point.retired,
            waiting: (first_rival.0, self.postponed[&first_rival].pc),
            arrived: (thread.0, next.pc),
            waiting_writes: meeting.waiting_writes,
            arrived_writes: meeting.arrived_writes,
            address: meeting.address,
            arrived_first,
        });
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
        self.note(Facing {
            retired: point.retired,
            waiting: (first.0, self.postponed[&first].pc),
            arrived: (thread.0, next.pc),
            waiting_writes: true,
            arrived_writes: true,
            address: arrived.lock,
            arrived_first: true,
        });
        others.into_iter().for_each(|other| self.release(other));
        Decision::Continue
    }

    fn note(&mut self, facing: Facing) {
        if self.facings.len() < FACINGS_MAX {
            self.facings.push(facing);
        }
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

    /// True where a thread is asked, if it stands there.
    fn is_stop(&self, pc: u64) -> bool {
        self.is_site(pc) || self.is_other(pc)
    }

    fn postpone(&mut self, thread: ThreadId, next: &Next<'_>, since: u64) {
        // Who is asked again after some time has passed has been waiting all the while.
        let before = self.postponed.get(&thread);
        let since = match before.filter(|before| before.pc == next.pc) {
            Some(before) => before.since,
            None => since,
        };
        let postponed = Postponed {
            pc: next.pc,
            accesses: next.accesses.to_vec(),
            since,
        };
        self.postponed.insert(thread, postponed);
    }

    fn release(&mut self, thread: ThreadId) {
        let postponed = self.postponed.remove(&thread);
        if postponed.is_some_and(|postponed| self.is_stop(postponed.pc)) {
            self.released.insert(thread);
        }
    }

    /// Any thread that may run; a postponed one if there is no other and nobody will wake up.
    fn another(&mut self, point: &DecisionPoint<'_>) -> Decision {
        if self.target.aim == Aim::Atomicity
            && let Some(decision) = self.come_between(point)
        {
            return decision;
        }
        self.end_patience(self.now(point));
        let mut free: Vec<ThreadId> = point
            .runnable
            .iter()
            .copied()
            .filter(|thread| !self.postponed.contains_key(thread))
            .collect();
        if free.is_empty() {
            let mut idle = self.at_others(point.runnable);
            if idle.is_empty() {
                if self.sleepers {
                    return Decision::Wait;
                }
                idle = point.runnable.to_vec();
            }
            let chosen = self.any(&idle);
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
        // Who stands at a site and is chosen makes its access at once, and is not asked again about this one.
        if let (Reason::Watched, Some(next)) = (point.reason, &point.next)
            && point.current == Some(chosen)
            && self.released.remove(&chosen)
        {
            self.pass(chosen, next);
        }
        self.run(chosen)
    }

    /// How far the run is: a decision takes as long as many instructions, so that a thread that spins at a site does not
    /// use up everybody's time.
    fn now(&self, point: &DecisionPoint<'_>) -> u64 {
        point.retired + self.decisions * (self.target.patience / DECISIONS_MAX)
    }

    /// Synchronisation is no spinning, however much of it there is before the counterpart comes; stops there have a limit.
    fn count(&mut self, point: &DecisionPoint<'_>) {
        let stop = point.next.map(|next| next.pc);
        if let Some(pc) = stop {
            *self.stops.entry(pc).or_default() += 1;
        }
        if stop.is_none_or(|pc| self.is_stop(pc)) {
            self.decisions += 1;
        }
    }

    /// Who has waited too long is told to go on: nobody may ever come.
    fn end_patience(&mut self, now: u64) {
        let patience = self.patience;
        let late: Vec<ThreadId> = self
            .postponed
            .iter()
            .filter(|(_, postponed)| now - postponed.since > self.patience_at(postponed.pc))
            .map(|(thread, _)| *thread)
            .collect();
        if late
            .iter()
            .any(|thread| self.is_site(self.postponed[thread].pc))
        {
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
        self.count(point);
        let waiting = |thread: &ThreadId| point.runnable.contains(thread);
        self.postponed.retain(|thread, _| waiting(thread));
        match (point.reason, point.next, point.current) {
            (Reason::Watched, Some(next), Some(thread)) if self.is_site(next.pc) => {
                self.arrive(point, thread, &next)
            }
            (Reason::Watched, Some(next), Some(thread)) if self.is_other(next.pc) => {
                self.arrive_at_other(point, thread, &next)
            }
            // The end of a turn does not take a thread's place at its site.
            _ => {
                self.hold_between(point);
                self.another(point)
            }
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
mod tests;
