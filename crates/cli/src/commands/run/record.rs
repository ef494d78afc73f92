//! The first stage: the program runs, and what is needed to repeat that is kept.

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use verdict_launch::{Ending, LaunchOptions};
use verdict_protocol::{ExecutorConfig, Mode};

use super::Work;
use crate::CliError;
use crate::commands::exec::ending;
use crate::exit::Exit;

pub(super) fn record(work: &Work) -> Result<(), CliError> {
    let path = work.folder.recording_in_the_making();
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = file.map_err(|error| CliError::writing(path.display(), &error))?;
    let config = ExecutorConfig {
        mode: Mode::Record {
            fd: -1,
            attach_files: false,
            max_size: None,
            resume: None,
        },
        ..work.args.schedule.config(&work.args.program)
    };
    let options = LaunchOptions {
        recording: Some(Arc::new(file)),
        deadline: work.record_until,
        ..LaunchOptions::default()
    };
    let ended = verdict_launch::run(&config, &options).map_err(CliError::cannot_run)?;
    let time_was_up = work
        .record_until
        .is_some_and(|until| Instant::now() >= until);
    if !(time_was_up && ended == Ending::Killed) {
        tell_guest_errors(ending::to_exit(&ended, &options), work)?;
    }
    work.folder.finish_recording().map_err(CliError::bad_input)
}

/// That a program crashes is no reason not to look for its races; the user has seen it.
pub(super) fn accept_guest_errors(ended: Result<Exit, CliError>) -> Result<(), CliError> {
    match ended {
        Err(CliError::Problem {
            exit: Exit::Guest(_),
            ..
        })
        | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The same, told.
fn tell_guest_errors(ended: Result<Exit, CliError>, work: &Work) -> Result<(), CliError> {
    if let Err(CliError::Problem {
        exit: Exit::Guest(_),
        what,
        ..
    }) = &ended
    {
        work.context.note(what);
    }
    accept_guest_errors(ended)
}
