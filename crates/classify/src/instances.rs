//! Where in the primary a race happened.

use crate::Race;
use std::collections::BTreeMap;
use verdict_explore::RacingAccess;
use verdict_protocol::WatchedStop;

/// One time that the two accesses met: the second is the next one that conflicts with the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The access that came first.
    pub first: RacingAccess,
    /// Instructions that its thread had retired before.
    pub instructions: u64,
    /// Instructions that all threads had retired before.
    pub retired: u64,
    /// The access that came second.
    pub second: RacingAccess,
    /// Which of the two are calls that access memory somewhere inside.
    pub calls: [bool; 2],
    /// Neither of the two threads accessed the same memory at these sites in between: the two could have met.
    pub adjacent: bool,
}

/// The instances of a race among the stops of the primary, in order of the first access.
pub(crate) fn instances(race: &Race, stops: &[WatchedStop]) -> Vec<Instance> {
    let mine = stops
        .iter()
        .filter(|stop| race.first.contains(&stop.pc) || race.second.contains(&stop.pc));
    let mine = whole(mine);
    let mut ahead = Ahead::default();
    let mut found = Vec::new();
    for (index, first) in mine.iter().enumerate().rev() {
        let near = ahead.near(first, &mine);
        let partner = near
            .iter()
            .find_map(|at| Some((*at, meet(race, first, &mine[*at])?)));
        if let Some((partner, instance)) = partner {
            let between = near.iter().take_while(|at| **at < partner);
            let adjacent = !between.into_iter().any(|at| touches(&mine[*at], &instance));
            found.push(Instance {
                adjacent,
                ..instance
            });
        }
        ahead.add(index, first);
    }
    found.reverse();
    found
}

/// Accesses that come later, by the bytes they touch: of each kind only the next one matters, so that a race of many instances
/// takes no longer than its accesses are many.
#[derive(Default)]
struct Ahead {
    /// For each byte and each thread, instruction and direction, the next access.
    bytes: BTreeMap<u64, BTreeMap<Kind, usize>>,
    /// Accesses of many bytes.
    large: Vec<usize>,
}

/// Thread, instruction, whether it writes.
type Kind = (u32, u64, bool);

/// Longest access that is kept byte by byte.
const BYTES_MAX: u64 = 64;
/// Large accesses that are looked at: calls that free or fill whole blocks.
const LARGE_MAX: usize = 256;

impl Ahead {
    fn add(&mut self, index: usize, stop: &WatchedStop) {
        for (address, len, write) in &stop.accesses {
            if *len > BYTES_MAX {
                self.large.push(index);
                continue;
            }
            for byte in *address..address.saturating_add(*len) {
                let kinds = self.bytes.entry(byte).or_default();
                kinds.insert((stop.thread, stop.pc, *write), index);
            }
        }
    }

    /// Accesses that touch what this one touches, in order.
    fn near(&self, stop: &WatchedStop, all: &[WatchedStop]) -> Vec<usize> {
        let overlaps = |other: &WatchedStop| {
            let touch = |(a, len, _): &(u64, u64, bool), (b, other_len, _): &(u64, u64, bool)| {
                *a < b.saturating_add(*other_len) && *b < a.saturating_add(*len)
            };
            stop.accesses
                .iter()
                .any(|one| other.accesses.iter().any(|two| touch(one, two)))
        };
        let large = self.large.iter().rev().take(LARGE_MAX);
        let mut near: Vec<usize> = large.copied().filter(|at| overlaps(&all[*at])).collect();
        for (address, len, _) in &stop.accesses {
            let touched = self.bytes.range(*address..address.saturating_add(*len));
            near.extend(touched.flat_map(|(_, kinds)| kinds.values()));
        }
        near.sort_unstable();
        near.dedup();
        near
    }
}

/// A call is one access of all that it accesses, made when it began, however often the execution was stopped inside.
fn whole<'a>(stops: impl Iterator<Item = &'a WatchedStop>) -> Vec<WatchedStop> {
    let mut found: Vec<WatchedStop> = Vec::new();
    // Where the last access of each thread is in the list.
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    for stop in stops {
        let same = last.get(&stop.thread).map(|index| &mut found[*index]);
        match same {
            Some(whole) if (whole.pc, whole.begun) == (stop.pc, stop.begun) => {
                let new = stop.accesses.iter();
                let new: Vec<_> = new.filter(|one| !whole.accesses.contains(one)).collect();
                if whole.accesses.len() + new.len() <= ACCESSES_MAX {
                    whole.accesses.extend(new);
                }
            }
            _ => {
                last.insert(stop.thread, found.len());
                found.push(stop.clone());
            }
        }
    }
    found
}

/// Accesses of one call that are looked at.
const ACCESSES_MAX: usize = 256;

fn meet(race: &Race, first: &WatchedStop, second: &WatchedStop) -> Option<Instance> {
    let pair = |a: u64, b: u64| race.first.contains(&a) && race.second.contains(&b);
    if first.thread == second.thread || !(pair(first.pc, second.pc) || pair(second.pc, first.pc)) {
        return None;
    }
    for a in &first.accesses {
        for b in &second.accesses {
            let overlap = a.0 < b.0 + b.1 && b.0 < a.0 + a.1;
            if overlap && (a.2 || b.2) {
                return Some(Instance {
                    first: access(first, *a),
                    instructions: first.begun.0,
                    retired: first.begun.1,
                    calls: [first, second].map(is_call),
                    second: access(second, *b),
                    adjacent: true,
                });
            }
        }
    }
    None
}

/// True for an access inside of a call.
fn is_call(stop: &WatchedStop) -> bool {
    stop.begun.0 != stop.instructions
}

/// True if one of the two threads accesses what the instance is about.
fn touches(stop: &WatchedStop, instance: &Instance) -> bool {
    let (first, second) = (&instance.first, &instance.second);
    let own = stop.thread == first.thread || stop.thread == second.thread;
    let overlaps = |address: u64, len: u64| {
        let with = |access: &RacingAccess| {
            address < access.address + access.len && access.address < address + len
        };
        with(first) && with(second)
    };
    own && stop
        .accesses
        .iter()
        .any(|(address, len, _)| overlaps(*address, *len))
}

fn access(stop: &WatchedStop, (address, len, write): (u64, u64, bool)) -> RacingAccess {
    RacingAccess {
        thread: stop.thread,
        pc: stop.pc,
        address,
        len,
        write,
    }
}

/// Which instances are tried: some at equal distances, of those whose accesses could have met, if there are any. And the first one
/// of all: a thread that comes before everything the other one did may see what no order of two accesses that met shows.
pub(crate) fn chosen(instances: &[Instance], max: usize) -> Vec<Tried> {
    let adjacent: Vec<&Instance> = instances.iter().filter(|one| one.adjacent).collect();
    if adjacent.is_empty() {
        return spread(&instances.iter().collect::<Vec<_>>(), max);
    }
    let first = instances.first().filter(|first| !first.adjacent && max > 1);
    let first = first.map(|first| Tried {
        instance: first.clone(),
        besides: true,
        leads: false,
    });
    let met = spread(&adjacent, max - usize::from(first.is_some()));
    first.into_iter().chain(met).collect()
}

/// An instance that is tried.
pub(crate) struct Tried {
    pub instance: Instance,
    /// Others of its race met, and this one did not: that its other order is not possible says nothing of the race.
    pub besides: bool,
    /// It is followed to the end, whatever is known already.
    pub leads: bool,
}

/// So many of these, at equal distances.
fn spread(instances: &[&Instance], max: usize) -> Vec<Tried> {
    let count = instances.len().min(max);
    let nth = |index: usize| instances[index * instances.len() / count].clone();
    let tried = (0..count).map(|index| Tried {
        instance: nth(index),
        besides: false,
        leads: index == 0,
    });
    tried.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn stop(thread: u32, pc: u64, address: u64, write: bool, retired: u64) -> WatchedStop {
        WatchedStop {
            pc,
            thread,
            instructions: retired,
            retired,
            begun: (retired, retired),
            accesses: vec![(address, 4, write)],
            value: 0,
        }
    }

    fn race() -> Race {
        Race {
            id: "r".into(),
            first: BTreeSet::from([0x10]),
            second: BTreeSet::from([0x20]),
        }
    }

    #[test]
    fn the_next_conflicting_access_of_another_thread_is_the_partner() {
        let stops = [
            stop(1, 0x10, 0x100, true, 1),
            stop(1, 0x20, 0x100, false, 2),
            stop(2, 0x20, 0x200, false, 3),
            stop(2, 0x20, 0x102, false, 4),
        ];
        let found = instances(&race(), &stops);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].retired, 1);
        assert_eq!(
            (found[0].second.thread, found[0].second.address),
            (2, 0x102)
        );
    }

    #[test]
    fn two_reads_or_the_same_side_are_none() {
        let reads = [
            stop(1, 0x10, 0x100, false, 1),
            stop(2, 0x20, 0x100, false, 2),
        ];
        assert!(instances(&race(), &reads).is_empty());
        let same = [stop(1, 0x10, 0x100, true, 1), stop(2, 0x10, 0x100, true, 2)];
        assert!(instances(&race(), &same).is_empty());
    }

    #[test]
    fn many_instances_are_tried_at_equal_distances() {
        let stops: Vec<WatchedStop> = (0..1000)
            .map(|index| {
                let thread = 1 + (index % 2) as u32;
                stop(
                    thread,
                    if thread == 1 { 0x10 } else { 0x20 },
                    0x100,
                    true,
                    index,
                )
            })
            .collect();
        let all = instances(&race(), &stops);
        assert_eq!(all.len(), 999);
        let tried: Vec<u64> = chosen(&all, 4)
            .iter()
            .map(|one| one.instance.retired)
            .collect();
        assert_eq!(tried, [0, 249, 499, 749]);
    }

    #[test]
    fn every_instance_is_counted_however_far_its_partner_is() {
        let turn = |thread: u32, pc: u64, from: u64| {
            (from..from + 10_000).map(move |at| stop(thread, pc, 0x100, true, at))
        };
        let stops: Vec<WatchedStop> = turn(1, 0x10, 0).chain(turn(2, 0x20, 10_000)).collect();
        let found = instances(&race(), &stops);
        assert_eq!(found.len(), 10_000);
        assert_eq!(found.iter().filter(|one| one.adjacent).count(), 1);
    }

    #[test]
    fn a_large_access_meets_a_small_one() {
        let mut freed = stop(1, 0x10, 0x1000, true, 1);
        freed.accesses = vec![(0x1000, 1 << 20, true)];
        let read = stop(2, 0x20, 0x2000, false, 2);
        assert_eq!(instances(&race(), &[freed.clone(), read.clone()]).len(), 1);
        assert_eq!(instances(&race(), &[read, freed]).len(), 1);
    }

    #[test]
    fn a_call_is_one_access_that_began_before_it() {
        let inside = |stop: WatchedStop| WatchedStop {
            begun: (1, 1),
            ..stop
        };
        let stops = [
            inside(stop(1, 0x10, 0x100, true, 5)),
            inside(stop(1, 0x10, 0x102, true, 6)),
            stop(2, 0x20, 0x102, false, 7),
        ];
        let found = instances(&race(), &stops);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].retired, found[0].adjacent), (1, true));
        assert_eq!(found[0].calls, [true, false]);
    }

    #[test]
    fn accesses_with_others_of_the_same_threads_between_them_could_not_have_met() {
        let stops = [
            stop(1, 0x10, 0x100, false, 1),
            stop(1, 0x20, 0x100, true, 2),
            stop(2, 0x10, 0x100, false, 3),
            stop(2, 0x20, 0x100, true, 4),
        ];
        let found = instances(&race(), &stops);
        let tried: Vec<u64> = chosen(&found, 4)
            .iter()
            .map(|one| one.instance.retired)
            .collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found.iter().filter(|one| one.adjacent).count(), 1);
        assert_eq!(
            tried,
            [1, 2],
            "the one that met, and what comes first of all"
        );
    }
}
