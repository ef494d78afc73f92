//! Race detection with limited history (Banerjee et al., section 3): what its four algorithms share.
//!
//! For each location an algorithm keeps a few records of past accesses, compares each access with
//! them, and answers at the end: `race` if a flow, anti or output conflict was seen, `no-race` if no conflict
//! was seen at all, `inconclusive` if only input conflicts were and the algorithm cannot exclude more.
//!
//! Departs from the paper, which knows only reads and writes: two parallel atomic accesses are like an input
//! conflict, no race but a conflict. An access of several bytes belongs to the sequence of each of them.

use verdict_clocks::{Epoch, HappensBefore, Rules};
use verdict_events::{Addr, SiteId};

use crate::findings::HistorySize;
use crate::machine::{Judge, Machine, Touch, side};
use crate::shadow::{Duplicate, Finding, Shadow, Unit};
use crate::{AccessKind, Algorithm, Detector, PairBy, RaceSet, Side};

/// One access by a segment: a member `S_k` of the sequence of segments that access a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub epoch: Epoch,
    pub site: SiteId,
    pub position: u32,
    pub kind: AccessKind,
}

impl Record {
    fn side(&self) -> Side {
        side(self.epoch, self.site, self.kind, self.position)
    }
}

/// The history of one location.
pub(crate) trait Keep: Clone + Default {
    /// Whether input conflicts leave the answer open.
    const INPUT_IS_INCONCLUSIVE: bool;

    /// Compares an access with what is kept, tells `seen` about each kept one it is parallel to, and keeps what
    /// the algorithm wants to keep.
    fn access(
        &mut self,
        now: Record,
        parallel: impl Fn(&Record) -> bool,
        seen: impl FnMut(&Record),
    );

    /// How many records are kept.
    fn kept(&self) -> u32;
}

pub(crate) fn detector<K: Keep + 'static>(algorithm: Algorithm, by: PairBy) -> Box<dyn Detector> {
    let judge = Limited::<K> {
        races: RaceSet::new(by),
        reported: Vec::new(),
        keep: std::marker::PhantomData,
    };
    Box::new(Machine::new(algorithm, judge))
}

struct Limited<K> {
    races: RaceSet,
    /// Earlier events already reported for the current access, which meets them again in each unit it covers.
    reported: Vec<u32>,
    keep: std::marker::PhantomData<K>,
}

#[derive(Clone, Default)]
struct State<K> {
    keep: K,
    kept_most: u32,
}

impl<K: Keep> Duplicate<State<K>> for Limited<K> {
    fn duplicate(&mut self, state: &State<K>) -> State<K> {
        state.clone()
    }
}

impl<K: Keep> Judge for Limited<K> {
    type State = State<K>;

    const RULES: Rules = Rules::All;

    fn begin_access(&mut self) {
        self.reported.clear();
    }

    fn touch(&mut self, touch: &Touch, unit: Unit<State<K>>, order: &HappensBefore) {
        let Limited {
            races, reported, ..
        } = self;
        let now = Record {
            epoch: touch.epoch,
            site: touch.site,
            position: touch.position,
            kind: touch.kind,
        };
        let mut worst = Finding::Nothing;
        let parallel = |earlier: &Record| !order.knows(now.epoch.thread(), earlier.epoch);
        let seen = |earlier: &Record| {
            if !earlier.kind.races_with(now.kind) {
                if K::INPUT_IS_INCONCLUSIVE {
                    worst = worst.max(Finding::ParallelOnly);
                }
                return;
            }
            worst = Finding::Race;
            if !reported.contains(&earlier.position) {
                reported.push(earlier.position);
                races.add(earlier.side(), touch.side(), Addr(unit.extent.start), 1);
            }
        };
        unit.state.keep.access(now, parallel, seen);
        unit.state.kept_most = unit.state.kept_most.max(unit.state.keep.kept());
        unit.extent.note_finding(worst);
    }

    fn forget(&mut self, state: &mut State<K>) {
        state.keep = K::default();
    }

    fn records(&self, shadow: &Shadow<State<K>>) -> u64 {
        shadow
            .states()
            .map(|state| u64::from(state.keep.kept()))
            .sum()
    }

    fn take_races(&mut self) -> RaceSet {
        std::mem::take(&mut self.races)
    }

    fn history(&self, shadow: &Shadow<State<K>>) -> Option<HistorySize> {
        let kept = || shadow.states().map(|state| u64::from(state.kept_most));
        Some(HistorySize {
            segments_max: kept().max().unwrap_or(0),
            segments_total: kept().sum(),
        })
    }
}
