//! What could race in another run, told beside the races of this one: pairs of accesses that no lock keeps apart.
//!
//! They are no races: what ordered them in this run may do so in every other, a barrier or a semaphore for example. `verdict confirm`
//! steers runs to them and says which are.

use verdict_findings::{CoverageNote, ProgramFindings, Race, Thread};
use verdict_protocol::ExecutorConfig;
use verdict_races::{DetectRequest, Detected, look_closer, predict};

use super::program::explained;
use crate::commands::predicted::is_in_language;
use crate::progress::Progress;

/// Longer runs are not repeated for this. It takes up to three more looks, for so many instructions one or two tenths of a second: as
/// long as nobody wonders about. Where debug information is what takes long to read, it takes as long again.
const INSTRUCTIONS_MAX: u64 = 20_000_000;

/// What to do about a run that is too long, or of too much.
const HELP: &str = "`--algorithm hybrid` or `verdict confirm` looks for them";

/// What was predicted.
#[derive(Default)]
pub(super) struct Predictions {
    pairs: Vec<Race>,
    /// All that there were.
    threads: Vec<Thread>,
    /// Why nothing was.
    note: Option<CoverageNote>,
}

/// Repeats a run that is short enough, to see what could race in another.
pub(super) fn look_for(
    request: &DetectRequest<'_>,
    detected: &mut Detected,
    config: &ExecutorConfig,
    progress: &mut Progress,
) -> Predictions {
    if !detected.has_threads() {
        return Predictions::default();
    }
    match detected.instructions() {
        Some(..=INSTRUCTIONS_MAX) => {}
        Some(_) => return Predictions::none("the run is long", Some(HELP)),
        None => return Predictions::none("nobody knows how long the run was", None),
    }
    let looked = look(request, detected, config, progress);
    looked.unwrap_or_else(|error| {
        Predictions::none(&format!("the run could not be repeated: {error}"), None)
    })
}

fn look(
    request: &DetectRequest<'_>,
    detected: &mut Detected,
    config: &ExecutorConfig,
    progress: &mut Progress,
) -> Result<Predictions, String> {
    let mut show = |far| progress.look(far);
    let again = request.again;
    let predicted = predict(request, again()?, detected, &mut show);
    let Some(predicted) = predicted.map_err(|error| error.to_string())? else {
        return Ok(Predictions::none(
            "the threads share much memory",
            Some(HELP),
        ));
    };
    let look = look_closer(&again()?, &predicted, &mut show);
    let look = look.map_err(|error| error.to_string())?;
    let findings = explained(&predicted, &look, config);
    let mut pairs = findings.races;
    pairs.retain(|pair| !is_in_language(pair));
    for pair in &mut pairs {
        // Why nothing orders a race says what was not there between its accesses. Here something was.
        pair.why_not_ordered = None;
    }
    Ok(Predictions {
        pairs,
        threads: findings.threads,
        note: None,
    })
}

impl Predictions {
    fn none(why: &str, help: Option<&str>) -> Self {
        let note = CoverageNote {
            stage: "detect".to_owned(),
            what: format!("accesses that could race in another run were not looked for: {why}"),
            help: help.map(str::to_owned),
        };
        Self {
            note: Some(note),
            ..Self::default()
        }
    }

    /// Adds them to what is told, with the threads that they name.
    pub(super) fn put_beside(self, findings: &mut ProgramFindings) {
        findings.coverage.extend(self.note);
        if self.pairs.is_empty() {
            return;
        }
        findings.predictions = self.pairs;
        for thread in self.threads {
            if findings.thread(thread.id).is_none() {
                findings.threads.push(thread);
            }
        }
        findings.threads.sort_by_key(|thread| thread.id);
    }
}
