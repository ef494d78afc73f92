//! Where in the primary a race happened.

use crate::Race;
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
    /// Neither of the two threads accessed the same memory at these sites in between: the two could have met.
    pub adjacent: bool,
}

/// The instances of a race among the stops of the primary, in order of the first access.
pub(crate) fn instances(race: &Race, stops: &[WatchedStop]) -> Vec<Instance> {
    let mine: Vec<&WatchedStop> = stops
        .iter()
        .filter(|stop| race.first.contains(&stop.pc) || race.second.contains(&stop.pc))
        .collect();
    let mut found = Vec::new();
    for (index, first) in mine.iter().enumerate() {
        let ahead = &mine[index + 1..];
        let partner = ahead
            .iter()
            .take(LOOK_AHEAD)
            .enumerate()
            .find_map(|(at, second)| Some((at, meet(race, first, second)?)));
        if let Some((at, instance)) = partner {
            let between = &ahead[..at];
            let adjacent = !between.iter().any(|stop| touches(stop, &instance));
            found.push(Instance {
                adjacent,
                ..instance
            });
        }
    }
    found
}

/// Stops that are looked at for a partner.
const LOOK_AHEAD: usize = 4096;

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
                    instructions: first.instructions,
                    retired: first.retired,
                    second: access(second, *b),
                    adjacent: true,
                });
            }
        }
    }
    None
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

/// Which instances are tried: some at equal distances, of those whose accesses could have met, if there are any.
pub(crate) fn chosen(instances: &[Instance], max: usize) -> Vec<Instance> {
    let adjacent: Vec<&Instance> = instances.iter().filter(|one| one.adjacent).collect();
    let from: Vec<&Instance> = match adjacent.is_empty() {
        true => instances.iter().collect(),
        false => adjacent,
    };
    if from.len() <= max {
        return from.into_iter().cloned().collect();
    }
    (0..max)
        .map(|index| from[index * from.len() / max].clone())
        .collect()
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
            accesses: vec![(address, 4, write)],
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
        let tried: Vec<u64> = chosen(&all, 4).iter().map(|i| i.retired).collect();
        assert_eq!(tried, [0, 249, 499, 749]);
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
        let tried: Vec<u64> = chosen(&found, 4).iter().map(|one| one.retired).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(tried, [2]);
    }
}
