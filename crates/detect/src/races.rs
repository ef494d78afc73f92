//! Race instances gathered into races.
//!
//! A race is all instances of one unordered pair of (site, access), or of (thread, site, access). Its
//! *first* instance is the one whose later event comes first in the trace and, among those, whose
//! earlier event does. Instances may be added in any order, and sets gathered apart can be merged: the
//! result is the same.

use rustc_hash::FxHashMap;
use verdict_events::{Addr, Position, SiteId, ThreadId};

use crate::{AccessKind, Conflict};

/// What makes two accesses the same side of a race.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PairBy {
    /// Site and access.
    #[default]
    Site,
    /// Thread, site and access.
    ThreadAndSite,
}

/// One access of a race instance, or of several that differ in position only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Who.
    pub thread: ThreadId,
    /// Where in the program.
    pub site: SiteId,
    /// How.
    pub kind: AccessKind,
    /// When: the earliest, if it stands for several.
    pub position: Position,
}

/// One race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// The accesses of the first instance, in trace order.
    pub accesses: [Side; 2],
    /// What they are to each other.
    pub conflict: Conflict,
    /// The first bytes that both accesses touched, ascending.
    pub locations: Vec<Addr>,
    /// How many pairs of events.
    pub instances: u64,
}

/// Races while instances are still coming in.
#[derive(Clone, Debug, Default)]
pub struct RaceSet {
    by: PairBy,
    races: FxHashMap<[Key; 2], Gathered>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Key {
    site: SiteId,
    kind: AccessKind,
    thread: ThreadId,
}

#[derive(Clone, Debug)]
struct Gathered {
    first: [Side; 2],
    instances: u64,
    locations: Locations,
}

/// A set of locations. Where there are many, they are not found in any cache, so they are put in order together, not one by one.
#[derive(Clone, Debug)]
struct Locations {
    /// The first ones each once and ascending, then those that came since.
    all: Vec<Addr>,
    /// How many there may be before all are put in order.
    len_max: usize,
}

/// Fewer are not worth putting in order.
const LOCATIONS_MIN: usize = 256;

impl RaceSet {
    /// An empty set that pairs accesses by `by`.
    pub fn new(by: PairBy) -> RaceSet {
        RaceSet {
            by,
            races: FxHashMap::default(),
        }
    }

    /// Adds `instances` instances between `earlier` and `later`, all at `location`.
    pub fn add(&mut self, earlier: Side, later: Side, location: Addr, instances: u64) {
        let mut key = [self.key(&earlier), self.key(&later)];
        key.sort_unstable();
        let new = || Gathered {
            first: [earlier, later],
            instances: 0,
            locations: Locations::default(),
        };
        let race = self.races.entry(key).or_insert_with(new);
        race.instances += instances;
        race.offer_first([earlier, later]);
        race.locations.add(location);
    }

    /// Adds what another set, paired the same way, has gathered from other instances.
    pub fn merge(&mut self, other: RaceSet) {
        assert_eq!(
            self.by, other.by,
            "sets paired differently cannot be merged"
        );
        for (key, theirs) in other.races {
            match self.races.entry(key) {
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(theirs);
                }
                std::collections::hash_map::Entry::Occupied(mut entry) => {
                    let mine = entry.get_mut();
                    mine.instances += theirs.instances;
                    mine.offer_first(theirs.first);
                    theirs
                        .locations
                        .all
                        .into_iter()
                        .for_each(|location| mine.locations.add(location));
                }
            }
        }
    }

    /// The races, by the events of their first instances.
    pub fn into_races(self) -> Vec<Race> {
        let mut races: Vec<Race> = self.races.into_values().map(Gathered::into_race).collect();
        // No two races share their first pair of events, since events determine sites.
        races.sort_unstable_by_key(|race| race.accesses.map(|side| side.position));
        races
    }

    fn key(&self, side: &Side) -> Key {
        let thread = match self.by {
            PairBy::Site => ThreadId(0),
            PairBy::ThreadAndSite => side.thread,
        };
        Key {
            site: side.site,
            kind: side.kind,
            thread,
        }
    }
}

impl Gathered {
    fn offer_first(&mut self, [earlier, later]: [Side; 2]) {
        let key = |pair: [Side; 2]| (pair[1].position, pair[0].position);
        if key([earlier, later]) < key(self.first) {
            self.first = [earlier, later];
        }
    }

    fn into_race(self) -> Race {
        Race {
            accesses: self.first,
            conflict: Conflict::between(self.first[0].kind, self.first[1].kind),
            locations: self.locations.in_order(),
            instances: self.instances,
        }
    }
}

impl Default for Locations {
    fn default() -> Self {
        Locations {
            all: Vec::new(),
            len_max: LOCATIONS_MIN,
        }
    }
}

impl Locations {
    #[inline]
    fn add(&mut self, location: Addr) {
        // Instances come in runs at one location.
        if self.all.last() == Some(&location) {
            return;
        }
        if self.all.len() >= self.len_max {
            self.put_in_order();
            self.len_max = LOCATIONS_MIN.max(2 * self.all.len());
        }
        self.all.push(location);
    }

    #[inline(never)]
    fn put_in_order(&mut self) {
        self.all.sort_unstable();
        self.all.dedup();
    }

    fn in_order(mut self) -> Vec<Addr> {
        self.put_in_order();
        self.all.shrink_to_fit();
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(thread: u32, site: u32, kind: AccessKind, position: u64) -> Side {
        Side {
            thread: ThreadId(thread),
            site: SiteId(site),
            kind,
            position: Position(position),
        }
    }

    #[test]
    fn every_location_is_told_once() {
        let mut locations = Locations::default();
        for number in 0..5000u64 {
            locations.add(Addr(number * 7919 % 1000 * 8));
            assert!(locations.all.len() <= 2048);
        }
        let each: Vec<Addr> = (0..1000).map(|number| Addr(number * 8)).collect();
        assert_eq!(locations.in_order(), each);
    }

    #[test]
    fn order_of_adding_and_merging_do_not_matter() {
        use AccessKind::{Read, Write};
        let instances = [
            (side(0, 1, Write, 3), side(1, 2, Read, 9), Addr(8)),
            (side(1, 2, Read, 2), side(0, 1, Write, 5), Addr(16)),
            (side(1, 2, Read, 1), side(0, 1, Write, 5), Addr(16)),
            (side(0, 1, Write, 0), side(2, 1, Write, 4), Addr(8)),
        ];
        let gather = |order: &[usize]| {
            let mut set = RaceSet::default();
            for &i in order {
                let (earlier, later, location) = instances[i];
                set.add(earlier, later, location, 1);
            }
            set
        };
        let whole = gather(&[0, 1, 2, 3]).into_races();
        assert_eq!(whole, gather(&[3, 2, 1, 0]).into_races());
        let mut merged = gather(&[2, 0]);
        merged.merge(gather(&[3, 1]));
        assert_eq!(whole, merged.into_races());
        assert_eq!(whole.len(), 2);
        assert_eq!(whole[1].accesses.map(|side| side.position.0), [1, 5]);
        assert_eq!(whole[1].conflict, Conflict::Anti);
        assert_eq!(whole[1].instances, 3);
        assert_eq!(whole[1].locations, [Addr(8), Addr(16)]);
    }
}
