//! From places to units: ranges of bytes that accesses cover wholly or not at all.
//!
//! Places that overlap nothing but themselves, as nearly all do, are one unit each. Where places overlap in part, the
//! bytes are cut at every bound, and a place covers several units. Only units that can race are kept: touched by two
//! threads, by kinds of access of which two race.

use verdict_detect::AccessKind;

use crate::allocations::Allocations;
use crate::places::{Place, Threads};

/// A unit that can race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// How many entries of blocks are for it.
    pub records: u64,
}

/// What detection needs to know of the places of a trace.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shared {
    /// By number.
    pub units: Vec<Unit>,
    /// Which place covers which unit, by place and then by address.
    pub covers: Vec<(u32, u32)>,
    /// Locations that overlap a unit: first byte, and the end of the widest access that starts there. Ascending.
    pub locations: Vec<(u64, u64)>,
    /// Different first bytes of accesses in the whole trace.
    pub location_count: u64,
}

/// A run of a place, sorted to meet its neighbours.
#[derive(Clone, Copy)]
struct Piece {
    generation: u32,
    start: u64,
    end: u64,
    place: u32,
}

/// A unit while it is not known yet whether it can race.
#[derive(Clone, Copy)]
struct Draft {
    thread: u32,
    threads: Threads,
    kinds: u8,
    records: u64,
}

impl Shared {
    /// Places that cover units, ascending, each with its units by address.
    pub fn by_place(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        self.covers.chunk_by(|a, b| a.0 == b.0)
    }

    pub fn of(places: &[Place], allocations: &Allocations) -> Shared {
        let mut shared = Shared::default();
        let pieces = pieces(places, allocations);
        let mut covers = shared.make_units(places, &pieces);
        // By place, and by address within one: a place may lie in several generations.
        covers.sort_unstable_by_key(|&(place, unit)| {
            (place, shared.units[unit as usize].start, unit)
        });
        shared.covers = covers;
        shared.find_locations(places, &pieces);
        shared
    }

    /// Makes the units that can race, and answers with who covers which.
    fn make_units(&mut self, places: &[Place], pieces: &[Piece]) -> Vec<(u32, u32)> {
        let mut covers = Vec::new();
        let mut cuts = Vec::new();
        let mut rest = pieces;
        while let Some(first) = rest.first() {
            let (mut end, mut count) = (first.end, 0);
            while let Some(piece) = rest.get(count)
                && piece.generation == first.generation
                && (piece.start < end || count == 0)
            {
                end = end.max(piece.end);
                count += 1;
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            if let [piece] = group {
                self.add_alone(places, piece, &mut covers);
                continue;
            }
            cuts.clear();
            cuts.extend(group.iter().flat_map(|piece| [piece.start, piece.end]));
            cuts.sort_unstable();
            cuts.dedup();
            self.add_group(places, group, &cuts, &mut covers);
        }
        covers
    }

    /// As [`Shared::add_group`] does it for a piece that overlaps nothing, as nearly all do.
    fn add_alone(&mut self, places: &[Place], piece: &Piece, covers: &mut Vec<(u32, u32)>) {
        let draft = Draft::with(None, &places[piece.place as usize]);
        if draft.can_race() {
            covers.push((piece.place, self.units.len() as u32));
            self.units.push(Unit {
                start: piece.start,
                end: piece.end,
                records: draft.records,
            });
        }
    }

    /// `group` overlaps, and `cuts` are its bounds.
    fn add_group(
        &mut self,
        places: &[Place],
        group: &[Piece],
        cuts: &[u64],
        covers: &mut Vec<(u32, u32)>,
    ) {
        let range = |piece: &Piece| {
            let index = |at| cuts.partition_point(|&cut| cut < at);
            index(piece.start)..index(piece.end)
        };
        let mut drafts: Vec<Option<Draft>> = vec![None; cuts.len() - 1];
        for piece in group {
            let place = &places[piece.place as usize];
            for draft in &mut drafts[range(piece)] {
                *draft = Some(Draft::with(*draft, place));
            }
        }
        let mut numbers = vec![None; drafts.len()];
        for (nth, draft) in drafts.iter().enumerate() {
            let Some(draft) = draft.filter(Draft::can_race) else {
                continue;
            };
            numbers[nth] = Some(self.units.len() as u32);
            self.units.push(Unit {
                start: cuts[nth],
                end: cuts[nth + 1],
                records: draft.records,
            });
        }
        for piece in group {
            let units = numbers[range(piece)].iter().flatten();
            covers.extend(units.map(|&unit| (piece.place, unit)));
        }
    }

    /// Pieces are in order already, all but those of different generations: sorting finds little to do.
    fn find_locations(&mut self, places: &[Place], pieces: &[Piece]) {
        let mut locations: Vec<(u64, u64)> = pieces
            .iter()
            .map(|piece| &places[piece.place as usize])
            .filter(|place| place.is_location())
            .map(|place| (place.start, place.end))
            .collect();
        locations.sort_unstable_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        locations.dedup_by_key(|location| location.0);
        self.location_count = locations.len() as u64;
        let touched = union(self.units.iter().map(|unit| (unit.start, unit.end)));
        locations.retain(|&location| overlaps(&touched, location));
        self.locations = locations;
    }
}

/// The ranges that cover the same bytes, ascending, none touching another.
pub(crate) fn union(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = ranges.collect();
    ranges.sort_unstable();
    let mut union: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

/// Whether a range has a byte in common with a union.
pub(crate) fn overlaps(union: &[(u64, u64)], (start, end): (u64, u64)) -> bool {
    let next = union.partition_point(|range| range.1 <= start);
    union.get(next).is_some_and(|range| range.0 < end)
}

fn pieces(places: &[Place], allocations: &Allocations) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(places.len());
    for (number, place) in places.iter().enumerate() {
        allocations.for_each_run(place.object, place.start, place.end, |run| {
            pieces.push(Piece {
                generation: run.generation,
                start: run.start,
                end: run.end,
                place: number as u32,
            });
        });
    }
    pieces.sort_unstable_by_key(|piece| {
        let start = u128::from(piece.generation) << 64 | u128::from(piece.start);
        (start, piece.end, piece.place)
    });
    pieces
}

impl Draft {
    fn with(draft: Option<Draft>, place: &Place) -> Draft {
        let records = u64::from(place.entries);
        match draft {
            None => Draft {
                thread: place.thread,
                threads: place.threads,
                kinds: place.kinds,
                records,
            },
            Some(draft) => Draft {
                thread: draft.thread,
                threads: if draft.thread == place.thread && place.threads == Threads::One {
                    draft.threads
                } else {
                    Threads::Several
                },
                kinds: draft.kinds | place.kinds,
                records: draft.records + records,
            },
        }
    }

    fn can_race(&self) -> bool {
        let has = |kind: AccessKind| self.kinds & 1 << kind as u8 != 0;
        let plain_write = has(AccessKind::Write) || has(AccessKind::Free);
        let mixed = has(AccessKind::Read) && has(AccessKind::AtomicWrite);
        self.threads == Threads::Several && (plain_write || mixed)
    }
}
