//! Pairs of accesses that did not race in the recorded run, and may in another: no lock keeps them apart.
//!
//! What ordered them then may be chance, a counter for example that both threads happened to update in between. They are no
//! races until a steered run has brought them together, and no report names them before.

use verdict_detect::Algorithm;
use verdict_findings::{CoverageNote, ProgramFindings, Race};
use verdict_results::Stage;

use super::Work;
use crate::CliError;

/// Where they are kept, in the result folder.
const FILE: &str = "predictions.json";

/// Longer runs are read for races only: to predict takes a look at every access at once.
const INSTRUCTIONS_MAX: u64 = 500_000_000;

/// More are not steered to.
const PAIRS_MAX: u64 = 64;
/// Of a long program there are fewer, but these.
const PAIRS_MIN: u64 = 8;
/// What steering to all of them may cost, in instructions: some minutes.
const COST_MAX: u64 = 50_000_000_000;

/// Runs after which a pair that was not brought together is given up.
pub(super) const RUNS_MAX: u32 = 30;

/// What looks at a run of so many instructions.
pub(super) fn algorithms(instructions: u64) -> &'static [Algorithm] {
    match instructions <= INSTRUCTIONS_MAX {
        true => &[Algorithm::Hb, Algorithm::Hybrid],
        false => &[Algorithm::Hb],
    }
}

/// Puts those among the findings aside until they are steered to, and tells of those that will not be.
pub(super) fn put_aside(
    findings: &mut ProgramFindings,
    instructions: u64,
    work: &Work,
) -> Result<(), CliError> {
    if instructions > INSTRUCTIONS_MAX {
        findings.coverage.push(CoverageNote {
            help: Some("`verdict confirm` looks for them in programs of any length".to_owned()),
            ..note(
                Stage::Detect,
                "accesses that could race in another run were not looked for: the run is long",
            )
        });
    }
    let all = std::mem::take(&mut findings.races);
    let is_seen = |race: &Race| race.found_by.iter().any(|by| by == Algorithm::Hb.name());
    let (seen, mut predicted): (Vec<Race>, Vec<Race>) = all.into_iter().partition(is_seen);
    findings.races = seen;
    let left_out = leave_out(&mut predicted, instructions);
    if left_out > 0 {
        findings.coverage.push(CoverageNote {
            help: Some("`verdict confirm` steers to all of them".to_owned()),
            ..note(
                Stage::Confirm,
                format!(
                    "{left_out} pairs of accesses that could race in another run were not steered to: there are too many"
                ),
            )
        });
    }
    work.folder
        .keep_data(FILE, &predicted)
        .map_err(CliError::bad_input)
}

/// Those that were put aside, to be steered to.
pub(super) fn take(work: &Work) -> Result<Vec<Race>, CliError> {
    let kept = work.folder.data(FILE).map_err(CliError::bad_input)?;
    Ok(kept.unwrap_or_default())
}

/// Forgets those after the first `seen` races that no run has brought together.
pub(super) fn keep_confirmed(findings: &mut ProgramFindings, seen: usize) {
    let predicted = findings.races.split_off(seen);
    let met = |race: &Race| race.verdict.as_ref().and_then(|verdict| verdict.confirmed);
    let apart = predicted.iter().filter(|race| met(race) == Some(false));
    let apart = apart.count();
    let confirmed = predicted.into_iter().filter(|race| met(race) == Some(true));
    findings.races.extend(confirmed);
    let pairs = match apart {
        0 => return,
        1 => "1 pair".to_owned(),
        number => format!("{number} pairs"),
    };
    findings.coverage.push(CoverageNote {
        help: Some("`verdict confirm` tries more runs, and names them".to_owned()),
        ..note(
            Stage::Confirm,
            format!("{pairs} of accesses that no lock keeps apart did not meet in any steered run"),
        )
    });
}

/// How many there are too many.
fn leave_out(predicted: &mut Vec<Race>, instructions: u64) -> usize {
    let one = instructions.saturating_mul(u64::from(RUNS_MAX)).max(1);
    let room = (COST_MAX / one).clamp(PAIRS_MIN, PAIRS_MAX) as usize;
    let left_out = predicted.len().saturating_sub(room);
    predicted.truncate(room);
    left_out
}

fn note(stage: Stage, what: impl Into<String>) -> CoverageNote {
    CoverageNote {
        stage: stage.word().to_owned(),
        what: what.into(),
        help: None,
    }
}
