//! The naive twin: happens-before as an explicit graph and its transitive closure, races by looking at every pair
//! of events. No clocks, no epochs, no units: it shares nothing with what it checks but the vocabulary.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use verdict_detect::{AccessKind, Answer, PairBy};
use verdict_events::{Addr, Event, EventKind, LockMode, MemoryOrder, SyncId, ThreadId};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    Hb,
    Hybrid,
}

/// A race: accesses of the first instance as (thread, site, kind, position), locations, instances.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct NaiveRace {
    pub first: [(u32, u32, AccessKind, usize); 2],
    pub locations: BTreeSet<u64>,
    pub instances: u64,
}

pub struct Naive<'a> {
    events: &'a [Event],
    /// For each event, all events that happen before it.
    before: Vec<Vec<bool>>,
    twin: Twin,
}

pub struct Instance {
    pub earlier: usize,
    pub later: usize,
    pub common: Range<u64>,
}

impl<'a> Naive<'a> {
    pub fn new(events: &'a [Event], twin: Twin) -> Naive<'a> {
        let mut direct = vec![BTreeSet::new(); events.len()];
        for (from, to) in edges(events, twin) {
            assert!(from < to, "order goes forward in the trace");
            direct[to].insert(from);
        }
        let mut before: Vec<Vec<bool>> = Vec::new();
        for predecessors in &direct {
            let mut all = vec![false; events.len()];
            for &predecessor in predecessors {
                all[predecessor] = true;
                for (known, &theirs) in all.iter_mut().zip(&before[predecessor]) {
                    *known |= theirs;
                }
            }
            before.push(all);
        }
        Naive {
            events,
            before,
            twin,
        }
    }

    pub fn ordered(&self, earlier: usize, later: usize) -> bool {
        self.before[later][earlier]
    }

    pub fn instances(&self) -> Vec<Instance> {
        let mut instances = Vec::new();
        for later in 0..self.events.len() {
            let Some((bytes, kind)) = touched(&self.events[later]) else {
                continue;
            };
            for earlier in 0..later {
                let Some((_, earlier_kind)) = touched(&self.events[earlier]) else {
                    continue;
                };
                if self.events[earlier].thread == self.events[later].thread
                    || !earlier_kind.races_with(kind)
                    || self.ordered(earlier, later)
                    || self.twin == Twin::Hybrid && self.locked_apart(earlier, later)
                {
                    continue;
                }
                for run in self.runs(earlier, later) {
                    let common = run.start.max(bytes.start)..run.end.min(bytes.end);
                    if !common.is_empty() {
                        instances.push(Instance {
                            earlier,
                            later,
                            common,
                        });
                    }
                }
            }
        }
        instances
    }

    /// What is left of the bytes of access `earlier` when `later` comes: allocations between took theirs.
    fn runs(&self, earlier: usize, later: usize) -> Vec<Range<u64>> {
        let (bytes, _) = touched(&self.events[earlier]).expect("an access");
        let mut runs = vec![bytes];
        for event in &self.events[earlier + 1..later] {
            if let EventKind::Allocate { addr, size } = event.kind {
                let cut = |run: Range<u64>| {
                    [
                        run.start..run.end.min(addr.0),
                        run.start.max(addr.0 + size)..run.end,
                    ]
                };
                if size > 0 {
                    runs = runs
                        .into_iter()
                        .flat_map(cut)
                        .filter(|run| !run.is_empty())
                        .collect();
                }
            }
        }
        runs
    }

    fn locked_apart(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.locks_at(a), self.locks_at(b));
        a.iter().any(|&(lock, mode)| {
            b.iter().any(|&(other, other_mode)| {
                lock == other && (mode == LockMode::Exclusive || other_mode == LockMode::Exclusive)
            })
        })
    }

    fn locks_at(&self, at: usize) -> Vec<(SyncId, LockMode)> {
        let mut held: Vec<(SyncId, LockMode)> = Vec::new();
        for event in self.events[..at]
            .iter()
            .filter(|event| event.thread == self.events[at].thread)
        {
            match event.kind {
                EventKind::Acquire(lock, mode) => held.push((lock, mode)),
                EventKind::Release(lock, mode) => {
                    if let Some(at) = held.iter().position(|&entry| entry == (lock, mode)) {
                        held.remove(at);
                    }
                }
                _ => {}
            }
        }
        held
    }

    pub fn races(&self, by: PairBy) -> Vec<NaiveRace> {
        let side = |at: usize| {
            let event = &self.events[at];
            (
                event.thread.0,
                event.site.0,
                touched(event).expect("an access").1,
                at,
            )
        };
        let mut races: BTreeMap<_, NaiveRace> = BTreeMap::new();
        // Instances come by later, then earlier event: the first of each race comes first.
        for Instance {
            earlier,
            later,
            common,
        } in self.instances()
        {
            let first = [side(earlier), side(later)];
            let mut key = first.map(|(thread, site, kind, _)| {
                (site, kind, (by == PairBy::ThreadAndSite).then_some(thread))
            });
            key.sort_unstable();
            let new = || NaiveRace {
                first,
                locations: BTreeSet::new(),
                instances: 0,
            };
            let race = races.entry(key).or_insert_with(new);
            race.locations.insert(common.start);
            race.instances += 1;
        }
        let mut races: Vec<NaiveRace> = races.into_values().collect();
        races.sort_by_key(|race| (race.first[0].3, race.first[1].3));
        races
    }

    /// First bytes of accesses, each with the size of the largest.
    pub fn locations(&self) -> BTreeMap<u64, u64> {
        let mut locations = BTreeMap::new();
        for event in self.events {
            if let Some((bytes, kind)) = touched(event)
                && kind != AccessKind::Free
            {
                let size: &mut u64 = locations.entry(bytes.start).or_default();
                *size = (*size).max(bytes.end - bytes.start);
            }
        }
        locations
    }

    pub fn racy_locations(&self) -> BTreeSet<Addr> {
        let racy: Vec<Range<u64>> = self
            .instances()
            .into_iter()
            .map(|instance| instance.common)
            .collect();
        let touches = |start: u64, size: u64| {
            racy.iter()
                .any(|range| range.start < start + size && start < range.end)
        };
        self.locations()
            .into_iter()
            .filter(|&(start, size)| touches(start, size))
            .map(|(start, _)| Addr(start))
            .collect()
    }

    /// What algorithm 2 (`last_of_each` false) or 3 (true) answers, byte by byte from its definition.
    pub fn answers(&self, last_of_each: bool) -> BTreeMap<Addr, Answer> {
        let worst = |(start, size): (u64, u64)| {
            let answers = (start..start + size).map(|byte| self.answer_of_byte(byte, last_of_each));
            (
                Addr(start),
                answers.min_by_key(severity).expect("accesses have bytes"),
            )
        };
        self.locations().into_iter().map(worst).collect()
    }

    fn answer_of_byte(&self, byte: u64, last_of_each: bool) -> Answer {
        let mut sequence: Vec<usize> = Vec::new();
        let mut answer = Answer::NoRace;
        for (at, event) in self.events.iter().enumerate() {
            if let EventKind::Allocate { addr, size } = event.kind
                && (addr.0..addr.0 + size).contains(&byte)
            {
                sequence.clear();
            }
            let Some((bytes, kind)) = touched(event) else {
                continue;
            };
            if !bytes.contains(&byte) {
                continue;
            }
            let kind_of = |&at: &usize| touched(&self.events[at]).expect("an access").1;
            let last = |write: bool| {
                sequence
                    .iter()
                    .rev()
                    .find(|at| kind_of(at).is_write() == write)
                    .copied()
            };
            let compared = match last_of_each {
                false => vec![sequence.last().copied()],
                true => vec![last(true), last(false)],
            };
            for earlier in compared.into_iter().flatten() {
                if self.events[earlier].thread != event.thread && !self.ordered(earlier, at) {
                    let found = if kind_of(&earlier).races_with(kind) {
                        Answer::Race
                    } else {
                        Answer::Inconclusive
                    };
                    answer = [answer, found]
                        .into_iter()
                        .min_by_key(severity)
                        .expect("two");
                }
            }
            sequence.push(at);
        }
        answer
    }
}

fn severity(answer: &Answer) -> u8 {
    match answer {
        Answer::Race => 0,
        Answer::Inconclusive => 1,
        Answer::NoRace => 2,
    }
}

pub fn touched(event: &Event) -> Option<(Range<u64>, AccessKind)> {
    let (addr, size, kind) = match event.kind {
        EventKind::Read(a) => (a.addr, u64::from(a.size), AccessKind::Read),
        EventKind::Write(a) => (a.addr, u64::from(a.size), AccessKind::Write),
        EventKind::AtomicLoad(a, _) => (a.addr, u64::from(a.size), AccessKind::AtomicRead),
        EventKind::AtomicStore(a, _) | EventKind::AtomicRmw(a, _) => {
            (a.addr, u64::from(a.size), AccessKind::AtomicWrite)
        }
        EventKind::Free { addr, size } => (addr, size, AccessKind::Free),
        _ => return None,
    };
    Some((addr.0..addr.0 + size, kind))
}

fn edges(events: &[Event], twin: Twin) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for later in 0..events.len() {
        for earlier in 0..later {
            if directly_ordered(&events[earlier], &events[later], twin) {
                edges.push((earlier, later));
            }
        }
    }
    if twin == Twin::Hb {
        edges.extend(barrier_edges(events));
        edges.extend(atomic_edges(events));
    }
    edges
}

fn directly_ordered(earlier: &Event, later: &Event, twin: Twin) -> bool {
    use EventKind::{Acquire, Fork, Join, Notify, Release, SemaphorePost, SemaphoreWait, Wait};
    if earlier.thread == later.thread {
        return true;
    }
    match (earlier.kind, later.kind) {
        (Fork(child), _) if child == later.thread => true,
        (_, Join(child)) if child == earlier.thread => true,
        // Also of a thread that did nothing between.
        (Fork(a), Join(b)) if a == b => true,
        (Notify(a), Wait(b)) => a == b,
        (Release(a, released), Acquire(b, acquired)) if twin == Twin::Hb => {
            a == b && (released == LockMode::Exclusive || acquired == LockMode::Exclusive)
        }
        (SemaphorePost(a), SemaphoreWait(b)) => a == b && twin == Twin::Hb,
        _ => false,
    }
}

fn barrier_edges(events: &[Event]) -> Vec<(usize, usize)> {
    /// One round: who arrived at which event, and whether someone has left.
    struct Round {
        arrivals: Vec<usize>,
        left: bool,
    }
    let mut rounds: BTreeMap<SyncId, Vec<Round>> = BTreeMap::new();
    let mut member: BTreeMap<(SyncId, ThreadId), usize> = BTreeMap::new();
    let mut edges = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event.kind {
            EventKind::BarrierEnter(id) => {
                let rounds = rounds.entry(id).or_default();
                if rounds.last().is_none_or(|round| round.left) {
                    rounds.push(Round {
                        arrivals: Vec::new(),
                        left: false,
                    });
                }
                rounds.last_mut().expect("one was added").arrivals.push(at);
                member.insert((id, event.thread), rounds.len() - 1);
            }
            EventKind::BarrierLeave(id) => {
                if let Some(number) = member.remove(&(id, event.thread)) {
                    let round = &mut rounds.get_mut(&id).expect("it was entered")[number];
                    round.left = true;
                    edges.extend(round.arrivals.iter().map(|&arrival| (arrival, at)));
                }
            }
            _ => {}
        }
    }
    edges
}

fn atomic_edges(events: &[Event]) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let (EventKind::AtomicLoad(access, order) | EventKind::AtomicRmw(access, order)) =
            event.kind
        else {
            continue;
        };
        let sink = if acquires(order) {
            Some(at)
        } else {
            next_fence(events, at)
        };
        let Some(sink) = sink else { continue };
        for write in release_sequence(events, at, access.addr) {
            edges.extend(source_of(events, write).map(|source| (source, sink)));
        }
    }
    edges.retain(|&(source, sink)| events[source].thread != events[sink].thread);
    edges
}

/// The store that the access at `at` reads and the updates since.
fn release_sequence(events: &[Event], at: usize, addr: Addr) -> Vec<usize> {
    let mut sequence = Vec::new();
    for earlier in (0..at).rev() {
        match events[earlier].kind {
            EventKind::AtomicRmw(access, _) if access.addr == addr => sequence.push(earlier),
            EventKind::AtomicStore(access, _) if access.addr == addr => {
                sequence.push(earlier);
                break;
            }
            _ => {}
        }
    }
    sequence
}

/// The event whose past a reader of this write learns: the write, or the release fence before it.
fn source_of(events: &[Event], write: usize) -> Option<usize> {
    let (EventKind::AtomicStore(_, order) | EventKind::AtomicRmw(_, order)) = events[write].kind
    else {
        unreachable!("only writes are in release sequences")
    };
    if releases(order) {
        return Some(write);
    }
    (0..write).rev().find(|&at| {
        events[at].thread == events[write].thread
            && matches!(events[at].kind, EventKind::Fence(o) if releases(o))
    })
}

fn next_fence(events: &[Event], load: usize) -> Option<usize> {
    (load + 1..events.len()).find(|&at| {
        events[at].thread == events[load].thread
            && matches!(events[at].kind, EventKind::Fence(o) if acquires(o))
    })
}

fn acquires(order: MemoryOrder) -> bool {
    !matches!(order, MemoryOrder::Relaxed | MemoryOrder::Release)
}

fn releases(order: MemoryOrder) -> bool {
    !matches!(order, MemoryOrder::Relaxed | MemoryOrder::Acquire)
}
