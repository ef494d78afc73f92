//! The kind of a race that does no harm (Narayanasamy et al. 2007, section 5.4): a label where the instances show one, and none
//! where they do not.

use crate::instructions::{updates, used_bits};
use std::fs::File;
use std::os::unix::fs::FileExt;
use verdict_classify::{Class, Habit, ReplayOutcome, Verdict};
use verdict_findings as told;
use verdict_findings::{Access, AccessKind, Label, Race};
use verdict_protocol::WaitingThread;

/// What the instances of a race show, if they show anything; `all` are the races of the program.
pub(crate) fn label(race: &Race, all: &[Race], verdict: &Verdict) -> Option<Label> {
    let same = verdict.replay == Some(ReplayOutcome::NoStateChange);
    match (verdict.class?, verdict.habit) {
        (Class::KWitnessHarmless, Some(habit)) => match habit {
            Habit::ChangesItselfAlone => counts(race, all).then_some(Label::Approximate),
            // Whoever only waits, checks or does not care leaves the same state.
            _ if !same => None,
            Habit::WritesTheSame => Some(Label::RedundantWrite),
            Habit::ReadsEither if masked_out(race, verdict.bits) => Some(Label::DisjointBits),
            Habit::ReadsEither => Some(Label::BothValuesValid),
            Habit::TakesALock => locked_write(race).then_some(Label::DoubleCheck),
            Habit::Waits => Some(Label::UserConstructedSynchronisation),
        },
        // Nobody holds what is waited for: it is waited for in a loop.
        (Class::SingleOrdering, _) if !verdict.looping.is_empty() => {
            Some(Label::UserConstructedSynchronisation)
        }
        // The reader does not hold the lock, and waits for it all the same, before it reads.
        (Class::SingleOrdering, _) if reader_waits(verdict) => {
            locked_write(race).then_some(Label::DoubleCheck)
        }
        _ => None,
    }
}

/// Where a race shows nothing, or only that both values are valid, another race of the same lines may show more: compilers make
/// several instructions of a line, and what a loop waits for is read before the loop, too.
pub(crate) fn same_for_same_lines(races: &mut [Race]) {
    let known: Vec<_> = races
        .iter()
        .filter_map(|race| Some((lines(race)?, race.verdict.as_ref()?.label?)))
        .collect();
    for race in races {
        let Some(own) = lines(race) else { continue };
        let of_lines = known.iter().filter(|(lines, _)| *lines == own);
        let most = of_lines
            .map(|(_, label)| *label)
            .max_by_key(|label| says(*label));
        if let Some(verdict) = &mut race.verdict
            && verdict.class == Some(told::Class::KWitnessHarmless)
            && matches!(verdict.label, None | Some(Label::BothValuesValid))
        {
            verdict.label = most;
        }
    }
}

/// How much a label says.
fn says(label: Label) -> u32 {
    match label {
        Label::RedundantWrite => 0,
        Label::BothValuesValid => 1,
        Label::DisjointBits => 2,
        Label::Approximate => 3,
        Label::DoubleCheck => 4,
        Label::UserConstructedSynchronisation => 5,
    }
}

type Line = (String, u32);

/// The lines of the two accesses, in no particular order, and the variable.
fn lines(race: &Race) -> Option<([Line; 2], Option<String>)> {
    let line = |access: &Access| Some((access.file.clone()?, access.line?));
    let mut both = [line(&race.accesses[0])?, line(&race.accesses[1])?];
    both.sort();
    Some((both, race.variable.name.clone()))
}

fn one(race: &Race, kind: AccessKind) -> Option<&Access> {
    race.accesses.iter().find(|access| access.access == kind)
}

/// True if the thread that should have read first waits for a lock that the other one has.
fn reader_waits(verdict: &Verdict) -> bool {
    let Some(shown) = &verdict.shown else {
        return false;
    };
    let (first, second) = (&shown.instance.first, &shown.instance.second);
    let (reader, writer) = match first.write {
        true => (second.thread, first.thread),
        false => (first.thread, second.thread),
    };
    let waits = |thread: &WaitingThread| (thread.thread, thread.owner) == (reader, Some(writer));
    verdict.threads.iter().any(waits)
}

/// True if the write is made under a lock and the read is not.
fn locked_write(race: &Race) -> bool {
    let (Some(read), Some(write)) = (one(race, AccessKind::Read), one(race, AccessKind::Write))
    else {
        return false;
    };
    let shared = |lock: &told::Lock| read.locks.iter().any(|other| other.address == lock.address);
    !write.locks.is_empty() && !write.locks.iter().any(shared)
}

/// True if the reader has no use for any of the bits.
fn masked_out(race: &Race, bits: u64) -> bool {
    let read = one(race, AccessKind::Read);
    let used = read.and_then(|read| used_bits(&code(read)));
    used.is_some_and(|used| used & bits == 0)
}

/// True if both accesses add to what is there, in one instruction or in several.
fn counts(race: &Race, all: &[Race]) -> bool {
    let at = |access: &Access| (access.file.clone(), access.line);
    let read_there = |write: &Access| {
        let reads = |other: &Race| {
            let read = other.accesses.iter().find(|access| {
                access.access == AccessKind::Read
                    && access.line.is_some()
                    && at(access) == at(write)
            });
            read.is_some() && other.variable.name == race.variable.name
        };
        all.iter().any(reads)
    };
    let update = |access: &Access| updates(&code(access)) || read_there(access);
    race.accesses.iter().all(update)
}

/// Bytes of code that are looked at.
const CODE: usize = 64;

/// The code of an access, as its file has it; empty where there is none.
fn code(access: &Access) -> Vec<u8> {
    let mut bytes = vec![0; CODE];
    let read = File::open(&access.module).and_then(|file| file.read_at(&mut bytes, access.offset));
    bytes.truncate(read.unwrap_or(0));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::{Conflict, Variable};

    fn race(id: &str, lines: [u32; 2], kinds: [AccessKind; 2]) -> Race {
        let access = |nth: usize| Access {
            access: kinds[nth],
            file: Some("a.c".to_owned()),
            line: Some(lines[nth]),
            ..Access::default()
        };
        Race {
            id: id.to_owned(),
            accesses: [access(0), access(1)],
            conflict: Conflict::Flow,
            variable: Variable {
                name: Some("x".to_owned()),
                ..Variable::default()
            },
            address: 0,
            instances: 1,
            found_by: Vec::new(),
            why_not_ordered: None,
            cluster: None,
            suppressed: None,
            verdict: None,
        }
    }

    fn judged(mut race: Race, class: told::Class, label: Option<Label>) -> Race {
        race.verdict = Some(told::Verdict {
            class: Some(class),
            label,
            ..told::Verdict::default()
        });
        race
    }

    #[test]
    fn a_write_under_a_lock_and_a_read_without_are_a_double_check() {
        use AccessKind::{Read, Write};
        let lock = |address| told::Lock {
            address: Some(address),
            ..told::Lock::default()
        };
        let mut checked = race("a", [1, 2], [Write, Read]);
        assert!(!locked_write(&checked), "no lock at all");
        checked.accesses[0].locks = vec![lock(1)];
        assert!(locked_write(&checked));
        checked.accesses[1].locks = vec![lock(2)];
        assert!(locked_write(&checked), "another lock");
        checked.accesses[1].locks.push(lock(1));
        assert!(!locked_write(&checked), "the same lock");
        assert!(!locked_write(&race("b", [1, 2], [Write, Write])));
    }

    #[test]
    fn a_line_that_also_reads_counts() {
        use AccessKind::{Read, Write};
        let writes = race("a", [1, 2], [Write, Write]);
        let first = race("b", [1, 2], [Read, Write]);
        let second = race("c", [1, 2], [Write, Read]);
        assert!(!counts(&writes, &[writes.clone(), first.clone()]));
        assert!(counts(&writes, &[writes.clone(), first, second]));
    }

    #[test]
    fn races_of_the_same_lines_are_of_the_same_kind() {
        use AccessKind::{Read, Write};
        use told::Class::{KWitnessHarmless, OutputDiffers};
        let waits = Some(Label::UserConstructedSynchronisation);
        let either = Some(Label::BothValuesValid);
        let same = Some(Label::RedundantWrite);
        let of_lines = |lines, class, label| judged(race("r", lines, [Read, Write]), class, label);
        let mut races = [
            of_lines([1, 2], KWitnessHarmless, either),
            of_lines([2, 1], KWitnessHarmless, waits),
            of_lines([1, 2], KWitnessHarmless, None),
            of_lines([1, 2], KWitnessHarmless, same),
            of_lines([1, 2], OutputDiffers, None),
            of_lines([1, 3], KWitnessHarmless, either),
        ];
        same_for_same_lines(&mut races);
        let labels = races.iter();
        let labels: Vec<_> = labels
            .map(|race| race.verdict.as_ref().unwrap().label)
            .collect();
        assert_eq!(labels, [waits, waits, waits, same, None, either]);
    }
}
