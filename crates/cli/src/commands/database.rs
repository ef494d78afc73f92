//! The history of the project: where it is, and what day it is.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use verdict_history::{Day, History, Log, Reading};

use crate::{CliError, Context};

const FOLDER: &str = ".verdict";

/// `--database`, for commands that remember. Flatten it into the command's arguments.
#[derive(clap::Args, Clone, Debug)]
pub struct DatabaseArgs {
    /// Where the project's known races are kept [default: .verdict here or in the nearest folder above that has one]
    #[arg(long, value_name = "FOLDER")]
    database: Option<PathBuf>,
}

impl DatabaseArgs {
    pub(crate) fn log(&self) -> Log {
        match &self.database {
            Some(folder) => Log::in_folder(folder),
            None => Log::in_folder(&nearest()),
        }
    }

    /// What is known; says so if parts of it are damaged.
    pub(crate) fn read(&self, context: &Context) -> Result<History, CliError> {
        let reading = self.log().read().map_err(CliError::bad_input)?;
        Ok(history(&reading, &self.log(), context))
    }
}

pub(crate) fn history(reading: &Reading, log: &Log, context: &Context) -> History {
    if reading.damaged > 0 {
        let path = log.path();
        context.note(format_args!(
            "{}: {} damaged lines were skipped",
            path.display(),
            reading.damaged
        ));
    }
    History::of(&reading.entries)
}

fn nearest() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let above = here.ancestors().map(|folder| folder.join(FOLDER));
    let found = above.into_iter().find(|folder| folder.is_dir());
    found.unwrap_or_else(|| Path::new(FOLDER).to_owned())
}

/// The day, in UTC.
pub(crate) fn today() -> Day {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Day::of_unix_time(since.map_or(0, |since| since.as_secs()))
}
