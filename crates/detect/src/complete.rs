//! Every race as a pair, with exact numbers of instances: the core of `hb` and `hybrid`.

use verdict_clocks::{HappensBefore, Rules};
use verdict_events::{Addr, Event, ThreadId};

use crate::history::{Arena, Entry, Log};
use crate::live::LiveCounts;
use crate::locksets::LocksetId;
use crate::machine::{Judge, Touch, side};
use crate::shadow::{Duplicate, Extent, Finding, Shadow, Unit};
use crate::{PairBy, RaceSet};

/// Below this many entries for each location, and in all, a sweep over all locations is not worth the while.
const SWEEP_MIN_EACH: u64 = 24;
const SWEEP_MIN: u64 = 1 << 12;
/// Sweep again when there are this many times more entries than after the last sweep.
const GROWTH: u64 = 2;

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
    arena: Arena,
    live: LiveCounts,
    held_after_sweep: u64,
}

/// Reads and writes apart, since reads need to look at writes only.
#[derive(Default)]
pub(crate) struct State {
    reads: Log,
    writes: Log,
}

impl<G: Guard> Complete<G> {
    pub fn new(guard: G, by: PairBy) -> Complete<G> {
        Complete {
            guard,
            races: RaceSet::new(by),
            arena: Arena::new(),
            live: LiveCounts::default(),
            held_after_sweep: 0,
        }
    }

    /// Compares an access with a log it can race with. Answers whether it follows all of the log.
    #[inline]
    fn compare(
        &mut self,
        access: &Entry,
        log: &mut Log,
        extent: &mut Extent,
        order: &HappensBefore,
    ) -> bool {
        let mut follows_all = true;
        if !log.is_surely_before(access.epoch.thread(), order) {
            // What nobody looks at may be long; `tidy` keeps that in bounds.
            if log.wants_merging() {
                self.arena.merge(log, &mut self.live, order);
            }
            follows_all = self.compare_each(access, *log, extent, order);
        }
        if follows_all {
            log.note_follower(access.epoch);
        }
        follows_all
    }

    #[inline(never)]
    fn compare_each(
        &mut self,
        access: &Entry,
        log: Log,
        extent: &mut Extent,
        order: &HappensBefore,
    ) -> bool {
        let Complete {
            guard,
            races,
            arena,
            ..
        } = self;
        let viewer = access.epoch.thread();
        let clock = order.clock(viewer);
        let mut follows_all = true;
        for group in arena.groups(log) {
            let thread = group.epoch.thread();
            if thread == viewer || group.epoch.count() < clock.get(thread) {
                continue;
            }
            follows_all = false;
            if !group.kind.races_with(access.kind)
                || guard.keep_apart(group.lockset, access.lockset)
            {
                continue;
            }
            extent.note_finding(Finding::Race);
            // Two accesses may meet in several units; the one with their first common byte counts.
            let location = group.start.max(access.start);
            if !extent.contains(location) {
                continue;
            }
            let later = side(access.epoch, access.site, access.kind, access.first);
            for entry in group.entries() {
                let earlier = side(entry.epoch, entry.site, entry.kind, entry.first);
                races.add(earlier, later, Addr(location), u64::from(entry.count));
            }
        }
        follows_all
    }
}

impl<G: Guard> Duplicate<State> for Complete<G> {
    fn duplicate(&mut self, state: &State) -> State {
        State {
            reads: self.arena.copy(state.reads),
            writes: self.arena.copy(state.writes),
        }
    }
}

impl<G: Guard> Judge for Complete<G> {
    type State = State;

    const RULES: Rules = G::RULES;

    #[inline]
    fn glance(&self, state: &State) -> u64 {
        self.arena.glance(state.reads) ^ self.arena.glance(state.writes)
    }

    #[inline]
    fn touch(&mut self, touch: &Touch, unit: Unit<State>, order: &HappensBefore) {
        let viewer = touch.epoch.thread();
        let access = Entry::new(touch, self.guard.current(viewer));
        let Unit {
            extent,
            state: State { reads, writes },
        } = unit;
        let follows_writes = self.compare(&access, writes, extent, order);
        let (log, follows_all) = if touch.kind.is_write() {
            self.compare(&access, reads, extent, order);
            (writes, follows_writes)
        } else {
            let follows_reads = reads.is_surely_before(viewer, order);
            (reads, follows_reads)
        };
        self.arena.add(log, &access, follows_all);
    }

    fn forget(&mut self, state: &mut State) {
        self.arena.clear(&mut state.reads);
        self.arena.clear(&mut state.writes);
    }

    fn cut(&mut self, state: &mut State, at: u64) -> bool {
        let reads = self.arena.cut(state.reads, at);
        self.arena.cut(state.writes, at) || reads
    }

    fn synchronise(&mut self, event: &Event) {
        self.guard.synchronise(event);
    }

    /// Locations that are not accessed any more keep no more entries than others: when there are several times as many as
    /// after the last sweep, all are merged.
    fn tidy(&mut self, shadow: &mut Shadow<State>, order: &HappensBefore) {
        let minimum = SWEEP_MIN_EACH * shadow.units() + SWEEP_MIN;
        if self.arena.held() < GROWTH * self.held_after_sweep + minimum {
            return;
        }
        for state in shadow.states_mut() {
            for log in [&mut state.reads, &mut state.writes] {
                if log.has_grown() {
                    self.arena.merge(log, &mut self.live, order);
                }
            }
        }
        self.held_after_sweep = self.arena.held();
    }

    fn records(&self, _shadow: &Shadow<State>) -> u64 {
        self.arena.held()
    }

    fn take_races(&mut self) -> RaceSet {
        std::mem::take(&mut self.races)
    }
}
