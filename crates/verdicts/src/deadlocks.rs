//! Cycles of locks: steered to, and told with names and lines.

use crate::Modules;
use crate::confirmed::Confirming;
use crate::names::Names;
use std::collections::BTreeSet;
use std::path::PathBuf;
use verdict_confirm::{Aim, Candidate, ConfirmError, Confirmation, EndedKind};
use verdict_findings::{Frame, LockCycle, LockStep, StuckThread};
use verdict_protocol::{Deadlock, MappedModule, WaitingThread};

/// A cycle of locks that was seen in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenCycle {
    /// Each takes what the next one holds.
    pub steps: Vec<SeenStep>,
}

/// A thread that held one lock and took another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenStep {
    /// Which thread.
    pub thread: u32,
    /// The lock that it held, and where it had taken it: a binary and an offset in it.
    pub holds: (u64, PathBuf, u64),
    /// The lock that it took, and where.
    pub wants: (u64, PathBuf, u64),
}

/// Steers runs to each cycle.
pub fn confirm_cycles(
    cycles: &[SeenCycle],
    confirming: &mut Confirming<'_>,
) -> Result<Vec<LockCycle>, ConfirmError> {
    let places = confirming.places()?;
    let (cycles, candidates): (Vec<&SeenCycle>, Vec<Candidate>) = cycles
        .iter()
        .filter_map(|cycle| Some((cycle, candidate(cycle, &places)?)))
        .unzip();
    let confirmations = confirming.runs(&candidates, &places, BTreeSet::new())?;
    let mut symbols = Names::default();
    let told = cycles.into_iter().zip(&confirmations);
    Ok(told
        .map(|(cycle, confirmation)| tell(cycle, confirmation, &places, &mut symbols))
        .collect())
}

fn candidate(cycle: &SeenCycle, places: &Modules) -> Option<Candidate> {
    let mut sites = cycle.steps.iter().map(|step| {
        let (_, module, offset) = &step.wants;
        places
            .loaded(module, *offset)
            .map(|pc| BTreeSet::from([pc]))
    });
    let name: Vec<String> = cycle
        .steps
        .iter()
        .map(|step| format!("{:x}", step.wants.0))
        .collect();
    Some(Candidate {
        name: format!("locks-{}", name.join("-")),
        first: sites.next()??,
        second: sites.next()??,
        aim: Aim::Deadlock,
        further: sites.collect::<Option<_>>()?,
        bytes: Vec::new(),
        plain: false,
    })
}

fn tell(
    cycle: &SeenCycle,
    confirmation: &Confirmation,
    places: &Modules,
    symbols: &mut Names,
) -> LockCycle {
    let mut step = |step: &SeenStep| LockStep {
        thread: step.thread,
        holds: lock(symbols, places.mapped(), step.holds.0),
        held_since: symbols.frame(&step.holds.1, step.holds.2),
        wants: lock(symbols, places.mapped(), step.wants.0),
        at: symbols.frame(&step.wants.1, step.wants.2),
    };
    let steps = cycle.steps.iter().map(&mut step).collect();
    let errors = &confirmation.errors;
    let deadlock = errors
        .iter()
        .find(|error| error.ended.kind == EndedKind::Deadlock);
    LockCycle {
        steps,
        confirmed: deadlock.is_some(),
        runs: u64::from(confirmation.runs),
        hits: u64::from(confirmation.hits),
        deadlocks: deadlock.map_or(0, |error| u64::from(error.runs)),
        seed: deadlock.map(|error| error.seed),
        stuck: deadlock
            .and_then(|error| error.deadlock.as_deref())
            .map(|deadlock| stuck(deadlock, symbols))
            .unwrap_or_default(),
        evidence: deadlock
            .and_then(|error| error.recording.as_ref())
            .map(|path| path.display().to_string()),
    }
}

/// A lock's name, without what the C library has inside of it.
fn lock(symbols: &mut Names, modules: &[MappedModule], address: u64) -> String {
    let name = symbols.variable(modules, address);
    match name.split_once(".__data") {
        Some((lock, _)) => lock.to_owned(),
        None => name,
    }
}

/// The threads that wait for each other; where no such cycle can be seen, all that wait.
pub(crate) fn stuck(deadlock: &Deadlock, symbols: &mut Names) -> Vec<StuckThread> {
    let cycle = cycle(&deadlock.threads);
    let shown = if cycle.is_empty() {
        deadlock.threads.iter().collect()
    } else {
        cycle
    };
    let mut tell = |thread: &WaitingThread| StuckThread {
        thread: thread.thread,
        waits_for: match thread.futex.filter(|_| thread.owner.is_some()) {
            Some(address) => lock(symbols, &thread.place.modules, address),
            None => thread.waits_for.clone(),
        },
        owner: thread.owner,
        stack: symbols.stack(&thread.place),
    };
    shown.into_iter().map(&mut tell).collect()
}

/// Follows who waits for whom until somebody comes again.
fn cycle(threads: &[WaitingThread]) -> Vec<&WaitingThread> {
    let find = |number: u32| threads.iter().find(|thread| thread.thread == number);
    for start in threads {
        let mut path = vec![start];
        let mut at = start;
        while let Some(next) = at.owner.and_then(find) {
            if next.thread == start.thread {
                return path;
            }
            if path.iter().any(|seen| seen.thread == next.thread) {
                break;
            }
            path.push(next);
            at = next;
        }
    }
    Vec::new()
}

/// The cycle in a sentence.
pub(crate) fn sentence(stuck: &[StuckThread]) -> String {
    let part = |thread: &StuckThread| {
        let at = Names::own_frame(&thread.stack)
            .map(place)
            .unwrap_or_default();
        match thread.owner {
            Some(owner) => format!(
                "thread {}{at} waits for {}, which thread {owner} has",
                thread.thread, thread.waits_for
            ),
            None => format!(
                "thread {}{at} waits for {}",
                thread.thread, thread.waits_for
            ),
        }
    };
    let parts: Vec<String> = stuck.iter().map(part).collect();
    parts.join("; ")
}

fn place(frame: &Frame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!(" at {name}:{line}")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_protocol::CallStack;

    fn waiting(thread: u32, owner: Option<u32>) -> WaitingThread {
        WaitingThread {
            thread,
            instructions: 0,
            waits_for: "a wake-up".into(),
            futex: Some(0x100),
            owner,
            place: CallStack::default(),
        }
    }

    #[test]
    fn a_cycle_is_found_behind_who_only_waits_for_it() {
        let threads = [
            waiting(0, Some(1)),
            waiting(1, Some(2)),
            waiting(2, Some(1)),
            waiting(3, None),
        ];
        let found: Vec<u32> = cycle(&threads).iter().map(|thread| thread.thread).collect();
        assert_eq!(found, [1, 2]);
        assert!(cycle(&threads[..2]).is_empty());
    }
}
