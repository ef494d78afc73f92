//! Steers runs to the races of a document.

use crate::Modules;
use crate::names::Names;
use std::collections::BTreeSet;
use std::path::Path;
use verdict_confirm::{
    Candidate, ConfirmError, EndedKind, Options, Progress, SeenError, confirm, modules,
};
use verdict_findings::{
    Confirmation, ConsequenceKind, CoverageNote, ObservedError, ProgramFindings, Schema, Verdict,
};
use verdict_launch::LaunchOptions;
use verdict_protocol::ExecutorConfig;

/// Confirms every race of the document that `wanted` names, and writes into it what came of each.
pub fn confirm_findings(
    findings: &mut ProgramFindings,
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    options: &Options,
    folder: &Path,
    wanted: &dyn Fn(&verdict_findings::Race) -> bool,
    progress: &mut dyn FnMut(&str, Progress),
) -> Result<(), ConfirmError> {
    findings.schema = Schema::Verdicts1;
    let places = Modules::new(modules(config, launch, folder)?);
    let mut options = options.clone();
    options.switch_points = places.synchronising();
    let mut candidates = Vec::new();
    let mut indices = Vec::new();
    for (index, race) in findings.races.iter().enumerate() {
        if !wanted(race) {
            continue;
        }
        let Some([first, second]) = sites(&places, race) else {
            continue;
        };
        candidates.push(Candidate {
            name: race.id.clone(),
            first,
            second,
        });
        indices.push(index);
    }
    let names: Vec<String> = candidates.iter().map(|c| c.name.clone()).collect();
    let told = &mut |index: usize, made| progress(&names[index], made);
    let (baseline, confirmations) = confirm(config, launch, &candidates, &options, folder, told)?;
    let mut symbols = Names::default();
    for (index, confirmation) in indices.into_iter().zip(confirmations) {
        let race = &mut findings.races[index];
        let verdict = race.verdict.get_or_insert_with(Verdict::default);
        verdict.confirmed = Some(confirmation.hits > 0);
        let stacks = confirmation.faced.iter().flat_map(|faced| faced.iter());
        let stacks = stacks.map(|place| symbols.stack(place)).collect();
        if confirmation.unknown > 0 {
            findings.coverage.push(CoverageNote {
                stage: "confirm".into(),
                what: format!(
                    "{} of {} runs for {} were lost or ran for too long",
                    confirmation.unknown, confirmation.runs, race.id
                ),
                help: None,
            });
        }
        verdict.confirmation = Some(Confirmation {
            runs: u64::from(confirmation.runs),
            hits: u64::from(confirmation.hits),
            seed: confirmation.seed,
            refuted: None,
            stacks,
            errors: confirmation
                .errors
                .iter()
                .map(|error| observed(error, baseline.ended.kind, &mut symbols))
                .collect(),
        });
        if let Some(recording) = &confirmation.recording {
            verdict.evidence.push(recording.display().to_string());
        }
    }
    Ok(())
}

/// The instructions of both sides.
pub(crate) fn sites(places: &Modules, race: &verdict_findings::Race) -> Option<[BTreeSet<u64>; 2]> {
    let [first, second] = &race.accesses;
    Some([
        BTreeSet::from([places.pc(first)?]),
        BTreeSet::from([places.pc(second)?]),
    ])
}

fn observed(error: &SeenError, _usual: EndedKind, symbols: &mut Names) -> ObservedError {
    let stack = error.place.as_deref().map(|place| symbols.stack(place));
    ObservedError {
        kind: kind(error.ended.kind),
        detail: error.ended.detail.clone(),
        seed: error.seed,
        runs: u64::from(error.runs),
        stack: stack.unwrap_or_default(),
        evidence: error
            .recording
            .as_ref()
            .map(|path| path.display().to_string()),
    }
}

/// The document's word for how a run ended.
pub(crate) fn kind(kind: EndedKind) -> ConsequenceKind {
    match kind {
        EndedKind::Exited(_) | EndedKind::Unknown => ConsequenceKind::ExitCode,
        EndedKind::Crash(_) => ConsequenceKind::Crash,
        EndedKind::Abort => ConsequenceKind::Abort,
        EndedKind::Assertion => ConsequenceKind::Assertion,
        EndedKind::Exception => ConsequenceKind::Exception,
        EndedKind::MemoryError => ConsequenceKind::MemoryError,
        EndedKind::Deadlock => ConsequenceKind::Deadlock,
        EndedKind::Hang => ConsequenceKind::Hang,
    }
}
