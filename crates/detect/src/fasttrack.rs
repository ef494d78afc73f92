//! FastTrack (Flanagan & Freund 2009): the first race of each location, in constant time for nearly every access.
//!
//! Until a location has its first race, its writes are totally ordered, so the epoch of the last one stands for
//! all. Reads mostly are too: one epoch, and a list only while reads are parallel. An access in the same
//! epoch as the last one of its kind has been checked already. After its first race a location is left alone.
//!
//! Finds: for each location, a race whose later access is the earliest of all its races. Misses: everything
//! after that, and other races of that access. No false alarms.
//! Departs from the paper: remembers site and event number of what it keeps; keeps atomic accesses, which
//! may be parallel without a race, in lists of their own; forgets reads that the last write follows.

use verdict_clocks::{Epoch, HappensBefore, Rules};
use verdict_events::{Addr, SiteId};

use crate::machine::{Judge, Machine, Touch, side};
use crate::shadow::{Finding, Shadow, Unit};
use crate::{AccessKind, Algorithm, Detector, PairBy, RaceSet};

pub(crate) fn detector(by: PairBy) -> Box<dyn Detector> {
    let judge = FastTrack {
        races: RaceSet::new(by),
        reported: Vec::new(),
    };
    Box::new(Machine::new(Algorithm::FastTrack, judge))
}

struct FastTrack {
    races: RaceSet,
    /// Earlier events already reported for the current access, which meets them again in each unit it covers.
    reported: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Past {
    epoch: Epoch,
    site: SiteId,
    position: u32,
}

#[derive(Clone, Default)]
struct State {
    write: Past,
    /// The last read, while reads are ordered.
    read: Past,
    lists: Option<Box<Lists>>,
}

/// At most one of each thread, sorted by thread.
#[derive(Clone, Default)]
struct Lists {
    /// The last write gave the memory back.
    freed: bool,
    reads: Vec<Past>,
    atomic_reads: Vec<Past>,
    atomic_writes: Vec<Past>,
}

impl Judge for FastTrack {
    type State = State;

    const RULES: Rules = Rules::All;

    #[inline]
    fn begin_access(&mut self) {
        self.reported.clear();
    }

    #[inline]
    fn touch(&mut self, touch: &Touch, unit: &mut Unit<State>, order: &HappensBefore) {
        let checked = match touch.kind {
            AccessKind::Read => unit.state.read.epoch == touch.epoch,
            AccessKind::Write => unit.state.write.epoch == touch.epoch,
            _ => false,
        };
        if !checked && unit.finding != Finding::Race {
            self.check(touch, unit, order);
        }
    }

    fn records(&self, shadow: &Shadow<State>) -> u64 {
        shadow.units().map(|unit| unit.state.records()).sum()
    }

    fn take_races(&mut self) -> RaceSet {
        std::mem::take(&mut self.races)
    }
}

impl FastTrack {
    fn check(&mut self, touch: &Touch, unit: &mut Unit<State>, order: &HappensBefore) {
        let Some((past, kind)) = unit.state.racing(touch, order) else {
            unit.state.keep(touch, order);
            return;
        };
        unit.note_finding(Finding::Race);
        unit.state = State::default();
        if !self.reported.contains(&past.position) {
            self.reported.push(past.position);
            let earlier = side(past.epoch, past.site, kind, past.position);
            self.races.add(earlier, touch.side(), Addr(unit.start), 1);
        }
    }
}

impl State {
    /// An earlier access that races with this one.
    fn racing(&self, touch: &Touch, order: &HappensBefore) -> Option<(Past, AccessKind)> {
        let viewer = touch.epoch.thread();
        let parallel = |past: &Past| !past.epoch.is_none() && !order.knows(viewer, past.epoch);
        if parallel(&self.write) {
            return Some((self.write, self.write_kind()));
        }
        if touch.kind.is_write() && parallel(&self.read) {
            return Some((self.read, AccessKind::Read));
        }
        let lists = self.lists.as_ref()?;
        let first = |list: &[Past], kind| {
            let found = list
                .iter()
                .filter(|past| parallel(past))
                .min_by_key(|past| past.position);
            found.map(|&past| (past, kind))
        };
        let atomic = touch.kind.is_atomic();
        let write = touch.kind.is_write();
        let none = || None;
        (if atomic {
            none()
        } else {
            first(&lists.atomic_writes, AccessKind::AtomicWrite)
        })
        .or_else(|| {
            if write {
                first(&lists.reads, AccessKind::Read)
            } else {
                none()
            }
        })
        .or_else(|| {
            if write && !atomic {
                first(&lists.atomic_reads, AccessKind::AtomicRead)
            } else {
                none()
            }
        })
    }

    fn keep(&mut self, touch: &Touch, order: &HappensBefore) {
        let now = Past {
            epoch: touch.epoch,
            site: touch.site,
            position: touch.position,
        };
        match touch.kind {
            AccessKind::Read => self.keep_read(now, order),
            // All that is kept happened before this write: whatever races with it, races with this.
            AccessKind::Write => {
                *self = State {
                    write: now,
                    ..State::default()
                }
            }
            AccessKind::Free => {
                let lists = Some(Box::new(Lists {
                    freed: true,
                    ..Lists::default()
                }));
                *self = State {
                    write: now,
                    lists,
                    ..State::default()
                };
            }
            AccessKind::AtomicRead => {
                put(&mut self.lists.get_or_insert_default().atomic_reads, now)
            }
            AccessKind::AtomicWrite => {
                put(&mut self.lists.get_or_insert_default().atomic_writes, now)
            }
        }
    }

    fn keep_read(&mut self, now: Past, order: &HappensBefore) {
        if let Some(lists) = &mut self.lists
            && !lists.reads.is_empty()
        {
            put(&mut lists.reads, now);
            return;
        }
        if self.read.epoch.is_none() || order.knows(now.epoch.thread(), self.read.epoch) {
            self.read = now;
            return;
        }
        let before = std::mem::take(&mut self.read);
        let reads = &mut self.lists.get_or_insert_default().reads;
        put(reads, before);
        put(reads, now);
    }

    fn write_kind(&self) -> AccessKind {
        match &self.lists {
            Some(lists) if lists.freed => AccessKind::Free,
            _ => AccessKind::Write,
        }
    }

    fn records(&self) -> u64 {
        let single = u64::from(!self.write.epoch.is_none()) + u64::from(!self.read.epoch.is_none());
        let lists = self.lists.as_ref().map_or(0, |lists| {
            lists.reads.len() + lists.atomic_reads.len() + lists.atomic_writes.len()
        });
        single + lists as u64
    }
}

fn put(list: &mut Vec<Past>, now: Past) {
    match list.binary_search_by_key(&now.epoch.thread(), |past| past.epoch.thread()) {
        // The first access of an epoch stays: the others add nothing.
        Ok(at) if list[at].epoch == now.epoch => {}
        Ok(at) => list[at] = now,
        Err(at) => list.insert(at, now),
    }
}
