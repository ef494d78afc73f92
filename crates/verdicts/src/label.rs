//! The kind of a race that does no harm (Narayanasamy et al. 2007, section 5.4): a label where the instances show one, and none
//! where they do not.

use crate::instructions::{updates, used_bits};
use std::fs::File;
use std::os::unix::fs::FileExt;
use verdict_classify::{Class, Habit, ReplayOutcome, Verdict};
use verdict_findings as told;
use verdict_findings::{Access, AccessKind, Label, ProgramFindings, Race};

/// What the instances of a race show, if they show anything; `all` are the races of the program.
pub(crate) fn label(race: &Race, all: &[Race], verdict: &Verdict) -> Option<Label> {
    let same = verdict.replay == Some(ReplayOutcome::NoStateChange);
    let one_waits = verdict.threads.iter().any(|thread| thread.owner.is_some());
    match (verdict.class?, verdict.habit) {
        (Class::KWitnessHarmless, Some(habit)) => match habit {
            Habit::WritesTheSame => same.then_some(Label::RedundantWrite),
            Habit::ReadsEither if masked_out(race, verdict.bits) => Some(Label::DisjointBits),
            Habit::ReadsEither => same.then_some(Label::BothValuesValid),
            Habit::ChangesItselfAlone => counts(race, all).then_some(Label::Approximate),
            Habit::TakesALock => locked_write(race).then_some(Label::DoubleCheck),
            Habit::Waits => Some(Label::UserConstructedSynchronisation),
        },
        // Nobody holds what is waited for: it is waited for in a loop.
        (Class::SingleOrdering, _) if !verdict.looping.is_empty() => {
            Some(Label::UserConstructedSynchronisation)
        }
        // The reader does not hold the lock, and waits for it all the same, before it reads.
        (Class::SingleOrdering, _) if one_waits => locked_write(race).then_some(Label::DoubleCheck),
        _ => None,
    }
}

/// Gives all harmless races of the same lines the label that says most: compilers make several instructions of a line, and what a
/// loop waits for is read before the loop, too.
pub(crate) fn same_for_same_lines(findings: &mut ProgramFindings) {
    let known: Vec<_> = findings
        .races
        .iter()
        .filter_map(|race| Some((lines(race)?, race.verdict.as_ref()?.label?)))
        .collect();
    for race in &mut findings.races {
        let Some(own) = lines(race) else { continue };
        let of_lines = known.iter().filter(|(lines, _)| *lines == own);
        let most = of_lines
            .map(|(_, label)| *label)
            .max_by_key(|label| says(*label));
        if let Some(verdict) = &mut race.verdict
            && verdict.class == Some(told::Class::KWitnessHarmless)
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
