//! `verdict report`: what a run found, told again in any form.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use verdict_findings::{ProgramFindings, text_of_bytes};
use verdict_history::Comparison;
use verdict_report::{
    ReportOptions, findings_github, findings_html, findings_sarif, findings_text,
};
use verdict_results::ResultFolder;

use super::database::{DatabaseArgs, today};
use super::evidence;
use super::fail_on::FailOn;
use super::shown::from_here;
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict report verdict-out
  verdict report verdict-out --html
  verdict report verdict-out --sarif=races.sarif --html=races.html
  verdict report verdict-out --json | jq '.races[].class'
  verdict report verdict-out --github --fail-on spec-violated

FILE `-` is standard output. Without any form, text is printed.";

/// Which results, and in which forms.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The result folder, a file of races or verdicts (JSON), or what `verdict evidence` has made
    #[arg(value_name = "DIR")]
    results: PathBuf,

    /// Text for people [default: standard output]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    text: Option<OsString>,

    /// One page for a browser that needs nothing else [default: report.html in the result folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    html: Option<OsString>,

    /// SARIF 2.1.0, for tools that collect results [default: report.sarif in the result folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    sarif: Option<OsString>,

    /// Everything, as data [default: standard output]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<OsString>,

    /// Annotations for the log of a GitHub workflow [default: standard output]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    github: Option<OsString>,

    #[command(flatten)]
    fail_on: FailOn,

    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let (mut findings, since) = load(&args.results)?;
    let history = args.database.read(context)?;
    history.apply_marks(&mut findings, today());
    let folder = shown_folder(&args.results);
    let options = ReportOptions {
        folder: &folder,
        since: since.as_ref(),
    };
    let files = [
        (&args.html, "report.html", Form::Html),
        (&args.sarif, "report.sarif", Form::Sarif),
        (&args.json, "", Form::Json),
        (&args.github, "", Form::Github),
        (&args.text, "", Form::Text),
    ];
    let shown = from_here(&findings);
    let of = |form: Form| match form {
        Form::Json => &findings,
        _ => &shown,
    };
    let nothing_asked = files.iter().all(|(file, ..)| file.is_none());
    if nothing_asked {
        print(&shown, options, Form::Text, context)?;
    }
    for (file, name, form) in files {
        match file.as_deref().map(Path::new) {
            None => {}
            Some(file) if file == Path::new("-") => print(of(form), options, form, context)?,
            // Given without a file.
            Some(file) if file == Path::new("") => {
                let file = beside(&args.results, name);
                write(&file, of(form), options, form, context)?;
            }
            Some(file) => write(file, of(form), options, form, context)?,
        }
    }
    Ok(args.fail_on.exit(&findings))
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Html,
    Sarif,
    Json,
    Github,
}

/// Of a folder, what the run kept; of a file, what is in it.
fn load(results: &Path) -> Result<(ProgramFindings, Option<Comparison>), CliError> {
    if verdict_recording::is_recording(results) {
        return Ok((evidence::findings(results)?, None));
    }
    if results.is_file() {
        let bytes = std::fs::read(results).map_err(|error| {
            CliError::bad_input(format_args!(
                "{}: cannot be read: {error}",
                results.display()
            ))
        })?;
        let findings = ProgramFindings::from_json(&bytes)
            .map_err(|error| CliError::bad_input(format_args!("{}: {error}", results.display())))?;
        return Ok((findings, None));
    }
    let folder = ResultFolder::open(results).map_err(|error| {
        CliError::bad_input(error).with_help("`verdict run -- PROGRAM` makes a result folder")
    })?;
    let findings = folder.results().map_err(CliError::bad_input)?;
    let since = folder.data("since.json").map_err(CliError::bad_input)?;
    Ok((findings, since))
}

/// The folder that the commands of a report start from.
fn shown_folder(results: &Path) -> String {
    let folder = if results.is_file() {
        results.parent().unwrap_or(Path::new(""))
    } else {
        results
    };
    text_of_bytes(folder.as_os_str().as_encoded_bytes())
}

fn beside(results: &Path, name: &str) -> PathBuf {
    if results.is_file() {
        results.with_file_name(name)
    } else {
        results.join(name)
    }
}

fn print(
    findings: &ProgramFindings,
    options: ReportOptions,
    form: Form,
    context: &Context,
) -> Result<(), CliError> {
    context.report(|out, paint| {
        let text = match form {
            Form::Text => findings_text(findings, options, &paint.tones()),
            other => made(findings, options, other),
        };
        out.write_all(text.as_bytes())
    })
}

fn write(
    path: &Path,
    findings: &ProgramFindings,
    options: ReportOptions,
    form: Form,
    context: &Context,
) -> Result<(), CliError> {
    let mut file = context.create_file(path)?;
    let written = file.write_all(made(findings, options, form).as_bytes());
    written
        .and_then(|()| file.finish())
        .map_err(|error| CliError::writing(path.display(), &error))?;
    context.note(format_args!("{}: written", path.display()));
    Ok(())
}

/// Without colour.
fn made(findings: &ProgramFindings, options: ReportOptions, form: Form) -> String {
    match form {
        Form::Text => findings_text(findings, options, &|_, text| text.to_owned()),
        Form::Html => findings_html(findings, options),
        Form::Sarif => findings_sarif(findings, options),
        Form::Json => findings.to_json(),
        Form::Github => findings_github(findings, options),
    }
}
