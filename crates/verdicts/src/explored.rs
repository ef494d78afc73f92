//! Races that only show in the other order of another race: found in the recordings of alternates, and classified from there.
//!
//! An alternate that leaves another state behind may go where the recorded execution never was. Its recording is an ordinary
//! one, so detectors can look at it; a race that they find there and nobody knew is classified with that recording as what was
//! recorded: it is followed to the race's first access, and left there.
//!
//! Not looked at: alternates that break the program, since what races in them is what the break leads to; alternates of races that
//! were found here.

use crate::{Doubts, classify_findings};
use std::path::{Path, PathBuf};
use verdict_classify::{ClassifyError, Options, Start};
use verdict_detect::{Algorithm, PairBy};
use verdict_findings::{Class, CoverageNote, ProgramFindings, Race, WhichOrder};
use verdict_launch::LaunchOptions;
use verdict_observe::Orders;
use verdict_protocol::{ExecutorConfig, World};
use verdict_races::{
    DetectRequest, FirstLook, Locks, Run, detect_program, look_closer, replay_of, to_findings,
};

/// Who found such a race, beside the detector.
const EXPLORATION: &str = "exploration";

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Recordings of alternates.
    pub recordings_max: usize,
    /// Races that are classified.
    pub races_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            recordings_max: 4,
            races_max: 8,
        }
    }
}

/// What could not be looked at, counted.
#[derive(Default)]
struct Left {
    recordings: usize,
    races: usize,
    /// Why the last recording that could not be looked at could not.
    failure: Option<String>,
}

/// Looks for races in the recordings that classified races of the document have as evidence of their other order, and adds those
/// that are new, classified. `folder` takes a folder for each recording that has some.
pub fn classify_explored(
    findings: &mut ProgramFindings,
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    options: &Options,
    folder: &Path,
    bounds: Bounds,
) -> Doubts {
    let mut doubts = Doubts::default();
    let mut left = Left::default();
    let mut room = bounds.races_max;
    let recordings: Vec<PathBuf> = findings.races.iter().filter_map(leads_elsewhere).collect();
    left.recordings = recordings.len().saturating_sub(bounds.recordings_max);
    for (number, recording) in recordings.iter().take(bounds.recordings_max).enumerate() {
        let mut found = match detect(config, launch, recording) {
            Ok(found) => found,
            Err(why) => {
                left.failure = Some(why);
                continue;
            }
        };
        // What the detector has to say of this execution is not about the recorded one.
        found.coverage.clear();
        let is_known = |race: &Race| findings.races.iter().any(|known| known.id == race.id);
        found.races.retain(|race| !is_known(race));
        left.races += found.races.len().saturating_sub(room);
        found.races.truncate(room);
        room -= found.races.len();
        if found.races.is_empty() {
            continue;
        }
        let folder = folder.join(format!("explored-{}", number + 1));
        match classify_from(&mut found, config, launch, options, &folder, recording) {
            Ok(new) => doubts.extend_with_races_of(new),
            // They are races all the same.
            Err(error) => left.failure = Some(error.to_string()),
        }
        add(findings, found);
    }
    findings.coverage.extend(notes(&left, bounds));
    doubts
}

/// Classifies the races of a recording from there.
fn classify_from(
    found: &mut ProgramFindings,
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    options: &Options,
    folder: &Path,
    recording: &Path,
) -> Result<Doubts, ClassifyError> {
    std::fs::create_dir_all(folder).map_err(|error| refused(&error))?;
    let run = replay_of(config, launch, recording).map_err(|error| refused(&error))?;
    let config = ExecutorConfig {
        world: World::Followed,
        ..run.config
    };
    let options = Options {
        start: Start::FirstAccess,
        ..options.clone()
    };
    let nothing = &mut |_: usize, _: usize| {};
    let all = &|_: &Race| true;
    classify_findings(found, &config, &run.launch, &options, folder, all, nothing)
}

/// The recording of a race's other order, where that may lead to what the recorded execution never came to.
fn leads_elsewhere(race: &Race) -> Option<PathBuf> {
    let verdict = race.verdict.as_ref()?;
    let goes_on = match verdict.class? {
        Class::OutputDiffers => true,
        Class::KWitnessHarmless => verdict.states_differ == Some(true),
        _ => false,
    };
    let mut orders = verdict.orders.iter();
    let other = orders.find(|order| order.order == WhichOrder::Alternate)?;
    let evidence = other.evidence.as_ref()?;
    goes_on.then(|| PathBuf::from(evidence))
}

/// The races of a recording.
fn detect(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    recording: &Path,
) -> Result<ProgramFindings, String> {
    let again = || -> Result<Run, String> {
        replay_of(config, launch, recording).map_err(|error| error.to_string())
    };
    let run = again()?;
    let request = DetectRequest {
        config: run.config.clone(),
        launch: run.launch,
        again: &again,
        algorithms: &[Algorithm::Hb],
        by: PairBy::default(),
        locks: Locks::Seen,
        orders: Orders::default(),
        first_look: FirstLook::Sifted,
        instructions: None,
    };
    let detected = detect_program(&request, &mut |_| {}).map_err(|error| error.to_string())?;
    let look = look_closer(&again()?, &detected, &mut |_| {}).map_err(|error| error.to_string())?;
    Ok(to_findings(&detected, &look, &run.config))
}

fn refused(error: &std::io::Error) -> ClassifyError {
    ClassifyError::Refused {
        why: error.to_string(),
    }
}

/// Adds races to a document, with the threads that they name and what was not covered of them.
fn add(findings: &mut ProgramFindings, found: ProgramFindings) {
    for thread in found.threads {
        if !findings.threads.iter().any(|known| known.id == thread.id) {
            findings.threads.push(thread);
        }
    }
    findings.threads.sort_by_key(|thread| thread.id);
    for mut race in found.races {
        race.found_by.push(EXPLORATION.to_owned());
        race.cluster = None;
        findings.races.push(race);
    }
    findings.coverage.extend(found.coverage);
}

fn notes(left: &Left, bounds: Bounds) -> Vec<CoverageNote> {
    let note = |what: String| CoverageNote {
        stage: "classify".into(),
        what,
        help: None,
    };
    let mut notes = Vec::new();
    if left.recordings > 0 {
        notes.push(note(format!(
            "the other orders of {} races were not looked at for further races: {} were",
            left.recordings, bounds.recordings_max
        )));
    }
    if left.races > 0 {
        notes.push(note(format!(
            "{} races that only show in other orders were not classified: {} were",
            left.races, bounds.races_max
        )));
    }
    if let Some(why) = &left.failure {
        notes.push(note(format!(
            "further races in the other order of a race could not be looked at: {why}"
        )));
    }
    notes
}
