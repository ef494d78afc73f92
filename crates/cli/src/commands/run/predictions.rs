//! Pairs of accesses that did not race in the recorded run, and may in another: no lock keeps them apart.
//!
//! What ordered them then may be chance, a counter for example that both threads happened to update in between. They are no
//! races until a steered run has brought them together, and no report names them before.

use serde::{Deserialize, Serialize};
use verdict_detect::Algorithm;
use verdict_findings::{CoverageNote, ProgramFindings, Race};
use verdict_results::Stage;

use super::Work;
use crate::CliError;
use crate::commands::predicted::is_in_language;

/// Where they are kept, in the result folder.
const FILE: &str = "predictions.json";

/// Longer runs are read for races only: to predict takes a look at every access at once.
const INSTRUCTIONS_MAX: u64 = 500_000_000;

/// More are not steered to.
const PAIRS_MAX: usize = 64;

/// What steering to all of them may cost, in instructions: some minutes. Those that are left then are not steered to.
pub(super) const COST_MAX: u64 = 60_000_000_000;

/// Of that, what steering to one may cost, so that many have their turn.
pub(super) const COST_EACH: u64 = COST_MAX / 24;

/// Runs after which a pair that was not brought together is given up.
pub(super) const RUNS_MAX: u32 = 30;

/// What looks at a run of so many instructions.
pub(super) fn algorithms(instructions: u64) -> &'static [Algorithm] {
    match instructions <= INSTRUCTIONS_MAX {
        true => &[Algorithm::Hb, Algorithm::Hybrid],
        false => &[Algorithm::Hb],
    }
}

/// What is put aside until it is steered to.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Predictions {
    /// As many as there is room for.
    pub pairs: Vec<Race>,
    /// How many others there are.
    pub left_out: usize,
}

/// Puts those among the findings aside.
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
    let known = predicted.len();
    predicted.retain(|race| !is_in_language(race));
    if let Some(pairs) = count(known - predicted.len()) {
        findings.coverage.push(note(
            Stage::Confirm,
            format!(
                "{pairs} of accesses that could race in another run, by the language's own library, were not steered to"
            ),
        ));
    }
    let left_out = predicted.len().saturating_sub(PAIRS_MAX);
    predicted.truncate(PAIRS_MAX);
    let aside = Predictions {
        pairs: predicted,
        left_out,
    };
    let kept = work.folder.keep_data(FILE, &aside);
    kept.map_err(CliError::bad_input)
}

/// Those that were put aside, to be steered to.
pub(super) fn take(work: &Work) -> Result<Predictions, CliError> {
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
    let Some(pairs) = count(apart) else {
        return;
    };
    findings.coverage.push(CoverageNote {
        help: Some("`verdict confirm` tries more runs, and names them".to_owned()),
        ..note(
            Stage::Confirm,
            format!("{pairs} of accesses that no lock keeps apart did not meet in any steered run"),
        )
    });
}

/// Those that there was no room for.
pub(super) fn not_steered_to(pairs: usize) -> Option<CoverageNote> {
    let what = format!(
        "{} of accesses that could race in another run were not steered to: there are too many",
        count(pairs)?
    );
    Some(CoverageNote {
        help: Some("`verdict confirm` steers to all of them".to_owned()),
        ..note(Stage::Confirm, what)
    })
}

fn count(pairs: usize) -> Option<String> {
    match pairs {
        0 => None,
        1 => Some("1 pair".to_owned()),
        _ => Some(format!("{pairs} pairs")),
    }
}

fn note(stage: Stage, what: impl Into<String>) -> CoverageNote {
    CoverageNote {
        stage: stage.word().to_owned(),
        what: what.into(),
        help: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::{Program, Schema, Verdict};

    fn race(id: usize, confirmed: Option<bool>) -> Race {
        let verdict = confirmed.map(|confirmed| Verdict {
            confirmed: Some(confirmed),
            ..Verdict::default()
        });
        let text = serde_json::json!({
            "id": id.to_string(),
            "conflict": "output",
            "accesses": [{"access": "write"}, {"access": "write"}],
        });
        Race {
            verdict,
            ..serde_json::from_value(text).expect("a race that says nothing else")
        }
    }

    #[test]
    fn only_what_met_is_a_race_and_the_others_are_counted() {
        let mut findings = ProgramFindings::new(Schema::Verdicts1, Program::default());
        findings.races = [None, Some(false), Some(true), Some(false), None]
            .into_iter()
            .enumerate()
            .map(|(id, confirmed)| race(id, confirmed))
            .collect();
        keep_confirmed(&mut findings, 1);
        let ids: Vec<&str> = findings.races.iter().map(|race| race.id.as_str()).collect();
        assert_eq!(ids, ["0", "2"], "what was seen stays, whatever came of it");
        let [note] = findings.coverage.as_slice() else {
            panic!("{:?}", findings.coverage);
        };
        assert!(note.what.starts_with("2 pairs of accesses "), "{note:?}");
        keep_confirmed(&mut findings, 2);
        assert_eq!(findings.coverage.len(), 1, "nothing new to tell");
    }
}
