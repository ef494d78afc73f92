//! Races that only other orders show: looked for once all races of the recorded execution have been judged.

use serde::{Deserialize, Serialize};
use verdict_findings::{CoverageNote, ProgramFindings, Race, Thread};
use verdict_results::Stage;
use verdict_verdicts::{Bounds, Doubts, classify_explored};

use super::judge::{Asker, name_evidence, note};
use crate::CliError;

/// What is kept of it, and where its evidence is, under this name.
const NAME: &str = "exploration";

/// What was found.
#[derive(Serialize, Deserialize)]
struct Found {
    races: Vec<Race>,
    threads: Vec<Thread>,
    not_covered: Vec<CoverageNote>,
    doubts: Doubts,
}

/// Adds races to those that are known. What was found before an interruption is not looked for again.
pub(super) fn explore(
    asker: &Asker<'_>,
    findings: &mut ProgramFindings,
) -> Result<Doubts, CliError> {
    let work = asker.work;
    let kept = work.folder.piece(Stage::Classify, NAME);
    let found = match kept.map_err(CliError::bad_input)? {
        Some(found) => found,
        None if work.time_is_up() => {
            let what = "further races in other orders: the time was up".to_owned();
            findings.coverage.push(note(Stage::Classify, what));
            return Ok(Doubts::default());
        }
        None => {
            work.display.done("other orders");
            let found = look(asker, findings)?;
            let kept = work.folder.keep_piece(Stage::Classify, NAME, &found);
            kept.map_err(CliError::bad_input)?;
            found
        }
    };
    findings.races.extend(found.races);
    findings.threads = found.threads;
    findings.coverage.extend(found.not_covered);
    Ok(found.doubts)
}

fn look(asker: &Asker<'_>, findings: &ProgramFindings) -> Result<Found, CliError> {
    let folder = &asker.work.folder;
    let (evidence, evidence_name) = folder.evidence_on(NAME).map_err(CliError::bad_input)?;
    let evidence = evidence.canonicalize().unwrap_or(evidence);
    let mut asked = findings.clone();
    // Recordings are named from the result folder.
    for verdict in asked
        .races
        .iter_mut()
        .filter_map(|race| race.verdict.as_mut())
    {
        verdict.rename_recordings(&|name| Some(folder.path().join(name).display().to_string()));
    }
    let (known, known_notes) = (asked.races.len(), asked.coverage.len());
    let doubts = classify_explored(
        &mut asked,
        &asker.config,
        &asker.launch,
        &asker.classify_options(),
        &evidence,
        Bounds::default(),
    );
    let mut races = asked.races.split_off(known);
    for verdict in races.iter_mut().filter_map(|race| race.verdict.as_mut()) {
        name_evidence(verdict, &evidence, &evidence_name);
    }
    // Only where there is nothing in it.
    let _ = std::fs::remove_dir(&evidence);
    Ok(Found {
        races,
        threads: asked.threads,
        not_covered: asked.coverage.split_off(known_notes),
        doubts,
    })
}
