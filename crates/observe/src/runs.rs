//! What a loop has accessed, from where it stood when it was entered and when it was left.

use verdict_translate::{AccessKind, Run, RunAccess};

/// A run, and its accesses put together that are side by side.
#[derive(Debug)]
pub(crate) struct KnownRun {
    steps: Vec<i64>,
    first: Vec<i64>,
    accesses: Vec<RunAccess>,
    groups: Vec<Group>,
}

/// Accesses of which each execution of the block does the next part of one range.
#[derive(Debug)]
struct Group {
    base: Option<u8>,
    index: Option<(u8, u8)>,
    is_write: bool,
    /// The lowest of their constants, and how many bytes they have from there on.
    displacement: u64,
    size: u64,
    /// Where their range moves each time.
    step: i64,
}

/// Bytes that were accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) is_write: bool,
}

impl KnownRun {
    pub(crate) fn new(run: &Run) -> Self {
        let mut accesses = run.accesses.clone();
        let key = |access: &RunAccess| {
            let is_write = access.kind != AccessKind::Read;
            let at = access.displacement as i64;
            (access.base, access.index, is_write, at)
        };
        accesses.sort_by_key(key);
        let mut groups: Vec<Group> = Vec::new();
        for access in &accesses {
            let is_write = access.kind != AccessKind::Read;
            let like = |group: &&mut Group| {
                (group.base, group.index, group.is_write) == (access.base, access.index, is_write)
                    && access.displacement.wrapping_sub(group.displacement) <= group.size
            };
            match groups.last_mut().filter(|group| like(group)) {
                Some(group) => {
                    let end = access.displacement.wrapping_sub(group.displacement);
                    group.size = group.size.max(end + u64::from(access.size));
                }
                None => groups.push(Group {
                    base: access.base,
                    index: access.index,
                    is_write,
                    displacement: access.displacement,
                    size: u64::from(access.size),
                    step: step_of(&run.steps, access.base, access.index),
                }),
            }
        }
        KnownRun {
            steps: run.steps.clone(),
            first: run.first.clone(),
            accesses: run.accesses.clone(),
            groups,
        }
    }

    /// Words of a record.
    pub(crate) fn words(&self) -> usize {
        2 + self.steps.len()
    }

    /// What was accessed: `values` on entry, then where the first of them stands after so many instructions of the last execution. `None` if
    /// that makes no sense.
    pub(crate) fn ran(&self, values: &[u64], executed: usize, parts: &mut Vec<Part>) -> Option<()> {
        let (now, values) = values.split_last()?;
        let moved = now.wrapping_sub(*values.first()?) as i64;
        let whole = moved.checked_sub(*self.first.get(executed)?)?;
        let step = *self.steps.first()?;
        let times = whole
            .checked_div(step)
            .filter(|times| *times >= 0 && times.checked_mul(step) == Some(whole))?
            as u64;
        for group in &self.groups {
            group.ran(values, times, parts);
        }
        // The last execution has got only so far.
        for access in &self.accesses {
            if usize::from(access.instruction) >= executed {
                break;
            }
            let from = start(values, access.base, access.index, access.displacement);
            let step = step_of(&self.steps, access.base, access.index);
            parts.push(Part {
                start: from.wrapping_add((step as u64).wrapping_mul(times)),
                size: u64::from(access.size),
                is_write: access.kind != AccessKind::Read,
            });
        }
        Some(())
    }
}

impl Group {
    /// So many executions, from these values on.
    fn ran(&self, values: &[u64], times: u64, parts: &mut Vec<Part>) {
        if times == 0 {
            return;
        }
        let first = start(values, self.base, self.index, self.displacement);
        let part = |start: u64, size: u64| Part {
            start,
            size,
            is_write: self.is_write,
        };
        let far = (times - 1).saturating_mul(self.step.unsigned_abs());
        match self.step {
            0 => parts.push(part(first, self.size)),
            // Each execution goes on where the last one ended, or before.
            step if step.unsigned_abs() <= self.size => {
                let lowest = if step > 0 {
                    first
                } else {
                    first.wrapping_sub(far)
                };
                parts.push(part(lowest, far.saturating_add(self.size)));
            }
            step => parts.extend((0..times).map(|time| {
                part(
                    first.wrapping_add((step as u64).wrapping_mul(time)),
                    self.size,
                )
            })),
        }
    }
}

fn start(values: &[u64], base: Option<u8>, index: Option<(u8, u8)>, displacement: u64) -> u64 {
    let value = |at: u8| values.get(usize::from(at)).copied().unwrap_or(0);
    let base = base.map_or(0, value);
    let index = index.map_or(0, |(at, scale)| value(at).wrapping_mul(u64::from(scale)));
    displacement.wrapping_add(base).wrapping_add(index)
}

fn step_of(steps: &[i64], base: Option<u8>, index: Option<(u8, u8)>) -> i64 {
    let step = |at: u8| steps.get(usize::from(at)).copied().unwrap_or(0);
    let base = base.map_or(0, step);
    let index = index.map_or(0, |(at, scale)| step(at).wrapping_mul(i64::from(scale)));
    base.wrapping_add(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every byte, one execution of the block after the other.
    fn naive(run: &Run, values: &[u64], times: u64, executed: usize) -> BTreeSet<(u64, bool)> {
        let mut bytes = BTreeSet::new();
        for time in 0..=times {
            let moved = |at: u8| {
                let at = usize::from(at);
                values[at].wrapping_add((run.steps[at] as u64).wrapping_mul(time))
            };
            for access in &run.accesses {
                if time == times && usize::from(access.instruction) >= executed {
                    continue;
                }
                let index = |(at, scale): (u8, u8)| moved(at).wrapping_mul(u64::from(scale));
                let address = access
                    .displacement
                    .wrapping_add(access.base.map_or(0, moved))
                    .wrapping_add(access.index.map_or(0, index));
                let is_write = access.kind != AccessKind::Read;
                bytes.extend((0..u64::from(access.size)).map(|at| (address + at, is_write)));
            }
        }
        bytes
    }

    #[test]
    fn a_run_accesses_what_its_rounds_access() {
        let mut state = 5u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..3000 {
            let steps: Vec<i64> = (0..1 + random(3))
                .map(|at| 4 * (random(9) as i64 - 4) + i64::from(at == 0) * 18)
                .collect();
            let instructions = 2 + random(6);
            let accesses = (0..1 + random(5)).map(|_| RunAccess {
                instruction: random(instructions) as u16,
                base: (random(6) > 0).then(|| random(steps.len() as u64) as u8),
                index: (random(4) == 0).then(|| (random(steps.len() as u64) as u8, 4)),
                displacement: (1 << 30) + 4 * random(12),
                size: 1 << random(4),
                kind: [AccessKind::Read, AccessKind::Write, AccessKind::ReadWrite]
                    [random(3) as usize],
            });
            let mut accesses: Vec<RunAccess> = accesses.collect();
            accesses.sort_by_key(|access| access.instruction);
            let first = (0..=instructions as i64).map(|at| steps[0] * at / instructions as i64);
            let run = Run {
                first: first.collect(),
                steps,
                accesses,
            };
            let values: Vec<u64> = run.steps.iter().map(|_| 4096 * random(64)).collect();
            let (times, executed) = (random(12), random(instructions + 1) as usize);
            let now = values[0]
                .wrapping_add((run.steps[0] as u64).wrapping_mul(times))
                .wrapping_add(run.first[executed] as u64);
            let mut parts = Vec::new();
            let told: Vec<u64> = values.iter().copied().chain([now]).collect();
            let known = KnownRun::new(&run);
            assert_eq!(known.ran(&told, executed, &mut parts), Some(()));
            let bytes = parts.iter().flat_map(|part| {
                let bytes = part.start..part.start + part.size;
                bytes.map(|byte| (byte, part.is_write))
            });
            let bytes: BTreeSet<(u64, bool)> = bytes.collect();
            assert_eq!(bytes, naive(&run, &values, times, executed), "{run:?}");
        }
    }

    #[test]
    fn neighbours_become_one_range() {
        let access = |instruction, displacement| RunAccess {
            instruction,
            base: Some(0),
            index: None,
            displacement,
            size: 4,
            kind: AccessKind::Read,
        };
        // Two rounds, the first of which is below where the register stands.
        let run = Run {
            steps: vec![8],
            first: vec![0, 0, 8],
            accesses: vec![access(0, 4u64.wrapping_neg()), access(1, 0)],
        };
        let mut parts = Vec::new();
        let known = KnownRun::new(&run);
        assert_eq!(known.ran(&[1000, 1000 + 8 * 500], 0, &mut parts), Some(()));
        let all = Part {
            start: 996,
            size: 8 * 500,
            is_write: false,
        };
        assert_eq!(parts, [all]);
    }

    #[test]
    fn what_cannot_have_happened_is_refused() {
        let run = Run {
            steps: vec![8],
            first: vec![0, 0, 8],
            accesses: Vec::new(),
        };
        let known = KnownRun::new(&run);
        for (values, executed) in [
            (&[1000, 1003][..], 0),
            (&[1000, 992], 0),
            (&[1000, 1008], 7),
            (&[1000], 0),
            (&[], 0),
        ] {
            assert_eq!(
                known.ran(values, executed, &mut Vec::new()),
                None,
                "{values:?}"
            );
        }
    }
}
