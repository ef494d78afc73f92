//! Why a race does no harm, where its instances show it (Narayanasamy et al. 2007, section 5.4).

use crate::state::Compared;
use crate::{Instance, ReplayOutcome};
use verdict_explore::{RacingAccess, SegmentEnd};
use verdict_protocol::WatchedStop;

/// What the two threads were seen to do, by which the order does not matter. Of several instances the last in this list counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Habit {
    /// The write leaves what is there, or what the other one writes.
    WritesTheSame,
    /// The reader sees one value or the other, and comes to the same state.
    ReadsEither,
    /// Both write, and nothing but what they write differs afterwards.
    ChangesItselfAlone,
    /// Who reads one of the values goes on to take a lock.
    TakesALock,
    /// Who reads the old value comes back and reads again; who reads the new one does not.
    Waits,
}

/// What one instance shows before it is followed any further: from the segments of both orders, each end with its access.
pub(crate) fn of_segments(
    instance: &Instance,
    compared: &Compared,
    ends: [Option<[SegmentEnd; 2]>; 2],
    locking: &[u64],
) -> Option<Habit> {
    let same = compared.outcome == ReplayOutcome::NoStateChange;
    if instance.first.write && instance.second.write {
        let own = |address: u64| {
            [&instance.first, &instance.second].iter().any(|access| {
                let start = access.address & !7;
                (start..access.address + access.len).contains(&address)
            })
        };
        let itself =
            !compared.words.is_empty() && compared.words.iter().all(|word| own(word.address));
        return match same {
            true => Some(Habit::WritesTheSame),
            false => itself.then_some(Habit::ChangesItselfAlone),
        };
    }
    // The ends are in the order in which the accesses were made.
    let [recorded, swapped] = ends;
    let reader = usize::from(instance.first.write);
    let ends = [
        recorded.map(|ends| ends[reader]),
        swapped.map(|ends| ends[1 - reader]),
    ];
    let locks = |end: Option<SegmentEnd>| match end {
        Some(SegmentEnd::At { pc, .. }) => locking.contains(&pc),
        _ => false,
    };
    if compared.off_path && ends.into_iter().any(locks) {
        return Some(Habit::TakesALock);
    }
    None
}

/// What a reader sees in either order, and what it does then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// Bits that differ.
    pub(crate) bits: u64,
    /// How many of its instructions later it reads the same again: with the old value, with the new one.
    back: [Option<u64>; 2],
}

/// `None` for two writes, and where the reader does not come by in both orders. `recorded` has the stops of the whole execution, `turned` those
/// since the instance.
pub(crate) fn seen(
    instance: &Instance,
    recorded: &[WatchedStop],
    turned: &[WatchedStop],
) -> Option<Seen> {
    let reader = match (instance.first.write, instance.second.write) {
        (true, false) => &instance.second,
        (false, true) => &instance.first,
        _ => return None,
    };
    let since = recorded
        .iter()
        .filter(|stop| stop.retired >= instance.retired);
    let (recorded, recorded_back) = value_and_back(reader, since)?;
    let (turned, turned_back) = value_and_back(reader, turned.iter())?;
    let back = match instance.first.write {
        true => [turned_back, recorded_back],
        false => [recorded_back, turned_back],
    };
    Some(Seen {
        bits: recorded ^ turned,
        back,
    })
}

impl Seen {
    /// What that shows, where both orders leave the same state or not.
    pub(crate) fn habit(self, same: bool) -> Option<Habit> {
        match (self.waits(), same, self.bits) {
            (true, ..) => Some(Habit::Waits),
            (false, true, 0) => Some(Habit::WritesTheSame),
            // Who comes back may be waiting after all, in a way that is not understood.
            (false, true, _) if self.back == [None; 2] => Some(Habit::ReadsEither),
            _ => None,
        }
    }

    /// True if the reader waits for the write: with the old value it comes back sooner.
    ///
    /// It is the same read in both orders, so that what comes after it differs by what it saw and by nothing else: a loop that ends
    /// for another reason ends in both.
    fn waits(self) -> bool {
        match self.back {
            [Some(old), Some(new)] => new / 2 > old,
            [Some(_), None] => true,
            [None, _] => false,
        }
    }
}

/// What a thread reads first, and after how many of its instructions it reads there again.
fn value_and_back<'a>(
    reader: &RacingAccess,
    stops: impl Iterator<Item = &'a WatchedStop>,
) -> Option<(u64, Option<u64>)> {
    let reads = |stop: &&WatchedStop| {
        let there = stop.accesses.first().map(|access| access.0);
        (stop.thread, stop.pc, there) == (reader.thread, reader.pc, Some(reader.address))
    };
    let mut reads = stops.filter(reads);
    let first = reads.next()?;
    let next = reads.find(|stop| stop.begun != first.begun);
    let back = next.map(|next| next.begun.0 - first.begun.0);
    Some((first.value, back))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(at: &[u64]) -> Vec<WatchedStop> {
        let stop = |at: &u64| WatchedStop {
            pc: 0x20,
            thread: 2,
            instructions: *at,
            retired: *at,
            begun: (*at, *at),
            accesses: vec![(0x100, 4, false)],
            value: 0,
        };
        at.iter().map(stop).collect()
    }

    fn written(mut reads: Vec<WatchedStop>, value: u64) -> Vec<WatchedStop> {
        for read in &mut reads {
            read.value = value;
        }
        reads
    }

    fn instance(writer_first: bool) -> Instance {
        let access = |thread, pc, write| RacingAccess {
            thread,
            pc,
            address: 0x100,
            len: 4,
            write,
        };
        let (writer, reader) = (access(1, 0x10, true), access(2, 0x20, false));
        let (first, second) = match writer_first {
            true => (writer, reader),
            false => (reader, writer),
        };
        Instance {
            first,
            instructions: 10,
            retired: 10,
            second,
            calls: [false; 2],
            adjacent: true,
        }
    }

    fn waits(writer_first: bool, recorded: &[u64], turned: &[u64]) -> bool {
        let seen = seen(&instance(writer_first), &reads(recorded), &reads(turned));
        seen.unwrap().habit(false) == Some(Habit::Waits)
    }

    #[test]
    fn who_waits_reads_again_until_the_value_is_new() {
        // The write came first, and one read was enough; read first, it takes two.
        assert!(waits(true, &[3, 6, 12], &[12, 15]));
        // The read came first, and was repeated; after the write one is enough.
        assert!(waits(false, &[10, 13], &[10]));
        // It waits again, for something else, after its work.
        assert!(waits(false, &[10, 13, 90], &[10, 90]));
    }

    #[test]
    fn who_reads_now_and_then_does_not_wait() {
        // A loop that goes on as ever, or ends as ever.
        assert!(!waits(true, &[12, 20, 28], &[12, 20, 28]));
        assert!(!waits(true, &[4, 12], &[12]));
        // What is read again only with the new value waits for nothing.
        assert!(!waits(true, &[12, 14], &[12]));
    }

    #[test]
    fn a_reader_is_told_by_what_it_sees() {
        let both = |value: u64, turned: &[u64]| {
            let (old, new) = (reads(turned), written(reads(&[12]), value));
            seen(&instance(true), &new, &old).unwrap()
        };
        assert_eq!(both(0, &[12]).habit(true), Some(Habit::WritesTheSame));
        assert_eq!(both(5, &[12]).habit(true), Some(Habit::ReadsEither));
        assert_eq!(both(5, &[12]).bits, 5);
        assert_eq!(both(5, &[12]).habit(false), None, "another state");
        assert!(seen(&instance(true), &reads(&[12]), &[]).is_none());
    }

    #[test]
    fn two_writes_are_told_by_what_they_leave() {
        let mut both = instance(true);
        both.second.write = true;
        let compared = |addresses: &[u64]| Compared {
            outcome: match addresses {
                [] => ReplayOutcome::NoStateChange,
                _ => ReplayOutcome::StateChange,
            },
            words: addresses
                .iter()
                .map(|address| crate::WordDifference {
                    address: *address,
                    primary: Some(1),
                    alternate: Some(2),
                })
                .collect(),
            off_path: false,
        };
        let habit = |addresses: &[u64]| of_segments(&both, &compared(addresses), [None; 2], &[]);
        assert_eq!(habit(&[]), Some(Habit::WritesTheSame));
        assert_eq!(habit(&[0x100]), Some(Habit::ChangesItselfAlone));
        assert_eq!(habit(&[0x100, 0x200]), None);
    }
}
