//! The last stage: what was found is compared with earlier runs, remembered, and told.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use verdict_findings::{CoverageNote, ProgramFindings, Race, text_of_bytes};
use verdict_history::{Comparison, Entry, History, Run, Seen, Severity};
use verdict_report::{ReportOptions, findings_html, findings_sarif, findings_text, headline};

use super::Work;
use crate::commands::database::{history, today};
use crate::commands::shown::from_here;
use crate::{CliError, Exit};

/// Where what has changed since earlier runs is kept, in the result folder.
const SINCE: &str = "since.json";
/// Where the run's token is kept, in the result folder.
const TOKEN: &str = "token.json";

pub(super) fn report(work: &Work, undone: Vec<CoverageNote>) -> Result<Exit, CliError> {
    let mut findings = work.folder.results().map_err(CliError::bad_input)?;
    findings.coverage.extend(undone);
    let (since, history) = remember(work, &findings)?;
    history.apply_marks(&mut findings, today());
    let findings = from_here(&findings);
    let folder = text_of_bytes(work.folder.path().as_os_str().as_encoded_bytes());
    let options = ReportOptions {
        folder: &folder,
        since: Some(&since),
    };
    for (name, text) in [
        ("report.html", findings_html(&findings, options)),
        ("report.sarif", findings_sarif(&findings, options)),
    ] {
        write(&work.folder.path().join(name), &text, work)?;
    }
    work.context.report(|out, paint| {
        out.write_all(findings_text(&findings, options, &paint.tones()).as_bytes())
    })?;
    if findings.races.is_empty() {
        work.context.note(
            "\nno accesses raced in this execution; others may, under another schedule: `--schedule random --seed 1` tries one",
        );
    }
    let page = work.folder.path().join("report.html");
    work.context
        .note(format_args!("\nthe whole report: {}", page.display()));
    Ok(work.args.fail_on.exit(&findings))
}

/// Adds the run to the project's history, once, however often it is interrupted and resumed; and compares it with what was
/// there before.
fn remember(work: &Work, findings: &ProgramFindings) -> Result<(Comparison, History), CliError> {
    let token = token(work)?;
    let log = work.args.database.log();
    let (since, history) = log
        .update(|reading| {
            let since = History::of(reading.before(&token)).compare(findings);
            let history = history(reading, &log, work.context);
            let entry = (!reading.has(&token)).then(|| Entry::Run(run(findings, &token)));
            (entry, (since, history))
        })
        .map_err(CliError::bad_input)?;
    let kept = work.folder.keep_data(SINCE, &since);
    kept.map_err(CliError::bad_input)?;
    Ok((since, history))
}

/// What tells this run from every other.
fn token(work: &Work) -> Result<String, CliError> {
    if let Some(token) = work.folder.data(TOKEN).map_err(CliError::bad_input)? {
        return Ok(token);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let moment = now.map_or(0, |now| now.as_nanos());
    let token = format!("{moment:x}-{:x}", std::process::id());
    let kept = work.folder.keep_data(TOKEN, &token);
    kept.map_err(CliError::bad_input)?;
    Ok(token)
}

fn run(findings: &ProgramFindings, token: &str) -> Run {
    let seen = |race: &Race| Seen {
        id: race.id.clone(),
        severity: Severity::of(race),
        headline: headline(race),
    };
    Run {
        day: today(),
        program: findings.program.path.clone(),
        args: findings.program.args.clone(),
        races: findings.races.iter().map(seen).collect(),
        token: token.to_owned(),
    }
}

fn write(path: &Path, text: &str, work: &Work) -> Result<(), CliError> {
    let mut file = work.context.create_file(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| CliError::writing(path.display(), &error))
}
