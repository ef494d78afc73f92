//! The third and the fourth stage: each race is steered to, and then judged, in a world of the program's own.
//!
//! A race at a time, so that an interrupted run does not ask again what it has found out.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use verdict_findings::{CoverageNote, ProgramFindings, Race, Schema, Verdict, text_of_bytes};
use verdict_launch::LaunchOptions;
use verdict_protocol::ExecutorConfig;
use verdict_results::Stage;
use verdict_verdicts::Doubts;

use super::{Work, exploration, predictions};
use crate::CliError;
use crate::commands::judge::followed;

/// One run may take this long, as a safety net: runs are limited by their instructions.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);

/// What steering to one race may cost, in instructions: a minute or less. Long programs, servers for example, are run a few times.
const COST_MAX: u64 = 20_000_000_000;

/// What was said about a race, or why nothing was.
type Answer = Result<Said, String>;

#[derive(Serialize, Deserialize, Default)]
struct Said {
    verdict: Option<Verdict>,
    not_covered: Vec<CoverageNote>,
    doubts: Doubts,
    /// What asking took, in instructions.
    cost: u64,
}

/// Whether all races were asked about before the time was up.
pub(super) fn judge(stage: Stage, work: &Work) -> Result<bool, CliError> {
    let before = match stage {
        Stage::Classify => Stage::Confirm,
        _ => Stage::Detect,
    };
    let read = work.folder.stage(before).map_err(CliError::bad_input)?;
    let mut findings = read.ok_or_else(|| CliError::cannot_run("a stage was left out"))?;
    findings.schema = Schema::Verdicts1;
    let seen = findings.races.len();
    let (mut spent, mut left_out) = (0_u64, 0);
    if stage == Stage::Confirm {
        let predictions = predictions::take(work)?;
        findings.races.extend(predictions.pairs);
        left_out = predictions.left_out;
    }
    // What came from outside then, clients and their requests, comes again.
    let (config, launch) = followed(&work.folder.recording())?;
    let asker = Asker {
        stage,
        work,
        config,
        launch,
    };
    let (ids, mut refusal) = (ids(&findings), None);
    let (mut asked, mut doubts) = (0, Doubts::default());
    for (index, id) in ids.iter().enumerate() {
        if spent > predictions::COST_MAX {
            left_out += 1;
            asked += 1;
            continue;
        }
        let kept = work.folder.piece(stage, id).map_err(CliError::bad_input)?;
        let answer: Answer = match kept {
            Some(answer) => answer,
            None if work.time_is_up() => break,
            None => {
                work.display.done(&count(index, seen, ids.len()));
                let answer = asker.ask(&findings, id, index >= seen);
                let kept = work.folder.keep_piece(stage, id, &answer);
                kept.map_err(CliError::bad_input)?;
                answer
            }
        };
        asked += 1;
        match answer {
            Ok(said) => {
                if index >= seen {
                    spent = spent.saturating_add(said.cost);
                }
                findings.races[index].verdict = said.verdict;
                findings.coverage.extend(said.not_covered);
                doubts.extend(said.doubts);
            }
            Err(why) => refusal = Some(why),
        }
    }
    predictions::keep_confirmed(&mut findings, seen);
    if stage == Stage::Classify && asked == ids.len() {
        doubts.extend(exploration::explore(&asker, &mut findings)?);
    }
    doubts.explain(&mut findings);
    let left_out = predictions::not_steered_to(left_out);
    findings.coverage.extend(left_out);
    findings
        .coverage
        .extend(refusal.map(|why| note(stage, why)));
    if asked < ids.len() {
        let what = format!(
            "{} of {} races: the time was up",
            ids.len() - asked,
            ids.len()
        );
        findings.coverage.push(note(stage, what));
        let kept = work.folder.keep_results(&findings);
        kept.map_err(CliError::bad_input)?;
        return Ok(false);
    }
    let kept = work.folder.finish(stage, &findings);
    kept.map_err(CliError::bad_input)?;
    Ok(true)
}

fn ids(findings: &ProgramFindings) -> Vec<String> {
    findings.races.iter().map(|race| race.id.clone()).collect()
}

/// Which one it is, for those who wait.
fn count(index: usize, seen: usize, all: usize) -> String {
    match index.checked_sub(seen) {
        None => format!("{} of {seen} races", index + 1),
        Some(predicted) => format!("{} of {} predictions", predicted + 1, all - seen),
    }
}

pub(super) fn note(stage: Stage, what: String) -> CoverageNote {
    CoverageNote {
        stage: stage.word().to_owned(),
        what,
        help: None,
    }
}

/// Asks about one race after the other.
pub(super) struct Asker<'a> {
    stage: Stage,
    pub(super) work: &'a Work<'a>,
    pub(super) config: ExecutorConfig,
    pub(super) launch: LaunchOptions,
}

impl Asker<'_> {
    /// How races are classified.
    pub(super) fn classify_options(&self) -> verdict_classify::Options {
        verdict_classify::Options {
            schedules: self.work.args.schedules,
            seed: self.config.seed,
            jobs: self.work.args.jobs(),
            time_limit: Some(RUN_TIME_MAX),
            ..verdict_classify::Options::default()
        }
    }

    fn ask(&self, findings: &ProgramFindings, id: &str, predicted: bool) -> Answer {
        let work = self.work;
        let mut asked = findings.clone();
        let known_before = asked.coverage.len();
        let (mut doubts, mut cost) = (Doubts::default(), 0);
        let wanted = |race: &Race| race.id == id;
        let (evidence, evidence_name) = work.folder.evidence_on(id).map_err(text)?;
        let evidence = evidence.canonicalize().unwrap_or(evidence);
        match self.stage {
            Stage::Classify => {
                let options = self.classify_options();
                let nothing = &mut |_: usize, _: usize| {};
                doubts = verdict_verdicts::classify_findings(
                    &mut asked,
                    &self.config,
                    &self.launch,
                    &options,
                    &evidence,
                    &wanted,
                    nothing,
                )
                .map_err(text)?;
            }
            _ => {
                let options = verdict_confirm::Options {
                    runs: work.args.runs,
                    cost_max: Some(match predicted {
                        true => predictions::COST_EACH,
                        false => COST_MAX,
                    }),
                    give_up_after: predicted.then_some(predictions::RUNS_MAX),
                    seed: self.config.seed,
                    jobs: work.args.jobs(),
                    time_limit: Some(RUN_TIME_MAX),
                    ..verdict_confirm::Options::default()
                };
                let mut confirming = verdict_verdicts::Confirming {
                    config: &self.config,
                    launch: &self.launch,
                    options: &options,
                    folder: &evidence,
                    progress: &mut |_, _| {},
                };
                let confirmed =
                    verdict_verdicts::confirm_findings(&mut asked, &mut confirming, &wanted);
                cost = confirmed.map_err(text)?;
            }
        }
        let race = asked.races.into_iter().find(|race| race.id == id);
        let mut verdict = race.and_then(|race| race.verdict);
        if let Some(verdict) = &mut verdict {
            name_evidence(verdict, &evidence, &evidence_name);
        }
        // Only where there is nothing in it.
        let _ = std::fs::remove_dir(&evidence);
        let not_covered = asked.coverage.split_off(known_before);
        Ok(Said {
            verdict,
            not_covered,
            doubts,
            cost,
        })
    }
}

/// The result folder may be moved: files in it are named from there.
pub(super) fn name_evidence(verdict: &mut Verdict, folder: &Path, name: &str) {
    let folder = text_of_bytes(folder.as_os_str().as_encoded_bytes());
    verdict.rename_recordings(&|file| {
        let inside = file.strip_prefix(&folder);
        Some(inside.map_or_else(|| file.to_owned(), |inside| format!("{name}{inside}")))
    });
}

fn text(error: impl Display) -> String {
    error.to_string()
}
