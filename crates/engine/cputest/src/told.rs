//! What has passed the sieve, as bytes that were read and written.

use crate::machine::Machine;
use std::collections::{BTreeMap, BTreeSet};
use verdict_cache::LoggedBlock;
use verdict_translate::{AccessKind, Run, Segment, Site, SiteKind};

/// What records stand for.
#[derive(Default, Debug)]
pub(crate) struct Sites {
    sites: BTreeMap<u32, Site>,
    runs: BTreeMap<u32, Run>,
}

impl Sites {
    /// A block may tell from now on.
    pub(crate) fn add(&mut self, logged: LoggedBlock<'_>) {
        let (first, sites) = logged.sites;
        self.sites.extend((first..).zip(sites.iter().copied()));
        self.runs.extend(logged.run.map(|run| (first, run.clone())));
    }
}

/// Bytes that were told of, and whether as written.
#[derive(Default, Debug)]
pub(crate) struct Told {
    bytes: BTreeSet<(u64, bool)>,
    /// Not everything can be told: an access of a kind that programs seldom make.
    pub(crate) is_partial: bool,
}

impl Told {
    /// True if it was told that a byte was accessed so.
    pub(crate) fn has(&self, byte: u64, is_write: bool) -> bool {
        self.bytes.contains(&(byte, true)) || !is_write && self.bytes.contains(&(byte, false))
    }

    pub(crate) fn merge(&mut self, other: Told) {
        self.bytes.extend(other.bytes);
        self.is_partial |= other.is_partial;
    }

    fn add(&mut self, start: u64, size: u32, kind: AccessKind) {
        let bytes = (0..u64::from(size)).map(|at| start.wrapping_add(at));
        self.bytes
            .extend(bytes.map(|byte| (byte, kind != AccessKind::Read)));
    }

    /// A run, one execution of its block after the other.
    fn add_run(&mut self, run: &Run, record: &[u64]) {
        let executed = (record[0] >> 32) as usize;
        let (values, now) = (&record[1..=run.steps.len()], record[run.steps.len() + 1]);
        let moved = now.wrapping_sub(values[0]) as i64;
        let times = (moved - run.first[executed]) / run.steps[0];
        for time in 0..=times {
            let value = |at: u8| {
                let at = usize::from(at);
                values[at].wrapping_add((run.steps[at] * time) as u64)
            };
            for access in &run.accesses {
                if time == times && usize::from(access.instruction) >= executed {
                    break;
                }
                let base = access.base.map_or(0, value);
                let index = access
                    .index
                    .map_or(0, |(at, scale)| value(at).wrapping_mul(u64::from(scale)));
                let address = access.displacement.wrapping_add(base).wrapping_add(index);
                self.add(address, access.size, access.kind);
            }
        }
    }
}

/// Reads what was told, and empties it.
pub(crate) fn drain(machine: &mut Machine) -> Told {
    let mut told = Told {
        is_partial: machine.refused || machine.takes_gs,
        ..Told::default()
    };
    let start = machine.passed.as_ptr() as u64;
    let used = ((machine.context().passed_next - start) / 8) as usize;
    // SAFETY: in bounds; volatile because translated code, not Rust, wrote the words.
    let read = |at: usize| unsafe { std::ptr::read_volatile(&machine.passed[at]) };
    let words: Vec<u64> = (0..used).map(read).collect();
    let (fs_base, mut rest) = (machine.context().guest_fs, &words[..]);
    while let Some(header) = rest.first() {
        let number = *header as u32;
        let Some(site) = machine.sites.sites.get(&number) else {
            told.is_partial = true;
            break;
        };
        let run = machine.sites.runs.get(&number);
        let len = run.map_or(site.what.words(), Run::words);
        let record = &rest[..len];
        rest = &rest[len..];
        match (site.what, run) {
            (SiteKind::Run, Some(run)) => told.add_run(run, record),
            (
                SiteKind::Access {
                    size,
                    kind,
                    segment,
                    repeated,
                    far_bit,
                    ..
                },
                _,
            ) => {
                let base = if segment == Segment::Fs { fs_base } else { 0 };
                told.add(record[1].wrapping_add(base), size, kind);
                told.is_partial |= repeated || far_bit || size == 0;
            }
            _ => {}
        }
    }
    machine.context().passed_next = start;
    told
}
