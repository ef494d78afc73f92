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
use verdict_events::{Addr, SiteId, ThreadId};

use crate::machine::{Judge, Machine, PlainAccess, Touch, side};
use crate::shadow::{Duplicate, Finding, Shadow, Unit};
use crate::{AccessKind, Algorithm, Detector, PairBy, RaceSet};

pub(crate) fn detector(by: PairBy) -> Box<dyn Detector> {
    let judge = FastTrack {
        races: RaceSet::new(by),
        reported: Vec::new(),
        lists: Vec::new(),
        unused: Vec::new(),
    };
    Box::new(Machine::new(Algorithm::FastTrack, judge))
}

struct FastTrack {
    races: RaceSet,
    /// Earlier events already reported for the current access, which meets them again in each unit it covers.
    reported: Vec<u32>,
    /// What does not fit two epochs, for the few locations that need it.
    lists: Vec<Lists>,
    /// Which of `lists` no location uses any more.
    unused: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Past {
    epoch: Epoch,
    site: SiteId,
    position: u32,
}

/// Two to a cache line: this is most of what the detector's speed depends on.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct State {
    /// The last read and the last write, by `READ` and `WRITE`. While reads are not ordered, the epoch of the read is `LISTED` and
    /// its position an index into `lists`.
    last: [Past; 2],
}

const READ: usize = false as usize;
const WRITE: usize = true as usize;

/// At most one of each thread, sorted by thread.
#[derive(Clone, Default)]
struct Lists {
    /// The last write gave the memory back.
    freed: bool,
    reads: Vec<Past>,
    atomic_reads: Vec<Past>,
    atomic_writes: Vec<Past>,
}

/// Stands for the epoch of reads that are in `lists`. Like `Epoch::NONE`, no thread has it.
fn listed() -> Epoch {
    Epoch::new(ThreadId(u32::MAX), 0)
}

/// Stands for the epoch of the last write of a location that has had its race.
fn raced() -> Epoch {
    Epoch::new(ThreadId(u32::MAX), 1)
}

impl Duplicate<State> for FastTrack {
    fn duplicate(&mut self, state: &State) -> State {
        let mut copy = *state;
        if state.last[READ].epoch == listed() {
            let lists = self.lists[state.last[READ].position as usize].clone();
            copy.last[READ].position = self.new_lists(lists);
        }
        copy
    }
}

impl Judge for FastTrack {
    type State = State;

    const RULES: Rules = Rules::All;

    /// Until its thread posts, nobody can follow an access, so whoever does something that would change what is kept of it
    /// races with it, and then nothing is kept.
    const SKIPS_REPEATED: bool = true;

    #[inline]
    fn glance(&self, state: &State) -> u64 {
        u64::from(state.last[WRITE].position)
    }

    #[inline(always)]
    fn touch_own(&mut self, access: PlainAccess, state: &mut State) -> bool {
        let own = state.belongs_to(access.epoch.thread());
        if own & !state.repeats(access.epoch, access.is_write) {
            state.keep_own(access);
        }
        own
    }

    fn begin_access(&mut self) {
        self.reported.clear();
    }

    fn touch(&mut self, touch: &Touch, unit: Unit<State>, order: &HappensBefore) {
        if unit.state.last[WRITE].epoch == raced() || unit.state.knows(touch) {
            return;
        }
        let Some((past, kind)) = self.racing(touch, unit.state, order) else {
            self.keep(touch, unit.state, order);
            return;
        };
        unit.extent.note_finding(Finding::Race);
        self.drop_lists(unit.state);
        *unit.state = State::default();
        unit.state.last[WRITE].epoch = raced();
        if !self.reported.contains(&past.position) {
            self.reported.push(past.position);
            let earlier = side(past.epoch, past.site, kind, past.position);
            self.races
                .add(earlier, touch.side(), Addr(unit.extent.start), 1);
        }
    }

    /// A location that has had its race stays as it is, whatever its memory is used for.
    fn forget(&mut self, state: &mut State) {
        if state.last[WRITE].epoch != raced() {
            self.drop_lists(state);
            *state = State::default();
        }
    }

    fn records(&self, shadow: &Shadow<State>) -> u64 {
        let held = |state: &State| {
            let write = state.last[WRITE].epoch;
            u64::from(!write.is_none() && write != raced())
                + match self.lists_of(state) {
                    Some(lists) => lists.records(),
                    None => u64::from(!state.last[READ].epoch.is_none()),
                }
        };
        shadow.states().map(held).sum()
    }

    fn take_races(&mut self) -> RaceSet {
        std::mem::take(&mut self.races)
    }
}

/// What follows is without branches where half of all accesses would go the one way and half the other.
impl State {
    /// True only if there was a plain access in the same epoch, a write if this plain one is.
    #[inline(always)]
    fn repeats(&self, epoch: Epoch, is_write: bool) -> bool {
        (self.last[usize::from(is_write)].epoch == epoch) | (self.last[WRITE].epoch == epoch)
    }

    fn knows(&self, touch: &Touch) -> bool {
        touch.is_plain() && self.repeats(touch.epoch, touch.kind == AccessKind::Write)
    }

    /// Whether all that is kept is of `thread`: then nothing of it races with what that does.
    #[inline(always)]
    fn belongs_to(&self, thread: ThreadId) -> bool {
        let own = |past: &Past| (past.epoch.thread() == thread) | past.epoch.is_none();
        own(&self.last[WRITE]) & own(&self.last[READ])
    }

    /// Keeps a plain access of the thread to which all of this belongs.
    #[inline(always)]
    fn keep_own(&mut self, access: PlainAccess) {
        self.last[usize::from(access.is_write)] = Past {
            epoch: access.epoch,
            site: access.site,
            position: access.position,
        };
        // A write makes earlier reads worthless.
        self.last[READ].epoch = if access.is_write {
            Epoch::NONE
        } else {
            access.epoch
        };
    }
}

impl Past {
    #[inline]
    fn of(touch: &Touch) -> Past {
        Past {
            epoch: touch.epoch,
            site: touch.site,
            position: touch.position,
        }
    }
}

impl FastTrack {
    /// An earlier access that races with this one.
    fn racing(
        &self,
        touch: &Touch,
        state: &State,
        order: &HappensBefore,
    ) -> Option<(Past, AccessKind)> {
        let viewer = touch.epoch.thread();
        let parallel = |past: &Past| !past.epoch.is_none() && !order.knows(viewer, past.epoch);
        let lists = self.lists_of(state);
        if parallel(&state.last[WRITE]) {
            let freed = lists.is_some_and(|lists| lists.freed);
            let kind = if freed {
                AccessKind::Free
            } else {
                AccessKind::Write
            };
            return Some((state.last[WRITE], kind));
        }
        let Some(lists) = lists else {
            let races = touch.kind.is_write() && parallel(&state.last[READ]);
            return races.then_some((state.last[READ], AccessKind::Read));
        };
        let candidates = [
            (&lists.atomic_writes, AccessKind::AtomicWrite),
            (&lists.reads, AccessKind::Read),
            (&lists.atomic_reads, AccessKind::AtomicRead),
        ];
        candidates
            .into_iter()
            .filter(|(_, kind)| kind.races_with(touch.kind))
            .find_map(|(list, kind)| {
                let earliest = list
                    .iter()
                    .filter(|past| parallel(past))
                    .min_by_key(|past| past.position);
                earliest.map(|&past| (past, kind))
            })
    }

    fn keep(&mut self, touch: &Touch, state: &mut State, order: &HappensBefore) {
        let now = Past::of(touch);
        match touch.kind {
            AccessKind::Read => self.keep_read(now, state, order),
            // All that is kept happened before this write: whatever races with it, races with this.
            AccessKind::Write | AccessKind::Free => {
                self.drop_lists(state);
                *state = State {
                    last: [Past::default(), now],
                };
                if touch.kind == AccessKind::Free {
                    self.lists_for(state).freed = true;
                }
            }
            AccessKind::AtomicRead => put(&mut self.lists_for(state).atomic_reads, now),
            AccessKind::AtomicWrite => put(&mut self.lists_for(state).atomic_writes, now),
        }
    }

    fn keep_read(&mut self, now: Past, state: &mut State, order: &HappensBefore) {
        let last = state.last[READ].epoch;
        if last == listed() {
            put(&mut self.lists_for(state).reads, now);
        } else if last.is_none() || order.knows(now.epoch.thread(), last) {
            state.last[READ] = now;
        } else {
            put(&mut self.lists_for(state).reads, now);
        }
    }

    fn lists_of(&self, state: &State) -> Option<&Lists> {
        (state.last[READ].epoch == listed())
            .then(|| &self.lists[state.last[READ].position as usize])
    }

    /// The lists of a location, which gets some if it has none yet.
    fn lists_for(&mut self, state: &mut State) -> &mut Lists {
        if state.last[READ].epoch != listed() {
            let mut lists = Lists::default();
            if !state.last[READ].epoch.is_none() {
                lists.reads.push(state.last[READ]);
            }
            let index = self.new_lists(lists);
            state.last[READ] = Past {
                epoch: listed(),
                site: SiteId(0),
                position: index,
            };
        }
        &mut self.lists[state.last[READ].position as usize]
    }

    fn new_lists(&mut self, lists: Lists) -> u32 {
        if let Some(index) = self.unused.pop() {
            self.lists[index as usize] = lists;
            return index;
        }
        self.lists.push(lists);
        u32::try_from(self.lists.len() - 1).expect("memory holds fewer than 2^32 lists")
    }

    fn drop_lists(&mut self, state: &State) {
        if state.last[READ].epoch == listed() {
            self.lists[state.last[READ].position as usize] = Lists::default();
            self.unused.push(state.last[READ].position);
        }
    }
}

impl Lists {
    fn records(&self) -> u64 {
        (self.reads.len() + self.atomic_reads.len() + self.atomic_writes.len()) as u64
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
