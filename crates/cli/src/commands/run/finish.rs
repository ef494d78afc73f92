//! The last stage: what was found is compared with earlier runs, remembered, and told.

use std::io::Write;
use std::path::Path;

use verdict_findings::{CoverageNote, ProgramFindings, Race, text_of_bytes};
use verdict_history::{Comparison, Entry, History, Run, Seen, Severity};
use verdict_report::{ReportOptions, findings_html, findings_sarif, findings_text, headline};

use super::Work;
use crate::commands::database::{history, today};
use crate::{CliError, Exit};

/// Where what has changed since earlier runs is kept, in the result folder.
const SINCE: &str = "since.json";

pub(super) fn report(work: &Work, undone: Vec<CoverageNote>) -> Result<Exit, CliError> {
    let mut findings = work.folder.results().map_err(CliError::bad_input)?;
    findings.coverage.extend(undone);
    let (since, history) = remember(work, &findings)?;
    history.apply_marks(&mut findings, today());
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
    let page = work.folder.path().join("report.html");
    work.context
        .note(format_args!("\nthe whole report: {}", page.display()));
    Ok(work.args.fail_on.exit(&findings))
}

/// Adds the run to the project's history, once: a run that is resumed after that has been told already.
fn remember(work: &Work, findings: &ProgramFindings) -> Result<(Comparison, History), CliError> {
    let log = work.args.database.log();
    let told: Option<Comparison> = work.folder.data(SINCE).map_err(CliError::bad_input)?;
    if let Some(since) = told {
        let reading = log.read().map_err(CliError::bad_input)?;
        return Ok((since, history(&reading, &log, work.context)));
    }
    let (since, history) = log
        .update(|reading| {
            let history = history(reading, &log, work.context);
            let since = history.compare(findings);
            (Some(Entry::Run(run(findings))), (since, history))
        })
        .map_err(CliError::bad_input)?;
    work.folder
        .keep_data(SINCE, &since)
        .map_err(CliError::bad_input)?;
    Ok((since, history))
}

fn run(findings: &ProgramFindings) -> Run {
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
    }
}

fn write(path: &Path, text: &str, work: &Work) -> Result<(), CliError> {
    let mut file = work.context.create_file(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| CliError::writing(path.display(), &error))
}
