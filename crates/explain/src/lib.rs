//! From the races of a run, as addresses, to findings that people can read: functions, lines, sources, variables, names of
//! locks, why nothing orders the accesses, ids that stay the same when the program is rebuilt, and clusters of
//! races that are one mistake.
//!
//! In: [`RawRun`], what detection knows. Out: [`ProgramFindings`]. Pure but for reading binaries and sources.
#![forbid(unsafe_code)]

mod blame;
mod clusters;
mod code;
mod memory;
mod order;
mod race_id;
mod raw;

pub use code::Code;
pub use raw::{CodePlace, HeapBlock, RawAccess, RawLock, RawMemory, RawRace, RawRun, RawThread};

use verdict_findings::{Access, Lock, ProgramFindings, Race, Schema, Thread, text_of_bytes};

/// Everything that is known of the races of a run.
#[must_use]
pub fn explain(run: &RawRun, code: &mut Code) -> ProgramFindings {
    let mut findings = ProgramFindings::new(Schema::Races1, run.program.clone());
    findings.threads = run.threads.iter().map(|raw| thread(raw, code)).collect();
    findings.races = run.races.iter().map(|raw| race(raw, run, code)).collect();
    race_id::make_unique(&mut findings.races);
    clusters::mark(&mut findings.races);
    findings
}

fn thread(raw: &RawThread, code: &mut Code) -> Thread {
    Thread {
        id: raw.id,
        name: raw.name.clone(),
        parent: raw.parent,
        created_at: blame::without_start(code.stack(&raw.created_at)),
    }
}

fn race(raw: &RawRace, run: &RawRun, code: &mut Code) -> Race {
    let accesses = [
        access(&raw.accesses[0], run, code),
        access(&raw.accesses[1], run, code),
    ];
    let size = raw.accesses.iter().map(|access| access.size).min();
    let variable = memory::variable(&raw.memory, raw.address, size.unwrap_or(1), run, code);
    let id = race_id::of(&accesses, &variable, code);
    let mut race = Race::new(id, accesses);
    race.variable = variable;
    race.address = raw.address;
    race.instances = raw.instances;
    race.found_by.clone_from(&raw.found_by);
    race.why_not_ordered = raw
        .why_not_ordered
        .clone()
        .or_else(|| order::why_not(&race.accesses));
    race
}

fn access(raw: &RawAccess, run: &RawRun, code: &mut Code) -> Access {
    let at_site = code.stack(std::slice::from_ref(&raw.site));
    let blamed = blame::frame(&at_site);
    let stack = match raw.stack.as_slice() {
        [] => at_site.clone(),
        places => blame::without_start(code.stack(places)),
    };
    let source = blamed.and_then(|frame| code.excerpt(frame.file.as_deref()?, frame.line?));
    Access {
        thread: raw.thread,
        access: raw.access,
        size: raw.size,
        atomic: raw.atomic,
        function: blamed.and_then(|frame| frame.function.clone()),
        file: blamed.and_then(|frame| frame.file.clone()),
        line: blamed.and_then(|frame| frame.line),
        column: blamed.and_then(|frame| frame.column),
        module: text_of_bytes(raw.site.module.as_os_str().as_encoded_bytes()),
        offset: raw.site.offset,
        retired: raw.retired,
        locks: raw.locks.iter().map(|held| lock(held, run, code)).collect(),
        source,
        stack,
    }
}

fn lock(raw: &RawLock, run: &RawRun, code: &mut Code) -> Lock {
    Lock {
        name: memory::lock_name(raw, run, code),
        address: Some(raw.address),
        mode: raw.mode,
        taken_at: blame::without_start(code.stack(&raw.taken_at)),
    }
}
