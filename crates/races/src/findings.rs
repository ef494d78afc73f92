//! What was found as the document that every report is made from.

use verdict_detect::{AccessKind, Conflict, Findings, Race, Side};
use verdict_findings::{
    Access, AccessKind as Kind, Conflict as Relation, Frame, Program, ProgramFindings, Schema,
};
use verdict_launch::Ending;
use verdict_observe::Seen;
use verdict_protocol::{ExecutorConfig, Outcome};

use crate::{Detected, PlaceTable};

/// The races of all detectors, each once.
pub fn to_findings(detected: &Detected, config: &ExecutorConfig) -> ProgramFindings {
    let mut document = ProgramFindings::new(Schema::Races1, program(&detected.ending, config));
    let mut places = PlaceTable::default();
    for findings in &detected.findings {
        for race in &findings.races {
            let shown = shown(race, findings, &detected.seen, &mut places);
            let known = document
                .races
                .iter_mut()
                .find(|known| known.accesses == shown.accesses);
            match known {
                Some(known) => known.found_by.extend(shown.found_by),
                None => document.races.push(shown),
            }
        }
    }
    document
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

fn shown(
    race: &Race,
    findings: &Findings,
    seen: &Seen,
    places: &mut PlaceTable,
) -> verdict_findings::Race {
    let accesses = race.accesses.map(|side| access(&side, seen, places));
    verdict_findings::Race {
        id: identity(&accesses),
        accesses,
        conflict: match race.conflict {
            Conflict::Flow | Conflict::Input => Relation::Flow,
            Conflict::Anti => Relation::Anti,
            Conflict::Output => Relation::Output,
        },
        variable: verdict_findings::Variable::default(),
        address: race.locations.first().map_or(0, |address| address.0),
        instances: race.instances,
        found_by: vec![findings.algorithm.name().to_owned()],
        why_not_ordered: None,
        cluster: None,
        suppressed: None,
        verdict: None,
    }
}

fn access(side: &Side, seen: &Seen, places: &mut PlaceTable) -> Access {
    let Some(site) = seen.sites.get(side.site.0 as usize) else {
        return Access::default();
    };
    let mut stack: Vec<Frame> = places.frames(&site.place);
    let top = stack[0].clone();
    for call in &site.stack {
        stack.extend(places.frames(call));
    }
    Access {
        thread: side.thread.0,
        access: match side.kind {
            AccessKind::Read | AccessKind::AtomicRead => Kind::Read,
            AccessKind::Write | AccessKind::AtomicWrite | AccessKind::Free => Kind::Write,
        },
        atomic: matches!(side.kind, AccessKind::AtomicRead | AccessKind::AtomicWrite),
        function: top.function,
        file: top.file,
        line: top.line,
        column: top.column,
        module: top.module,
        offset: top.offset,
        stack,
        ..Access::default()
    }
}

/// Made of what survives a rebuild: functions and lines.
fn identity(accesses: &[Access; 2]) -> String {
    let mut names = accesses.clone().map(|access| {
        let function = access.function.unwrap_or_default();
        format!("{function}:{}", access.line.unwrap_or(0))
    });
    names.sort();
    names.join("|")
}
