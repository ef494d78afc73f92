//! Every race as a pair, with exact numbers of instances: the core of `hb` and `hybrid`.

use verdict_clocks::{HappensBefore, Rules};
use verdict_events::{Addr, Event, ThreadId};

use crate::history::{Arena, Entry, Log, NO_LOG};
use crate::live::LiveCounts;
use crate::locksets::LocksetId;
use crate::machine::{Judge, Touch, side};
use crate::settled::Settled;
use crate::shadow::{Duplicate, Extent, Finding, Shadow, Unit};
use crate::{Keep, PairBy, RaceSet};

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

    /// The locks that accesses with these sets have in common, if they are worth being kept together.
    fn common(&mut self, a: LocksetId, b: LocksetId) -> Option<LocksetId>;
}

pub(crate) struct Complete<G> {
    guard: G,
    races: RaceSet,
    arena: Arena,
    live: LiveCounts,
    held_after_sweep: u64,
    keep: Keep,
    settled: Settled,
    /// How many threads had come unannounced when the first entry was dropped.
    dropped: Option<u64>,
    is_misled: bool,
}

/// Reads and writes apart, since reads need to look at writes only. One cache line.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct State {
    reads: Log,
    writes: Log,
}

const _: () = assert!(size_of::<State>() == 64, "a state is one cache line");

impl<G: Guard> Complete<G> {
    pub fn new(guard: G, by: PairBy, keep: Keep) -> Complete<G> {
        Complete {
            guard,
            races: RaceSet::new(by),
            arena: Arena::new(),
            live: LiveCounts::default(),
            held_after_sweep: 0,
            keep,
            settled: Settled::default(),
            dropped: None,
            is_misled: false,
        }
    }

    /// Compares an access with all it can race with in a log and the further ones.
    #[inline]
    fn compare_all(
        &mut self,
        access: &Entry,
        log: &mut Log,
        extent: &mut Extent,
        order: &HappensBefore,
    ) {
        self.compare(access, log, extent, order);
        let mut id = log.next;
        while id != NO_LOG {
            let mut further = self.arena.further(id);
            self.compare(access, &mut further, extent, order);
            self.arena.set_further(id, further);
            id = further.next;
        }
    }

    #[inline]
    fn compare(
        &mut self,
        access: &Entry,
        log: &mut Log,
        extent: &mut Extent,
        order: &HappensBefore,
    ) {
        let mut follows_all = true;
        if !log.is_surely_before(access.epoch.thread(), order) {
            // What nobody looks at may be long; `tidy` keeps that in bounds.
            if log.wants_merging() {
                self.merge(log, order);
            }
            if self.guard.keep_apart(log.common, access.lockset) {
                return;
            }
            follows_all = self.compare_each(access, *log, extent, order);
        }
        if follows_all {
            log.note_follower(access.epoch);
        }
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

impl<G: Guard> Complete<G> {
    /// Adds an access to the first of the logs whose entries it has a lock in common with.
    #[inline]
    fn add(&mut self, log: &mut Log, access: &Entry, order: &HappensBefore) {
        if self.add_to(log, access, order) {
            return;
        }
        let mut id = log.next;
        while id != NO_LOG {
            let mut further = self.arena.further(id);
            if self.add_to(&mut further, access, order) {
                self.arena.set_further(id, further);
                return;
            }
            id = further.next;
        }
        let mut further = Log::default();
        further.next = log.next;
        self.add_to(&mut further, access, order);
        log.next = self.arena.add_further(further);
    }

    #[inline]
    fn add_to(&mut self, log: &mut Log, access: &Entry, order: &HappensBefore) -> bool {
        self.drop_settled(log, access, order);
        let common = if log.is_empty() {
            access.lockset
        } else {
            match self.guard.common(log.common, access.lockset) {
                Some(common) => common,
                None => return false,
            }
        };
        log.common = common;
        self.arena.add(log, access, order);
        true
    }

    /// Drops all entries if nothing that is still to come can race with them.
    #[inline]
    fn drop_settled(&mut self, log: &mut Log, access: &Entry, order: &HappensBefore) {
        let follower = log.follower();
        if self.keep == Keep::WhatCanRace
            && !follower.is_none()
            && follower != access.epoch
            && self.settled.contains(follower, order)
        {
            self.note_dropped(order);
            self.arena.clear(log);
        }
    }

    fn tidy_log(&mut self, log: &mut Log, order: &HappensBefore) {
        let follower = log.follower();
        if self.keep == Keep::WhatCanRace
            && !follower.is_none()
            && self.settled.contains(follower, order)
        {
            self.note_dropped(order);
            self.arena.clear(log);
        } else if log.has_grown() {
            self.merge(log, order);
        }
    }

    fn note_dropped(&mut self, order: &HappensBefore) {
        self.dropped.get_or_insert(order.unannounced());
    }

    fn merge(&mut self, log: &mut Log, order: &HappensBefore) {
        let Complete {
            arena,
            live,
            settled,
            keep,
            ..
        } = self;
        let mut dropped = false;
        arena.merge(log, live, order, |epoch| {
            let drop = *keep == Keep::WhatCanRace && settled.contains(epoch, order);
            dropped |= drop;
            !drop
        });
        if dropped {
            self.note_dropped(order);
        }
    }
}

impl<G: Guard> Duplicate<State> for Complete<G> {
    fn duplicate(&mut self, state: &State) -> State {
        State {
            reads: self.arena.copy_all(state.reads),
            writes: self.arena.copy_all(state.writes),
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
        self.compare_all(&access, writes, extent, order);
        if touch.kind.is_write() {
            self.compare_all(&access, reads, extent, order);
            self.add(writes, &access, order);
        } else {
            self.add(reads, &access, order);
        }
    }

    fn forget(&mut self, state: &mut State) {
        self.arena.clear_all(&mut state.reads);
        self.arena.clear_all(&mut state.writes);
    }

    fn cut(&mut self, state: &mut State, at: u64) -> bool {
        let reads = self.arena.cut_all(state.reads, at);
        self.arena.cut_all(state.writes, at) || reads
    }

    fn synchronise(&mut self, event: &Event) {
        self.guard.synchronise(event);
    }

    /// Locations that are not accessed any more keep no more entries than others: when there are several times as many as
    /// after the last sweep, all are merged.
    fn tidy(&mut self, shadow: &mut Shadow<State>, order: &HappensBefore) {
        self.is_misled |= self
            .dropped
            .is_some_and(|before| before != order.unannounced());
        let minimum = SWEEP_MIN_EACH * shadow.units() + SWEEP_MIN;
        if self.arena.held() < GROWTH * self.held_after_sweep + minimum {
            return;
        }
        for state in shadow.states_mut() {
            for log in [&mut state.reads, &mut state.writes] {
                self.tidy_log(log, order);
                let mut id = log.next;
                while id != NO_LOG {
                    let mut further = self.arena.further(id);
                    self.tidy_log(&mut further, order);
                    self.arena.set_further(id, further);
                    id = further.next;
                }
            }
        }
        self.held_after_sweep = self.arena.held();
    }

    fn records(&self, _shadow: &Shadow<State>) -> u64 {
        self.arena.held()
    }

    fn is_misled(&self) -> bool {
        self.is_misled
    }

    fn take_races(&mut self) -> RaceSet {
        std::mem::take(&mut self.races)
    }
}
