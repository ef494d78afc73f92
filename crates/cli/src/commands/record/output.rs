//! The recording's file: it has its name from the start, because it is useful from the start.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;

use verdict_recording::{EndOutcome, Ending, ReadError, Summary};

use crate::commands::exec::stats::grouped;
use crate::{CliError, Context};

/// A recording that is about to be made. What was there before stays until the executor begins to write.
pub(crate) struct RecordingFile {
    path: PathBuf,
    file: Arc<File>,
    /// There was no such file.
    is_new: bool,
}

impl RecordingFile {
    pub(crate) fn create(path: PathBuf) -> Result<Self, CliError> {
        let is_new = !path.exists();
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = opened.map_err(|error| CliError::writing(path.display(), &error))?;
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            let what = format!("{}: cannot hold a recording: not a file", path.display());
            return Err(CliError::bad_input(what).with_help("name a file with -o"));
        }
        Ok(Self {
            path,
            file: Arc::new(file),
            is_new,
        })
    }

    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Says what is in it now that the run is over.
    pub(crate) fn tell(self, context: &Context) {
        let name = self.path.display();
        let summary = File::open(&self.path)
            .map_err(ReadError::Io)
            .and_then(Summary::of);
        match summary {
            Ok(summary) => {
                let size = format!(
                    "{} bytes, {:.4} bits per instruction",
                    grouped(summary.bytes),
                    summary.bits_per_instruction()
                );
                let instructions = grouped(summary.instructions);
                context.note(match cut(&summary.ending) {
                    None => format!("recorded {instructions} instructions in {name} ({size})"),
                    Some(why) => format!(
                        "recorded the first {instructions} instructions in {name} ({size}): {why}"
                    ),
                });
            }
            Err(ReadError::NothingRecorded) if self.is_new => {
                // Best effort: a file without anything in it says so itself.
                let _ = fs::remove_file(&self.path);
            }
            Err(ReadError::NothingRecorded) => {}
            Err(error) => context.note(format_args!("{name} {error}")),
        }
    }
}

/// Why there is no more in it; `None` if everything is.
pub(crate) fn cut(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Cut { .. } => Some("its writer was killed or the disk was full".to_owned()),
        Ending::Complete(end) => match end.outcome {
            EndOutcome::SizeLimit { max_size } => {
                Some(format!("--max-size {max_size} was reached"))
            }
            _ => None,
        },
    }
}
