//! `verdict evidence`: one file that shows a race to somebody else.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use verdict_findings::{ProgramFindings, Race, bytes_of_text};
use verdict_recording::{Document, PackError};
use verdict_results::ResultFolder;

use super::record;
use super::run::DEFAULT_FOLDER;
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict evidence 3f9a2c
  verdict evidence 3f9a2c -o crash.vrec
  verdict evidence 3f9a2c --results queue-results --recording confirmed

The file holds the recording, the program and its libraries, and the report. Whoever gets
it sees the race with `verdict replay FILE`, and reads about it with `verdict report FILE`.
The machine needs the same kind of CPU, and nothing else.";

/// What findings are called inside a recording.
const FINDINGS: &str = "findings.json";

/// Which race, and where to put what shows it.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The race's id, or its beginning
    #[arg(value_name = "ID")]
    id: String,

    /// The file to make; without this, named after the race: `race-3f9a2c.vrec`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The result folder that tells of the race
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    results: PathBuf,

    /// Of several recordings, the one whose name has this in it; without this, the one that shows the worst
    #[arg(long, value_name = "NAME")]
    recording: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let folder = ResultFolder::open(&args.results).map_err(|error| {
        CliError::bad_input(error).with_help("`verdict run -- PROGRAM` makes a result folder")
    })?;
    let findings = folder.results().map_err(CliError::bad_input)?;
    let race = find(&findings, args)?;
    let name = choose(race, args)?;
    let source = args
        .results
        .join(Path::new(OsStr::from_bytes(&bytes_of_text(name))));
    let output = match &args.output {
        Some(path) => path.clone(),
        None => format!("race-{}.vrec", race.id).into(),
    };
    let documents = vec![Document {
        name: FINDINGS.into(),
        bytes: about(&findings, race, name).to_json().into_bytes(),
    }];
    pack(&source, &output, documents, context)?;
    context.note(format_args!(
        "{0}: written; `verdict replay {0}` shows it, `verdict report {0}` tells about it",
        output.display()
    ));
    Ok(Exit::Clean)
}

fn find<'a>(findings: &'a ProgramFindings, args: &Args) -> Result<&'a Race, CliError> {
    let wanted = |race: &&Race| !args.id.is_empty() && race.id.starts_with(&args.id);
    let found: Vec<&Race> = findings.races.iter().filter(wanted).collect();
    let told = format!("`verdict report {}` tells the ids", args.results.display());
    match found.as_slice() {
        [race] => Ok(race),
        [] => {
            let problem = format!("no race of these results has the id `{}`", args.id);
            Err(CliError::bad_input(problem).with_help(told))
        }
        several => {
            let exact = several.iter().find(|race| race.id == args.id);
            exact.copied().ok_or_else(|| {
                let problem = format!("`{}` is the beginning of {} races", args.id, several.len());
                CliError::bad_input(problem).with_help(told)
            })
        }
    }
}

/// The recording that shows the race, as the findings name it.
fn choose<'a>(race: &'a Race, args: &Args) -> Result<&'a str, CliError> {
    let verdict = race.verdict.as_ref();
    let mut names = verdict
        .map(|verdict| verdict.recordings())
        .unwrap_or_default();
    let all = names.len();
    names.retain(|name| {
        args.recording
            .as_deref()
            .is_none_or(|part| name.contains(part))
    });
    names.first().copied().ok_or_else(|| match all {
        0 => CliError::bad_input(format_args!(
            "race {} has no recording that shows it",
            race.id
        ))
        .with_help("`verdict run` makes one for each race that it confirms or classifies"),
        _ => CliError::bad_input(format_args!(
            "no recording of race {} has `{}` in its name",
            race.id,
            args.recording.as_deref().unwrap_or_default()
        )),
    })
}

/// What is known of this race alone.
fn about(findings: &ProgramFindings, race: &Race, recording: &str) -> ProgramFindings {
    let mut race = race.clone();
    if let Some(verdict) = &mut race.verdict {
        verdict.rename_recordings(&|name| (name == recording).then(|| name.to_owned()));
    }
    ProgramFindings {
        races: vec![race],
        predictions: Vec::new(),
        ..findings.clone()
    }
}

fn pack(
    source: &Path,
    output: &Path,
    documents: Vec<Document>,
    context: &Context,
) -> Result<(), CliError> {
    let (mut recording, info) = record::open(source)?;
    let rewound = recording.seek(SeekFrom::Start(0));
    rewound.map_err(|error| {
        CliError::bad_input(format_args!(
            "{}: cannot be read again: {error}",
            source.display()
        ))
    })?;
    let mut file = context.create_file(output)?;
    match verdict_recording::pack(recording, &info, &mut file, documents) {
        Ok(()) => file
            .finish()
            .map_err(|error| CliError::writing(output.display(), &error)),
        Err(error @ PackError::Write(_)) => Err(CliError::bad_input(format_args!(
            "{}: {error}",
            output.display()
        ))),
        Err(error) => Err(CliError::cannot_run(format_args!(
            "{}: {error}",
            source.display()
        ))),
    }
}

/// What was packed with a recording, with the recording under the name it has now.
pub(crate) fn findings(path: &Path) -> Result<ProgramFindings, CliError> {
    let opened = File::open(path).map_err(verdict_recording::ReadError::Io);
    let reader = opened.and_then(verdict_recording::Reader::open);
    let reader =
        reader.map_err(|error| CliError::bad_input(format_args!("{} {error}", path.display())))?;
    let documents = &reader.header().documents;
    let Some(document) = documents.iter().find(|document| document.name == FINDINGS) else {
        return Err(CliError::bad_input(format_args!(
            "{} is a recording without a report",
            path.display()
        ))
        .with_help("`verdict replay` repeats it, `verdict detect` finds its races"));
    };
    let mut findings = ProgramFindings::from_json(&document.bytes)
        .map_err(|error| CliError::bad_input(format_args!("{}: {error}", path.display())))?;
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let name = verdict_findings::text_of_bytes(name);
    for verdict in findings
        .races
        .iter_mut()
        .filter_map(|race| race.verdict.as_mut())
    {
        verdict.rename_recordings(&|_| Some(name.clone()));
    }
    Ok(findings)
}
