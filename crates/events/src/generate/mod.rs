//! Made-up traces of any length, for benchmarks and tests. The same options give the same trace.
//!
//! The trace is that of a plausible program: the main thread forks workers and joins them at the end; every
//! thread goes through routines of a dozen sites, in loops, mostly over memory of its own that it walks with
//! locality; some routines enter critical sections, at times nested, and touch what their lock
//! guards; a few sites forget the lock of what they touch, and once in a while any other does, which makes races. A lock
//! is held by one thread at a time. Events are made as they are asked for, so memory does not grow with
//! their number.

mod program;
mod random;
mod worker;

use crate::{
    Addr, Event, EventKind, LockMode, NameTable, Names, SiteId, SyncId, ThreadId, TraceError,
    TraceSource,
};
use program::Program;
use random::Random;
use worker::Worker;

const BATCH_EVENTS: usize = 2048;

/// How memory and synchronisation objects are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// As in a text trace: each location is one byte with a name (`V7`).
    Named,
    /// As in a trace of a real program: words of 4 and 8 bytes at addresses, without names.
    Addresses,
}

/// What to make.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Number of events, exactly.
    pub events: u64,
    /// Number of threads, the main thread among them; at least 1.
    pub threads: u32,
    /// Number of memory locations; at least 16 a thread.
    pub locations: u64,
    /// Number of locks; at least 1.
    pub locks: u32,
    /// Number of sites; at least 64.
    pub sites: u32,
    /// About how many events a thread does before another takes over; at least 1.
    pub run_length: u32,
    /// Of sites that run without a lock, one in this many touches what a lock guards, which makes races; 0 is none.
    pub racy_sites_one_in: u64,
    /// Once in how many times a routine that has a critical section enters it; at least 1. Segments are longer with more.
    pub lock_rarity: u32,
    /// How things are named.
    pub addressing: Addressing,
    /// What the random choices start from.
    pub seed: u64,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            events: 1_000_000,
            threads: 8,
            locations: 100_000,
            locks: 64,
            sites: 4096,
            run_length: 32,
            racy_sites_one_in: 400,
            lock_rarity: 1,
            addressing: Addressing::Named,
            seed: 1,
        }
    }
}

/// A trace made up as it is read.
pub struct Generator {
    options: GenerateOptions,
    program: Program,
    random: Random,
    names: NameTable,
    /// What every thread is doing.
    workers: Vec<Worker>,
    /// Which thread holds each lock.
    holders: Vec<Option<ThreadId>>,
    running: usize,
    run_left: u32,
    made: u64,
    /// Events of the beginning and the end, last one first.
    planned: Vec<Event>,
    ending: bool,
}

impl Generator {
    /// Starts a trace. Options below their lower bounds are raised to them.
    pub fn new(mut options: GenerateOptions) -> Self {
        options.threads = options.threads.max(1);
        options.locations = options.locations.max(16 * u64::from(options.threads));
        options.locks = options.locks.max(1);
        options.sites = options.sites.max(64);
        options.run_length = options.run_length.max(1);
        let mut random = Random::new(options.seed);
        let program = Program::new(&options, &mut random);
        let workers = (0..options.threads)
            .map(|thread| Worker::new(ThreadId(thread), &options))
            .collect();
        let mut planned = beginning(&options);
        planned.reverse();
        Self {
            names: names(&options),
            holders: vec![None; options.locks as usize],
            program,
            random,
            workers,
            running: 0,
            run_left: 0,
            made: 0,
            planned,
            ending: false,
            options,
        }
    }

    fn next(&mut self) -> Event {
        self.made += 1;
        if let Some(event) = self.planned.pop() {
            return event;
        }
        // One more step could take a lock, so the end begins while there is still room to release it.
        let left = self.options.events - self.made + 1;
        if !self.ending && left < self.end_events() + 2 {
            self.ending = true;
            self.planned = self.end(left);
            self.planned.reverse();
            if let Some(event) = self.planned.pop() {
                return event;
            }
        }
        if self.run_left == 0 {
            self.running = self.random.below(self.workers.len() as u64) as usize;
            self.run_left = 1 + self.random.below(2 * u64::from(self.options.run_length)) as u32;
        }
        self.run_left -= 1;
        self.workers[self.running].step(&self.program, &mut self.holders, &mut self.random)
    }

    /// How many events it takes to end the trace in good order.
    fn end_events(&self) -> u64 {
        let held = self.holders.iter().flatten().count() as u64;
        held + 2 * (u64::from(self.options.threads) - 1)
    }

    /// The last `left` events: the main thread reads until the others end.
    fn end(&self, left: u64) -> Vec<Event> {
        let site = SiteId(0);
        let idle = Event {
            thread: ThreadId(0),
            site,
            kind: EventKind::Read(self.program.access(self.program.shared)),
        };
        let idles = left.saturating_sub(self.end_events()) as usize;
        let releases = self
            .holders
            .iter()
            .enumerate()
            .filter_map(|(lock, &holder)| {
                let id = sync_id(&self.options, lock as u32);
                let kind = EventKind::Release(id, LockMode::Exclusive);
                holder.map(|thread| Event { thread, site, kind })
            });
        let others = 1..self.options.threads;
        let ends = others.clone().map(|thread| Event {
            thread: ThreadId(thread),
            site,
            kind: EventKind::End,
        });
        let joins = others.map(|thread| Event {
            thread: ThreadId(0),
            site,
            kind: EventKind::Join(ThreadId(thread)),
        });
        let idles = std::iter::repeat_n(idle, idles);
        idles.chain(releases).chain(ends).chain(joins).collect()
    }
}

impl TraceSource for Generator {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        while batch.len() < BATCH_EVENTS && self.made < self.options.events {
            let event = self.next();
            batch.push(event);
        }
        Ok(())
    }

    fn names(&self) -> &dyn Names {
        &self.names
    }
}

/// The main thread creates the others.
fn beginning(options: &GenerateOptions) -> Vec<Event> {
    let site = SiteId(0);
    let forks = (1..options.threads).flat_map(|thread| {
        let thread = ThreadId(thread);
        let fork = Event {
            thread: ThreadId(0),
            site,
            kind: EventKind::Fork(thread),
        };
        let begin = Event {
            thread,
            site,
            kind: EventKind::Begin,
        };
        [fork, begin]
    });
    forks.collect()
}

fn names(options: &GenerateOptions) -> NameTable {
    let mut names = NameTable::new();
    for thread in 0..options.threads {
        names.push_thread(&format!("T{thread}"));
    }
    for site in 0..options.sites {
        names.push_site(&site.to_string());
    }
    if options.addressing == Addressing::Named {
        for location in 0..options.locations {
            names.name_location(Addr(location), &format!("V{location}"));
        }
        for lock in 0..options.locks {
            names.name_sync(SyncId(lock.into()), &format!("L{lock}"));
        }
    }
    names
}

fn sync_id(options: &GenerateOptions, lock: u32) -> SyncId {
    match options.addressing {
        Addressing::Named => SyncId(lock.into()),
        Addressing::Addresses => SyncId(0x0060_2000 + 0x40 * u64::from(lock)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn all(options: GenerateOptions) -> Vec<Event> {
        let mut generator = Generator::new(options);
        let (mut events, mut batch) = (Vec::new(), Vec::new());
        loop {
            generator.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                return events;
            }
            events.append(&mut batch);
        }
    }

    #[test]
    fn locks_exclude_and_everything_ends() {
        let events = all(GenerateOptions {
            events: 50_000,
            locks: 16,
            ..GenerateOptions::default()
        });
        assert_eq!(events.len(), 50_000);
        let mut holders = HashMap::new();
        let (mut nested, mut accesses) = (0, 0);
        for event in &events {
            match event.kind {
                EventKind::Acquire(lock, _) => {
                    nested += usize::from(holders.values().any(|&thread| thread == event.thread));
                    assert_eq!(holders.insert(lock, event.thread), None);
                }
                EventKind::Release(lock, _) => {
                    assert_eq!(holders.remove(&lock), Some(event.thread));
                }
                EventKind::Read(_) | EventKind::Write(_) => accesses += 1,
                _ => {}
            }
        }
        assert!(holders.is_empty());
        assert!(nested > 50, "{nested}");
        assert!(accesses > 40_000, "{accesses}");
        let joins = events.iter().rev().take(7);
        assert!(
            joins
                .into_iter()
                .all(|event| matches!(event.kind, EventKind::Join(_)))
        );
    }

    #[test]
    fn the_seed_decides() {
        let options = |seed| GenerateOptions {
            events: 5_000,
            seed,
            ..GenerateOptions::default()
        };
        assert_eq!(all(options(1)), all(options(1)));
        assert_ne!(all(options(1)), all(options(2)));
    }

    #[test]
    fn any_number_of_events_is_met() {
        for events in 0..100 {
            let options = GenerateOptions {
                events,
                ..GenerateOptions::default()
            };
            assert_eq!(all(options).len() as u64, events);
        }
    }
}
