//! Which races of a program the user wants to hear of.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use verdict_filter::{Date, Pattern, RaceFilter, Suppressions, ThreadPattern};
use verdict_findings::{CoverageNote, ProgramFindings};

use crate::CliError;

/// Filters, and a file of suppressions.
#[derive(clap::Args, Debug)]
pub(super) struct WantedArgs {
    /// Only races between these threads: numbers as in reports, or patterns for names
    #[arg(long, value_name = "THREAD", value_delimiter = ',')]
    only_threads: Vec<String>,

    /// Only races with an access in such a binary
    #[arg(long, value_name = "PATTERN")]
    only_module: Vec<String>,

    /// Only races with an access in such a function, or called by it
    #[arg(long, value_name = "PATTERN")]
    only_function: Vec<String>,

    /// No races whose functions, files, binaries or variable are like this
    #[arg(long, value_name = "PATTERN")]
    ignore: Vec<String>,

    /// A file of races that are known and not to be told for now, see docs/suppressions.md
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
}

/// What the user asked for, read and found sound before anything runs.
#[derive(Debug)]
pub(super) struct Wanted {
    filter: RaceFilter,
    suppressions: Option<Suppressions>,
}

impl WantedArgs {
    /// The first of the options that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--only-threads", self.only_threads.is_empty()),
            ("--only-module", self.only_module.is_empty()),
            ("--only-function", self.only_function.is_empty()),
            ("--ignore", self.ignore.is_empty()),
            ("--suppressions", self.suppressions.is_none()),
        ];
        options
            .iter()
            .find(|(_, absent)| !absent)
            .map(|(name, _)| *name)
    }

    pub(super) fn read(&self) -> Result<Wanted, CliError> {
        let patterns = |texts: &[String]| texts.iter().map(Pattern::new).collect();
        let threads = self.only_threads.iter();
        Ok(Wanted {
            filter: RaceFilter {
                only_threads: threads.map(|text| thread(text)).collect(),
                only_modules: patterns(&self.only_module),
                only_functions: patterns(&self.only_function),
                ignore: patterns(&self.ignore),
            },
            suppressions: self.suppressions()?,
        })
    }

    fn suppressions(&self) -> Result<Option<Suppressions>, CliError> {
        let Some(path) = &self.suppressions else {
            return Ok(None);
        };
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            CliError::bad_input(format_args!("{name}: cannot be read: {error}"))
        })?;
        let parsed = Suppressions::parse(&name, &text).map_err(|error| {
            CliError::bad_input(error).with_help("the format is described in docs/suppressions.md")
        })?;
        Ok(Some(parsed))
    }
}

fn thread(text: &str) -> ThreadPattern {
    match text.parse() {
        Ok(pattern) => pattern,
        Err(never) => match never {},
    }
}

impl Wanted {
    /// Takes away what is not wanted, marks what is suppressed, and notes what that may hide.
    pub(super) fn apply(&self, findings: &mut ProgramFindings) {
        let away = self.filter.apply(findings);
        let kinds = [
            (away.races, "race is", "races are"),
            (away.predictions, "prediction is", "predictions are"),
        ];
        for (away, one, more) in kinds.into_iter().filter(|(away, ..)| *away > 0) {
            let what = if away == 1 { one } else { more };
            findings.coverage.push(note(format!(
                "{away} {what} not told, as the options ask for"
            )));
        }
        let Some(suppressions) = &self.suppressions else {
            return;
        };
        let unused: Vec<usize> = suppressions
            .apply(findings, today())
            .iter()
            .map(|rule| rule.line)
            .collect();
        for line in unused {
            let file = suppressions.file();
            findings.coverage.push(note(format!(
                "the suppression at {file}:{line} is about none of the races of this run"
            )));
        }
    }
}

fn note(what: String) -> CoverageNote {
    CoverageNote {
        stage: "detect".to_owned(),
        what,
        help: None,
    }
}

/// Suppressions end on days; everything else here is the same every day.
fn today() -> Date {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Date::of_unix_time(now.map_or(0, |since| since.as_secs()))
}
