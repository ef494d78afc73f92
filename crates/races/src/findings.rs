//! What was found as the document that every report is made from.

use std::path::PathBuf;

use verdict_detect::{AccessKind, Algorithm, Race, Side};
use verdict_events::EventKind;
use verdict_explain::{
    Code, CodePlace, HeapBlock, RawAccess, RawLock, RawMemory, RawRace, RawRun, RawThread, explain,
};
use verdict_findings::{AccessKind as Kind, CoverageNote, LockMode, Program, ProgramFindings};
use verdict_launch::Ending;
use verdict_observe::{Closeup, HeldLock, Memory, Place, SiteInfo, ThreadOrigin};
use verdict_protocol::{ExecutorConfig, Outcome, ReplayStop};
use verdict_symbolize::MappedModule;

use crate::{CloserLook, Detected};

/// The races of all detectors, each once, with all that a closer look has shown.
#[must_use]
pub fn to_findings(
    detected: &Detected,
    look: &CloserLook,
    config: &ExecutorConfig,
) -> ProgramFindings {
    let mut code = Code::default();
    let mut run = RawRun {
        program: program(&detected.ending, config),
        threads: threads(look, &mut code),
        races: races(detected, look),
        ..RawRun::default()
    };
    let mapped: Vec<MappedModule<'_>> = look
        .origins
        .modules
        .iter()
        .map(|(start, path, file_offset)| MappedModule {
            start: *start,
            // Where it ends does not matter for where the module is.
            end: *start,
            file_offset: *file_offset,
            path,
        })
        .collect();
    run.modules = code.symbolizer().loaded(&mapped);
    // The program is mapped before the libraries it asks for.
    run.executable = look
        .origins
        .modules
        .first()
        .map_or_else(PathBuf::new, |(_, path, _)| path.clone());
    let mut findings = explain(&run, &mut code);
    findings.coverage.extend(cut_off(&detected.ending));
    findings
        .coverage
        .extend(not_looked_at(detected.seen.processes));
    findings
}

/// That there was more of the program than the recording has, where that is so.
fn cut_off(ending: &Ending) -> Option<CoverageNote> {
    let Ending::Reported(report) = ending else {
        return None;
    };
    let Outcome::ReplayStopped {
        why: ReplayStop::RecordingEnds,
        instructions,
    } = &report.outcome
    else {
        return None;
    };
    Some(CoverageNote {
        stage: "detect".to_owned(),
        what: format!(
            "the recording ends after {instructions} instructions: what the program did later is not known"
        ),
        help: Some("`verdict record info` says why it ends there".to_owned()),
    })
}

/// That the program has started others.
fn not_looked_at(processes: u64) -> Option<CoverageNote> {
    let which = match processes {
        0 => return None,
        1 => "1 process that the program started was".to_owned(),
        _ => format!("{processes} processes that the program started were"),
    };
    Some(CoverageNote {
        stage: "detect".to_owned(),
        what: format!("{which} not looked at"),
        help: Some("give `verdict` the program that runs there".to_owned()),
    })
}

fn program(ending: &Ending, config: &ExecutorConfig) -> Program {
    let text = |bytes: &Vec<u8>| verdict_findings::text_of_bytes(bytes);
    let (exit, signal) = match ending {
        Ending::Reported(report) => match &report.outcome {
            Outcome::Exited { code } => (Some(i32::from(*code)), None),
            Outcome::Signalled { signal, .. } => (Some(128 + signal), Some(*signal)),
            _ => (None, None),
        },
        _ => (None, None),
    };
    Program {
        path: text(&config.program),
        args: config.argv.iter().skip(1).map(text).collect(),
        exit,
        signal,
        ..Program::default()
    }
}

/// The first thread, then the others.
fn threads(look: &CloserLook, code: &mut Code) -> Vec<RawThread> {
    let first = RawThread {
        id: 0,
        name: Some("main".to_owned()),
        ..RawThread::default()
    };
    let others = look.origins.threads.iter();
    let others = others.map(|(&id, origin)| thread(id, origin, code));
    std::iter::once(first).chain(others).collect()
}

fn thread(id: u32, origin: &ThreadOrigin, code: &mut Code) -> RawThread {
    let function = origin.function.as_ref().and_then(|function| {
        let module = function.module.as_ref()?;
        let location = code.symbolizer().at_file_offset(module, function.offset);
        Some(location.function()?.name.clone())
    });
    RawThread {
        id,
        name: function.filter(|function| !is_trampoline(function)),
        parent: origin.parent.map(|parent| parent.0),
        created_at: origin.created_at.iter().map(place).collect(),
    }
}

/// Functions of libraries through which every thread of a language begins.
fn is_trampoline(function: &str) -> bool {
    [
        "execute_native_thread_routine",
        "thread_start",
        "gomp_thread_start",
    ]
    .iter()
    .any(|name| function.contains(name))
}

fn races(detected: &Detected, look: &CloserLook) -> Vec<RawRace> {
    let mut all: Vec<(Race, RawRace)> = Vec::new();
    for findings in &detected.findings {
        for race in &findings.races {
            let detector = findings.algorithm.name().to_owned();
            let same = |known: &&mut (Race, RawRace)| sites(&known.0) == sites(race);
            match all.iter_mut().find(same) {
                // Of other threads, perhaps.
                Some((_, known)) if known.found_by.contains(&detector) => {}
                Some((_, known)) => known.found_by.push(detector),
                None => {
                    let mut raw = raw(race, detector, detected, look);
                    // What is only predicted did not happen in this run.
                    if findings.algorithm == Algorithm::Hybrid {
                        raw.instances = 0;
                    }
                    all.push((race.clone(), raw));
                }
            }
        }
    }
    all.into_iter().map(|(_, raw)| raw).collect()
}

/// What makes two races of different detectors the same: what each side does and where.
fn sites(race: &Race) -> [(u32, bool); 2] {
    let mut sites = race
        .accesses
        .map(|side| (side.site.0, kind(side.kind) == Kind::Write));
    sites.sort_unstable();
    sites
}

fn raw(race: &Race, detector: String, detected: &Detected, look: &CloserLook) -> RawRace {
    let closeups = race.accesses.map(|side| closeup(&side, look));
    // Once a block is freed, nobody knows it any more: the other side may.
    let known = closeups.iter().flatten().rev();
    let memory = known
        .map(|closeup| memory(&closeup.memory))
        .find(|memory| *memory != RawMemory::Static)
        .unwrap_or_default();
    let [first, second] = &race.accesses;
    RawRace {
        accesses: [
            access(first, closeups[0], detected),
            access(second, closeups[1], detected),
        ],
        address: race.locations.first().map_or(0, |address| address.0),
        memory,
        instances: race.instances,
        found_by: vec![detector],
        why_not_ordered: None,
    }
}

/// The event of a side, if the second run came by there, too.
fn closeup<'a>(side: &Side, look: &'a CloserLook) -> Option<&'a Closeup> {
    let closeup = look.events.get(&side.position.0)?;
    (closeup.thread == side.thread && closeup.site == side.site).then_some(closeup)
}

fn access(side: &Side, closeup: Option<&Closeup>, detected: &Detected) -> RawAccess {
    let info = detected.seen.sites.get(side.site.0 as usize);
    RawAccess {
        thread: side.thread.0,
        access: kind(side.kind),
        size: closeup.map_or(0, |closeup| bytes(&closeup.kind)),
        atomic: matches!(side.kind, AccessKind::AtomicRead | AccessKind::AtomicWrite),
        site: info.map_or_else(nowhere, |info| place(&info.place)),
        retired: None,
        stack: closeup.map_or_else(
            || info.map_or_else(Vec::new, first_stack),
            |closeup| closeup.stack.iter().map(place).collect(),
        ),
        locks: closeup.map_or_else(Vec::new, |closeup| closeup.locks.iter().map(lock).collect()),
    }
}

/// How the site was reached the first time.
fn first_stack(info: &SiteInfo) -> Vec<CodePlace> {
    let places = std::iter::once(&info.place).chain(&info.stack);
    places.map(place).collect()
}

pub(crate) fn kind(kind: AccessKind) -> Kind {
    match kind {
        AccessKind::Read | AccessKind::AtomicRead => Kind::Read,
        AccessKind::Write | AccessKind::AtomicWrite | AccessKind::Free => Kind::Write,
    }
}

fn bytes(kind: &EventKind) -> u64 {
    match kind {
        EventKind::Read(access)
        | EventKind::Write(access)
        | EventKind::AtomicLoad(access, _)
        | EventKind::AtomicStore(access, _)
        | EventKind::AtomicRmw(access, _) => u64::from(access.size),
        EventKind::Free { size, .. } => *size,
        _ => 0,
    }
}

fn lock(held: &HeldLock) -> RawLock {
    RawLock {
        address: held.address,
        memory: memory(&held.memory),
        mode: match held.mode {
            verdict_events::LockMode::Exclusive => LockMode::Exclusive,
            verdict_events::LockMode::Shared => LockMode::Shared,
        },
        taken_at: held.taken_at.iter().map(place).collect(),
    }
}

fn memory(memory: &Memory) -> RawMemory {
    match memory {
        Memory::Static => RawMemory::Static,
        Memory::Block {
            start,
            len,
            thread,
            allocated_at,
        } => RawMemory::Heap(HeapBlock {
            start: *start,
            size: *len,
            thread: thread.map(|thread| thread.0),
            allocated_at: allocated_at.iter().map(place).collect(),
        }),
        Memory::Stack {
            thread,
            thread_pointer,
        } => RawMemory::Stack {
            thread: thread.0,
            thread_pointer: Some(*thread_pointer),
            frame: None,
        },
        Memory::ThreadLocal {
            thread,
            thread_pointer,
        } => RawMemory::ThreadLocal {
            thread: thread.0,
            thread_pointer: *thread_pointer,
        },
    }
}

fn place(place: &Place) -> CodePlace {
    CodePlace {
        module: place.module.clone().unwrap_or_default(),
        offset: place.offset,
    }
}

fn nowhere() -> CodePlace {
    CodePlace {
        module: PathBuf::new(),
        offset: 0,
    }
}
