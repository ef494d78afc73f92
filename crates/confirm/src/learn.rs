//! Where the two sites of a hand-written pair meet: nobody has seen them race, so one run of the program is watched.

use crate::{Candidate, ConfirmError};
use std::collections::BTreeSet;
use verdict_explore::Aim;
use verdict_launch::{Copied, Explorer, Request};
use verdict_protocol::{Bytes, RunSchedule, WatchedStop};

/// More are merged away or left out: they only narrow the search.
const BYTES_MAX: usize = 256;
/// Accesses that are looked at.
const STOPS_MAX: usize = 200_000;

/// What one side accessed: bytes, and whether they were written.
type Seen = BTreeSet<(u64, u64, bool)>;

/// Narrows a candidate of which nothing is known but its lines to the bytes that both sides access, and to the
/// instructions that access them. Where the run does not show any, everything stays in question.
pub(crate) fn narrow(
    explorer: &mut Explorer,
    candidate: &mut Candidate,
    freeing: &[u64],
    instructions_max: u64,
) -> Result<(), ConfirmError> {
    if !candidate.bytes.is_empty() || candidate.aim != Aim::Race {
        return Ok(());
    }
    let request = Request {
        watched: candidate.watched(),
        calls: candidate.calls(),
        freeing: freeing.to_vec(),
        instructions_max: Some(instructions_max),
        stops_max: STOPS_MAX,
        ..Request::new(RunSchedule::Same)
    };
    let mut stops = Vec::new();
    let mut found = |_, copied| {
        if let Copied::Explored(exploration) = copied {
            stops = exploration.stops;
        }
    };
    explorer.run_all(&mut std::iter::once(request), 1, None, &mut found)?;
    let met = common(
        &seen(&stops, &candidate.first),
        &seen(&stops, &candidate.second),
    );
    if !met.is_empty() {
        let touches = |pc: &u64| touches(&stops, *pc, &met);
        candidate.first.retain(touches);
        candidate.second.retain(touches);
        candidate.bytes = met;
    }
    Ok(())
}

fn seen(stops: &[WatchedStop], pcs: &BTreeSet<u64>) -> Seen {
    stops
        .iter()
        .filter(|stop| pcs.contains(&stop.pc))
        .flat_map(|stop| stop.accesses.iter().copied())
        .collect()
}

/// An instruction that was seen only with other bytes is not one of the race's; one that was not seen may be.
fn touches(stops: &[WatchedStop], pc: u64, bytes: &[Bytes]) -> bool {
    let mut own = stops.iter().filter(|stop| stop.pc == pc).peekable();
    let hits = |(address, len, _): &(u64, u64, bool)| {
        let inside = |bytes: &Bytes| {
            *address < bytes.address + bytes.len && bytes.address < address.saturating_add(*len)
        };
        bytes.iter().any(inside)
    };
    own.peek().is_none() || own.any(|stop| stop.accesses.iter().any(hits))
}

/// Bytes that both sides access, one of them writing, ascending.
fn common(first: &Seen, second: &Seen) -> Vec<Bytes> {
    let mut found: BTreeSet<(u64, u64)> = BTreeSet::new();
    for (address, len, write) in first {
        let end = address.saturating_add(*len);
        for (other, other_len, other_write) in second.range(..(end, 0, false)) {
            let other_end = other.saturating_add(*other_len);
            if (*write || *other_write) && *address < other_end {
                let start = *address.max(other);
                found.insert((start, end.min(other_end) - start));
            }
        }
        if found.len() > BYTES_MAX {
            break;
        }
    }
    found
        .into_iter()
        .take(BYTES_MAX)
        .map(|(address, len)| Bytes { address, len })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(pc: u64, address: u64, len: u64, write: bool) -> WatchedStop {
        WatchedStop {
            pc,
            thread: 0,
            instructions: 0,
            retired: 0,
            begun: (0, 0),
            accesses: vec![(address, len, write)],
            value: 0,
        }
    }

    #[test]
    fn the_sites_meet_where_both_go_and_one_writes() {
        let stops = [
            stop(1, 100, 8, false),
            stop(1, 200, 4, false),
            stop(2, 104, 8, true),
            stop(2, 200, 4, false),
        ];
        let met = common(
            &seen(&stops, &BTreeSet::from([1])),
            &seen(&stops, &BTreeSet::from([2])),
        );
        assert_eq!(
            met,
            [Bytes {
                address: 104,
                len: 4
            }]
        );
    }

    #[test]
    fn an_instruction_that_was_seen_elsewhere_only_is_left_out() {
        let stops = [stop(1, 100, 8, true), stop(2, 300, 8, true)];
        let met = [Bytes {
            address: 104,
            len: 1,
        }];
        assert!(touches(&stops, 1, &met));
        assert!(!touches(&stops, 2, &met));
        assert!(touches(&stops, 3, &met), "it was never seen");
    }
}
