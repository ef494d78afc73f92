//! Every race as a pair, with exact numbers of instances: the core of `hb` and `hybrid`.

use verdict_clocks::{HappensBefore, Rules};
use verdict_events::{Addr, Event, ThreadId};

use crate::history::{Entry, LiveCounts, Log};
use crate::locksets::LocksetId;
use crate::machine::{Judge, Touch, side};
use crate::shadow::{Finding, Shadow, Unit};
use crate::{PairBy, RaceSet};

/// Below this many entries in all, a sweep over every location is not worth the while.
const SWEEP_MIN: u64 = 1 << 18;

/// What, besides order, keeps two accesses from racing.
pub(crate) trait Guard {
    const RULES: Rules;

    fn synchronise(&mut self, event: &Event);
    fn current(&self, thread: ThreadId) -> LocksetId;
    fn keep_apart(&mut self, a: LocksetId, b: LocksetId) -> bool;
}

pub(crate) struct Complete<G> {
    guard: G,
    races: RaceSet,
    /// Entries in all units, roughly: splitting a unit is not counted until the next sweep.
    entries: u64,
    entries_after_sweep: u64,
}

/// Reads and writes apart, since reads need to look at writes only.
#[derive(Clone, Default)]
pub(crate) struct State {
    reads: Log,
    writes: Log,
}

impl<G: Guard> Complete<G> {
    pub fn new(guard: G, by: PairBy) -> Complete<G> {
        Complete {
            guard,
            races: RaceSet::new(by),
            entries: 0,
            entries_after_sweep: 0,
        }
    }

    /// Compares an access with a log it can race with. Answers whether all of the log is ordered before it.
    fn compare(
        &mut self,
        touch: &Touch,
        lockset: LocksetId,
        log: &mut Log,
        bytes: Bytes,
        order: &HappensBefore,
    ) -> Compared {
        let viewer = touch.epoch.thread();
        if log.is_surely_before(viewer, order) {
            log.note_follower(touch.epoch);
            return Compared {
                follows_all: true,
                races: false,
            };
        }
        let mut compared = Compared {
            follows_all: true,
            races: false,
        };
        let clock = order.clock(viewer);
        for entry in log.entries() {
            let thread = entry.epoch.thread();
            if thread == viewer || entry.epoch.count() < clock.get(thread) {
                continue;
            }
            compared.follows_all = false;
            if entry.kind.races_with(touch.kind) && !self.guard.keep_apart(entry.lockset, lockset) {
                compared.races = true;
                self.report(entry, touch, bytes);
            }
        }
        if compared.follows_all {
            log.note_follower(touch.epoch);
        }
        compared
    }

    /// Two accesses may meet in several units; the one with their first common byte counts.
    fn report(&mut self, entry: &Entry, touch: &Touch, bytes: Bytes) {
        let location = entry.start.max(touch.start);
        if location >= bytes.start && location - bytes.start < bytes.len {
            let earlier = side(entry.epoch, entry.site, entry.kind, entry.first);
            self.races
                .add(earlier, touch.side(), Addr(location), entry.count);
        }
    }

    fn merge(&mut self, log: &mut Log, order: &HappensBefore) {
        let gone = log.merge(&mut LiveCounts::default(), order);
        self.entries = self.entries.saturating_sub(gone as u64);
    }
}

/// The bytes of the unit being looked at.
#[derive(Clone, Copy)]
struct Bytes {
    start: u64,
    len: u64,
}

struct Compared {
    follows_all: bool,
    races: bool,
}

impl<G: Guard> Judge for Complete<G> {
    type State = State;

    const RULES: Rules = G::RULES;

    fn touch(&mut self, touch: &Touch, unit: &mut Unit<State>, order: &HappensBefore) {
        let bytes = Bytes {
            start: unit.start,
            len: unit.len,
        };
        let lockset = self.guard.current(touch.epoch.thread());
        let State { reads, writes } = &mut unit.state;
        let with_writes = self.compare(touch, lockset, writes, bytes, order);
        let mut races = with_writes.races;
        let (log, follows_all) = if touch.kind.is_write() {
            races |= self.compare(touch, lockset, reads, bytes, order).races;
            (writes, with_writes.follows_all)
        } else {
            let follows_all = reads.is_surely_before(touch.epoch.thread(), order);
            (reads, follows_all)
        };
        self.entries += u64::from(log.add(Entry::new(touch, lockset), follows_all));
        if log.wants_merging() {
            self.merge(log, order);
        }
        if races {
            unit.note_finding(Finding::Race);
        }
    }

    fn cut(&mut self, unit: &mut Unit<State>, at: u64) -> bool {
        let reads = unit.state.reads.cut(at);
        unit.state.writes.cut(at) || reads
    }

    fn synchronise(&mut self, event: &Event) {
        self.guard.synchronise(event);
    }

    /// Locations that are not accessed any more keep no more entries than others: when there are twice as many as
    /// after the last sweep, all are merged.
    fn tidy(&mut self, shadow: &mut Shadow<State>, order: &HappensBefore) {
        let steps = order.clocks() as u64 * order.threads() / 16;
        if self.entries < 2 * self.entries_after_sweep + SWEEP_MIN + steps {
            return;
        }
        let mut live = LiveCounts::default();
        let mut entries = 0;
        for unit in shadow.units_mut() {
            for log in [&mut unit.state.reads, &mut unit.state.writes] {
                if log.entries().len() > 1 {
                    log.merge(&mut live, order);
                }
                entries += log.entries().len() as u64;
            }
        }
        self.entries = entries;
        self.entries_after_sweep = entries;
    }

    fn records(&self, shadow: &Shadow<State>) -> u64 {
        let logs = shadow
            .units()
            .flat_map(|unit| [&unit.state.reads, &unit.state.writes]);
        logs.map(|log| log.entries().len() as u64).sum()
    }

    fn take_races(&mut self) -> RaceSet {
        std::mem::take(&mut self.races)
    }
}
