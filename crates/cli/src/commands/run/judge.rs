//! The third and the fourth stage: each race is steered to, and then judged, in a world of the program's own.
//!
//! A race at a time, so that an interrupted run does not ask again what it has found out.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use verdict_findings::{CoverageNote, ProgramFindings, Race, Schema, Verdict, text_of_bytes};
use verdict_launch::{GuestOutput, LaunchOptions};
use verdict_protocol::{ExecutorConfig, World};
use verdict_results::Stage;

use super::Work;
use crate::CliError;

/// One run may take this long, as a safety net: runs are limited by their instructions.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);

/// What was said about a race: a verdict, or why there is none.
type Answer = Result<Option<Verdict>, String>;

/// Whether all races were asked about before the time was up.
pub(super) fn judge(stage: Stage, work: &Work) -> Result<bool, CliError> {
    let before = match stage {
        Stage::Classify => Stage::Confirm,
        _ => Stage::Detect,
    };
    let read = work.folder.stage(before).map_err(CliError::bad_input)?;
    let mut findings = read.ok_or_else(|| CliError::cannot_run("a stage was left out"))?;
    findings.schema = Schema::Verdicts1;
    let (ids, mut refusal) = (ids(&findings), None);
    let mut asked = 0;
    for (index, id) in ids.iter().enumerate() {
        let kept = work.folder.piece(stage, id).map_err(CliError::bad_input)?;
        let answer: Answer = match kept {
            Some(answer) => answer,
            None if work.time_is_up() => break,
            None => {
                work.display
                    .done(&format!("{} of {} races", index + 1, ids.len()));
                let answer = ask(stage, &findings, id, work);
                let kept = work.folder.keep_piece(stage, id, &answer);
                kept.map_err(CliError::bad_input)?;
                answer
            }
        };
        asked += 1;
        match answer {
            Ok(verdict) => findings.races[index].verdict = verdict,
            Err(why) => refusal = Some(why),
        }
    }
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

fn note(stage: Stage, what: String) -> CoverageNote {
    CoverageNote {
        stage: stage.word().to_owned(),
        what,
        help: None,
    }
}

fn ask(stage: Stage, findings: &ProgramFindings, id: &str, work: &Work) -> Answer {
    let mut asked = findings.clone();
    let wanted = |race: &Race| race.id == id;
    let config = ExecutorConfig {
        world: World::Private { input: Vec::new() },
        ..work.args.schedule.config(&work.args.program)
    };
    let launch = LaunchOptions {
        output: GuestOutput::Discarded,
        ..LaunchOptions::default()
    };
    let jobs = work.args.jobs();
    let (evidence, evidence_name) = work.folder.evidence_on(id).map_err(text)?;
    let evidence = evidence.canonicalize().unwrap_or(evidence);
    match stage {
        Stage::Classify => {
            let options = verdict_classify::Options {
                schedules: work.args.schedules,
                seed: config.seed,
                jobs,
                time_limit: Some(RUN_TIME_MAX),
                ..verdict_classify::Options::default()
            };
            let nothing = &mut |_: usize, _: usize| {};
            verdict_verdicts::classify_findings(
                &mut asked, &config, &launch, &options, &evidence, &wanted, nothing,
            )
            .map_err(text)?;
        }
        _ => {
            let options = verdict_confirm::Options {
                runs: work.args.runs,
                seed: config.seed,
                jobs,
                time_limit: Some(RUN_TIME_MAX),
                ..verdict_confirm::Options::default()
            };
            let mut confirming = verdict_verdicts::Confirming {
                config: &config,
                launch: &launch,
                options: &options,
                folder: &evidence,
                progress: &mut |_, _| {},
            };
            verdict_verdicts::confirm_findings(&mut asked, &mut confirming, &wanted)
                .map_err(text)?;
        }
    }
    let race = asked.races.into_iter().find(|race| race.id == id);
    let mut verdict = race.and_then(|race| race.verdict);
    if let Some(verdict) = &mut verdict {
        name_evidence(verdict, &evidence, &evidence_name);
    }
    Ok(verdict)
}

/// The result folder may be moved: files in it are named from there.
fn name_evidence(verdict: &mut Verdict, folder: &Path, name: &str) {
    let folder = text_of_bytes(folder.as_os_str().as_encoded_bytes());
    verdict.rename_recordings(&|file| {
        let inside = file.strip_prefix(&folder);
        Some(inside.map_or_else(|| file.to_owned(), |inside| format!("{name}{inside}")))
    });
}

fn text(error: impl Display) -> String {
    error.to_string()
}
