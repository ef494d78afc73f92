//! Is a thread in a loop that it cannot leave by itself? (Kasikci et al. 2015, section 4.2: an infinite loop is told apart from
//! waiting by whether anything live can change the exit condition.)
//!
//! In: the last steps of a thread, one per instruction. The last two rounds of the loop are compared: everything that
//! decides where the loop goes on is followed backwards, through registers and memory, over the loop's end to its beginning,
//! until nothing new is found. If all of that has the same values in both rounds, the next round will be like them, and so
//! for ever, unless somebody else changes what the loop reads: that is told.
//!
//! No false alarms: it is a proof, as long as steps are told faithfully. Misses: loops of more than half the steps, loops with
//! system calls other than those that offer the processor, conditions that go through vector registers between rounds.

use std::collections::BTreeSet;

/// Something that holds a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Holder {
    /// A general register, by its number.
    Register(u8),
    /// The flags.
    Flags,
    /// Any other register, by a number: its value is not known.
    Other(u16),
    /// A byte of memory.
    Byte(u64),
}

/// One instruction that was executed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Where.
    pub pc: u64,
    /// What it reads decides which instruction comes next.
    pub decides: bool,
    /// What it does cannot be told: input, a system call, the time.
    pub opaque: bool,
    /// What it reads.
    pub reads: Vec<Holder>,
    /// What it writes for sure.
    pub writes: Vec<Holder>,
    /// What it may write or not.
    pub may_write: Vec<Holder>,
    /// General registers before it.
    pub registers: [u64; 16],
    /// Flags before it.
    pub flags: u64,
    /// The bytes of memory that it reads, in the order of `reads`.
    pub bytes: Vec<u8>,
}

/// A loop without an end of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// Instructions of a round.
    pub length: usize,
    /// The bytes that decide, and that the loop does not write.
    pub depends_on: BTreeSet<u64>,
    /// The bytes that the loop writes.
    pub writes: BTreeSet<u64>,
}

/// Rounds of different lengths that are tried.
const LENGTHS_MAX: usize = 64;
/// Passes over a round; every pass finds at least one holder more.
const PASSES_MAX: usize = 64;

/// The loop that the last of these steps are in, if it has no end of its own.
#[must_use]
pub fn stuck(steps: &[Step]) -> Option<Stuck> {
    let last = steps.len().checked_sub(1)?;
    (1..=steps.len() / 2)
        .filter(|length| steps[last - length].pc == steps[last].pc)
        .take(LENGTHS_MAX)
        .find_map(|length| {
            let (before, now) = steps[steps.len() - 2 * length..].split_at(length);
            repeats(before, now)
        })
}

/// The loop, if two rounds of it are the same in everything that decides.
fn repeats(before: &[Step], now: &[Step]) -> Option<Stuck> {
    let same_path = before.iter().zip(now).all(|(a, b)| a.pc == b.pc);
    if !same_path || now.iter().any(|step| step.opaque) {
        return None;
    }
    let (deciding, carried) = slice(now)?;
    let same_inputs = deciding.iter().all(|index| {
        let (a, b) = (&before[*index], &now[*index]);
        a.reads == b.reads && a.bytes == b.bytes
    });
    let same_start = carried.iter().all(|holder| match holder {
        Holder::Register(number) => {
            let value = |round: &[Step]| round[0].registers.get(usize::from(*number)).copied();
            value(before) == value(now)
        }
        Holder::Flags => before[0].flags == now[0].flags,
        Holder::Other(_) => false,
        Holder::Byte(_) => true,
    });
    if !same_inputs || !same_start {
        return None;
    }
    let bytes = |holder: &Holder| match holder {
        Holder::Byte(address) => Some(*address),
        _ => None,
    };
    let writes: BTreeSet<u64> = now
        .iter()
        .flat_map(|step| step.writes.iter().chain(&step.may_write))
        .filter_map(bytes)
        .collect();
    let depends_on = carried
        .iter()
        .filter_map(bytes)
        .filter(|address| !writes.contains(address))
        .collect();
    Some(Stuck {
        length: now.len(),
        depends_on,
        writes,
    })
}

/// The steps that have a say in where the loop goes on, and what they take over from the round before.
fn slice(round: &[Step]) -> Option<(BTreeSet<usize>, BTreeSet<Holder>)> {
    let mut at_end: BTreeSet<Holder> = BTreeSet::new();
    for _ in 0..PASSES_MAX {
        let mut live = at_end.clone();
        let mut deciding = BTreeSet::new();
        for (index, step) in round.iter().enumerate().rev() {
            let written = step.writes.iter().chain(&step.may_write);
            let matters = step.decides || written.into_iter().any(|holder| live.contains(holder));
            if matters {
                deciding.insert(index);
                for holder in &step.writes {
                    live.remove(holder);
                }
                live.extend(&step.reads);
            }
        }
        if live.is_subset(&at_end) {
            return Some((deciding, at_end));
        }
        at_end.extend(live);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cmp byte [flag], 0; je` and something that counts in between.
    fn spin(rounds: u64, flag: impl Fn(u64) -> u8, bound_counts: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for round in 0..rounds {
            let mut registers = [0; 16];
            registers[3] = round;
            let counted = Holder::Register(3);
            steps.push(Step {
                pc: 0x10,
                reads: vec![counted],
                writes: vec![counted],
                registers,
                ..Step::default()
            });
            let mut reads = vec![Holder::Byte(0x100)];
            if bound_counts {
                reads.push(counted);
            }
            steps.push(Step {
                pc: 0x14,
                reads,
                writes: vec![Holder::Flags],
                registers,
                bytes: vec![flag(round)],
                ..Step::default()
            });
            steps.push(Step {
                pc: 0x18,
                decides: true,
                reads: vec![Holder::Flags],
                registers,
                ..Step::default()
            });
        }
        steps
    }

    #[test]
    fn a_loop_that_waits_for_a_byte_is_stuck_although_it_counts() {
        let found = stuck(&spin(5, |_| 0, false)).expect("nothing that decides changes");
        assert_eq!(found.length, 3);
        assert_eq!(found.depends_on, BTreeSet::from([0x100]));
    }

    #[test]
    fn a_loop_whose_condition_counts_is_not() {
        assert_eq!(stuck(&spin(5, |_| 0, true)), None);
    }

    #[test]
    fn a_loop_that_reads_something_new_is_not() {
        assert_eq!(stuck(&spin(5, |round| round as u8, false)), None);
    }

    #[test]
    fn what_cannot_be_told_proves_nothing() {
        let mut steps = spin(5, |_| 0, false);
        for step in &mut steps {
            step.opaque = step.pc == 0x10;
        }
        assert_eq!(stuck(&steps), None);
        assert_eq!(stuck(&[]), None);
    }
}
