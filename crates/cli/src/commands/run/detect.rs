//! The second stage: the recorded run is repeated with every access observed, and detectors look on.

use std::sync::Arc;

use verdict_detect::PairBy;
use verdict_launch::{GuestOutput, LaunchOptions};
use verdict_observe::Orders;
use verdict_protocol::{ExecutorConfig, Mode};
use verdict_races::{
    DetectRequest, FirstLook, Locks, ProgramError, Run, detect_program, look_closer, to_findings,
};
use verdict_results::Stage;

use super::record::accept_guest_errors;
use super::{Work, predictions};
use crate::CliError;
use crate::commands::exec::ending;
use crate::commands::replay;
use crate::progress::look_text;

pub(super) fn detect(work: &Work) -> Result<(), CliError> {
    let (file, info) = replay::open(&work.folder.recording())?;
    let config = ExecutorConfig {
        mode: Mode::Replay {
            fd: -1,
            until: None,
            replaced: 0,
        },
        ..replay::config(&info.header)
    };
    let launch = LaunchOptions {
        recording: Some(Arc::new(file)),
        output: GuestOutput::Discarded,
        ..LaunchOptions::default()
    };
    // From its beginning again.
    let again = || {
        let opened = replay::open(&work.folder.recording());
        let (file, _) = opened.map_err(|_| "the recording cannot be read again".to_owned())?;
        Ok(Run {
            config: config.clone(),
            launch: LaunchOptions {
                recording: Some(Arc::new(file)),
                ..launch.clone()
            },
        })
    };
    let request = DetectRequest {
        config: config.clone(),
        launch: launch.clone(),
        again: &again,
        algorithms: predictions::algorithms(info.instructions),
        by: PairBy::Site,
        locks: Locks::Seen,
        orders: Orders::default(),
        first_look: FirstLook::Sifted,
        instructions: Some(info.instructions),
    };
    let show = |far| work.display.done(&look_text(far));
    let detected = detect_program(&request, &mut { show });
    let detected = detected.map_err(|error| match error {
        ProgramError::Launch(error) => CliError::cannot_run(error),
        ProgramError::Detect(error) => CliError::cannot_run(error),
        ProgramError::Whole { .. } | ProgramError::Again { .. } => CliError::cannot_run(error),
    })?;
    accept_guest_errors(ending::to_exit(&detected.ending, &request.launch))?;
    // Without a closer look, there is still what the first one has shown.
    let look = again().and_then(|again| {
        look_closer(&again, &detected, &mut { show }).map_err(|error| error.to_string())
    });
    work.display.clear();
    let look = look.unwrap_or_default();
    let mut findings = to_findings(&detected, &look, &config);
    predictions::put_aside(&mut findings, info.instructions, work)?;
    work.folder
        .finish(Stage::Detect, &findings)
        .map_err(CliError::bad_input)
}
