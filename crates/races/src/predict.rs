//! What did not race in a run and may in another: no lock keeps it apart. The hybrid detector has to read what happens to all bytes
//! that threads share without handing them on when they begin and end, which takes looks of their own.

use std::collections::BTreeSet;
use std::path::Path;

use verdict_detect::{Algorithm, Findings, Race};
use verdict_findings::AccessKind;
use verdict_observe::Seen;

use crate::detect::{Aim, FirstLook, detect_suspects, first_look};
use crate::findings::kind;
use crate::progress::Watcher;
use crate::{DetectRequest, Detected, ProgramError, Run};

/// More than so many places in memory, of eight bytes each, are not looked at: of each that threads share, the detector keeps some
/// hundred bytes, together about 20 MB.
const SHARED_MAX: u64 = 1 << 16;

/// Repeats the run for the hybrid detector and answers with what it alone found; `None` if threads share too much memory. Races of
/// `detected` that it found, too, are found by both from then on.
///
/// # Errors
/// When there is no run, or it cannot be followed.
pub fn predict(
    request: &DetectRequest<'_>,
    again: Run,
    detected: &mut Detected,
    watcher: &mut Watcher<'_>,
) -> Result<Option<Detected>, ProgramError> {
    let request = DetectRequest {
        config: again.config,
        launch: again.launch,
        algorithms: &[Algorithm::Hybrid],
        instructions: detected.instructions(),
        first_look: FirstLook::Sifted,
        ..*request
    };
    let aim = Aim::Predictions;
    let (ending, surveyed) = first_look(&request, aim, watcher)?;
    if surveyed.suspects.granules() > SHARED_MAX {
        return Ok(None);
    }
    let mut predicted = detect_suspects(&request, aim, ending, surveyed, watcher)?;
    for findings in &mut predicted.findings {
        let (known, new) = split(findings, &predicted.seen, detected);
        findings.races = new;
        detected.findings.push(known);
    }
    Ok(Some(predicted))
}

/// The races that were detected before, and what is new. A look numbers sites as it comes by them: what is the same in every look
/// are their places.
fn split(predicted: &Findings, seen: &Seen, detected: &Detected) -> (Findings, Vec<Race>) {
    let races = || detected.findings.iter().flat_map(|found| &found.races);
    let before: BTreeSet<_> = races().map(|race| sides(race, &detected.seen)).collect();
    let is_known = |race: &&Race| before.contains(&sides(race, seen));
    let (again, new): (Vec<&Race>, Vec<&Race>) = predicted.races.iter().partition(is_known);
    let again: BTreeSet<_> = again.iter().map(|race| sides(race, seen)).collect();
    let known = races().filter(|race| again.contains(&sides(race, &detected.seen)));
    let known = Findings {
        algorithm: predicted.algorithm,
        trace: predicted.trace,
        races: known.cloned().collect(),
        locations: Vec::new(),
        history: None,
    };
    (known, new.into_iter().cloned().collect())
}

/// Where an access is, and whether it writes.
type Side<'a> = (Option<&'a Path>, u64, bool);

fn sides<'a>(race: &Race, seen: &'a Seen) -> [Side<'a>; 2] {
    let mut sides = race.accesses.map(|side| {
        let info = seen.sites.get(side.site.0 as usize);
        let place = info.map(|info| &info.place);
        let module = place.and_then(|place| place.module.as_deref());
        let offset = place.map_or(0, |place| place.offset);
        (module, offset, kind(side.kind) == AccessKind::Write)
    });
    sides.sort_unstable();
    sides
}
