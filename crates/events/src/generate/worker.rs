//! One thread of the made-up program, going through routines.

use super::program::{Program, Target};
use super::random::Random;
use super::{GenerateOptions, sync_id};
use crate::{Event, EventKind, LockMode, SiteId, ThreadId};

/// Once in this many shared accesses is made without holding the lock that guards the location.
const UNGUARDED_ONE_IN: u64 = 2000;

pub(crate) struct Worker {
    thread: ThreadId,
    /// Its own locations.
    own_first: u64,
    own_count: u64,
    routine: usize,
    iteration: u32,
    step: usize,
    /// Where in its own memory the routine works.
    base: u64,
    held: Vec<u32>,
    state: State,
}

#[derive(PartialEq)]
enum State {
    /// About to choose a routine.
    Between,
    /// About to take a second lock.
    Nesting,
    Running,
    /// About to give up its locks.
    Leaving,
}

impl Worker {
    pub(crate) fn new(thread: ThreadId, options: &GenerateOptions) -> Self {
        let shared = options.locations / 10;
        let own_count = (options.locations - shared) / u64::from(options.threads);
        Self {
            thread,
            own_first: shared + own_count * u64::from(thread.0),
            own_count,
            routine: 0,
            iteration: 0,
            step: 0,
            base: 0,
            held: Vec::new(),
            state: State::Between,
        }
    }

    /// Does one event.
    pub(crate) fn step(
        &mut self,
        program: &Program,
        holders: &mut [Option<ThreadId>],
        random: &mut Random,
    ) -> Event {
        if self.state == State::Between {
            self.choose_routine(program, random);
            if program.routines[self.routine].locked
                && enters(program.options.lock_rarity, random)
                && let Some(event) = self.acquire(program, holders, random)
            {
                self.state = if random.one_in(4) {
                    State::Nesting
                } else {
                    State::Running
                };
                return event;
            }
        }
        if self.state == State::Nesting {
            self.state = State::Running;
            if let Some(event) = self.acquire(program, holders, random) {
                return event;
            }
        }
        if self.state == State::Leaving
            && let Some(lock) = self.held.pop()
        {
            holders[lock as usize] = None;
            if self.held.is_empty() {
                self.state = State::Between;
            }
            let kind = EventKind::Release(sync_id(&program.options, lock), LockMode::Exclusive);
            return self.event(self.entry_site(program), kind);
        }
        self.access(program, random)
    }

    fn choose_routine(&mut self, program: &Program, random: &mut Random) {
        // A few routines are hot, as in real programs: the smaller of two random numbers.
        let routines = program.routines.len() as u64;
        let (one, other) = (random.below(routines), random.below(routines));
        self.routine = one.min(other) as usize;
        self.iteration = 0;
        self.step = 0;
        self.state = State::Running;
        // The working set drifts through the thread's own memory.
        self.base = match random.one_in(20) {
            true => random.below(self.own_count),
            false => (self.base + random.below(64)) % self.own_count,
        };
    }

    /// Takes a random lock, if nobody holds it.
    fn acquire(
        &mut self,
        program: &Program,
        holders: &mut [Option<ThreadId>],
        random: &mut Random,
    ) -> Option<Event> {
        let lock = random.below(holders.len() as u64) as u32;
        if holders[lock as usize].is_some() {
            return None;
        }
        holders[lock as usize] = Some(self.thread);
        self.held.push(lock);
        let kind = EventKind::Acquire(sync_id(&program.options, lock), LockMode::Exclusive);
        Some(self.event(self.entry_site(program), kind))
    }

    fn access(&mut self, program: &Program, random: &mut Random) -> Event {
        let routine = &program.routines[self.routine];
        let step = &routine.steps[self.step];
        let location = match step.target {
            Target::Local(slot) => self.own((self.base & !0xff) + slot),
            Target::Element(array) => {
                self.own(self.base + 16 + 64 * array + u64::from(self.iteration))
            }
            Target::Shared(slot) => self.shared(slot, program, random),
            Target::Unguarded { lock, slot } => guarded(lock, slot, program),
        };
        self.step += 1;
        if self.step == routine.steps.len() {
            self.step = 0;
            self.iteration += 1;
            if self.iteration == routine.iterations {
                self.state = if self.held.is_empty() {
                    State::Between
                } else {
                    State::Leaving
                };
            }
        }
        let access = program.access(location);
        let kind = match step.is_write {
            true => EventKind::Write(access),
            false => EventKind::Read(access),
        };
        self.event(step.site, kind)
    }

    /// A shared location guarded by the lock taken last, or by none.
    fn shared(&self, slot: u64, program: &Program, random: &mut Random) -> u64 {
        if random.one_in(UNGUARDED_ONE_IN) {
            return random.below(program.shared);
        }
        match self.held.last() {
            Some(&lock) => {
                // A lock guards a few words that are used again and again, and a longer tail.
                let nth = if random.one_in(8) {
                    random.below(per_lock(program))
                } else {
                    slot
                };
                guarded(lock, nth, program)
            }
            None => self.own(slot),
        }
    }

    fn own(&self, offset: u64) -> u64 {
        self.own_first + offset % self.own_count
    }

    fn entry_site(&self, program: &Program) -> SiteId {
        program.routines[self.routine].steps[0].site
    }

    fn event(&self, site: SiteId, kind: EventKind) -> Event {
        Event {
            thread: self.thread,
            site,
            kind,
        }
    }
}

/// How many locations each lock guards.
fn per_lock(program: &Program) -> u64 {
    (program.shared / u64::from(program.options.locks)).max(1)
}

/// The nth location that a lock guards.
fn guarded(lock: u32, nth: u64, program: &Program) -> u64 {
    let nth = nth % per_lock(program);
    (u64::from(lock) + u64::from(program.options.locks) * nth) % program.shared
}

/// Always, unless critical sections are rare.
fn enters(lock_rarity: u32, random: &mut Random) -> bool {
    lock_rarity <= 1 || random.one_in(u64::from(lock_rarity))
}
