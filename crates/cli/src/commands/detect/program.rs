//! `verdict detect -- PROGRAM` and `verdict detect RECORDING`: the races of a run of a program.

use std::fmt::Write as _;
use std::time::Instant;

use verdict_detect::Algorithm;
use verdict_findings::{CoverageNote, ProgramFindings};
use verdict_launch::{Ending, GuestOutput, LaunchOptions, SignalPolicy};
use verdict_observe::SyncSummary;
use verdict_protocol::ExecutorConfig;
use verdict_races::{
    CloserLook, DetectRequest, Detected, FirstLook, Locks, OwnRecording, ProgramError, Run,
    detect_program, look_closer, to_findings,
};
use verdict_report::{ReportOptions, findings_text};

use super::predictions::{self, Predictions};
use super::{Args, FailOn, colours, pair_by, parts};
use crate::commands::exec::{ending, stats};
use crate::commands::replay;
use crate::commands::shown::from_here;
use crate::progress::Progress;
use crate::{CliError, Context, Exit, Format};

/// Runs the program.
pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let recording = own_recording()?;
    let config = ExecutorConfig {
        mode: recording.record(),
        sample: parts::sample(args),
        ..args.schedule.config(&args.program)
    };
    look(args, context, config, None, &recording)
}

/// Repeats a recorded run.
pub(super) fn run_again(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let (file, info) = replay::open(&args.trace)?;
    let recording = OwnRecording::of(file);
    let mode = recording.replay().map_err(CliError::cannot_run)?;
    let config = ExecutorConfig {
        mode,
        sample: parts::sample(args),
        ..replay::config(&info.header)
    };
    look(args, context, config, Some(info.instructions), &recording)
}

fn own_recording() -> Result<OwnRecording, CliError> {
    OwnRecording::new().map_err(|error| {
        CliError::cannot_run(format_args!(
            "cannot make a file for the recording: {error}"
        ))
    })
}

fn look(
    args: &Args,
    context: &Context,
    config: ExecutorConfig,
    instructions: Option<u64>,
    recording: &OwnRecording,
) -> Result<Exit, CliError> {
    let wanted = args.wanted.read()?;
    let algorithms = [Algorithm::from(args.algorithm())];
    let launch = LaunchOptions {
        signals: SignalPolicy::GuestDecides,
        recording: Some(recording.file()),
        deadline: args
            .time_limit
            .and_then(|limit| Instant::now().checked_add(limit)),
        ..LaunchOptions::default()
    };
    let again = || {
        let mode = recording.replay().map_err(|error| error.to_string())?;
        Ok(Run {
            config: ExecutorConfig {
                mode,
                ..config.clone()
            },
            launch: LaunchOptions {
                output: GuestOutput::Discarded,
                deadline: None,
                ..launch.clone()
            },
        })
    };
    let request = DetectRequest {
        config: config.clone(),
        launch: launch.clone(),
        again: &again,
        algorithms: &algorithms,
        by: pair_by(args),
        locks: Locks::Seen,
        orders: args.memory_orders.into(),
        first_look: match args.explain_sync {
            true => FirstLook::Whole,
            false => FirstLook::Sifted,
        },
        instructions,
    };
    let mut progress = Progress::new(context);
    let detected = detect_program(&request, &mut |far| progress.look(far));
    let ended_at = Instant::now();
    let mut detected = detected.map_err(failed)?;
    if ending::never_began(&detected.ending) {
        return ending::to_exit(&detected.ending, &request.launch);
    }
    let (look, note) = look_again(&detected, &request, &mut progress);
    let predictions = match args.algorithm {
        None => predictions::look_for(&request, &mut detected, &config, &mut progress),
        Some(_) => Predictions::default(),
    };
    drop(progress);
    let mut findings = explained(&detected, &look, &config);
    findings.coverage.extend(note);
    findings.coverage.extend(parts::note(args, &detected));
    predictions.put_beside(&mut findings);
    let time_was_up = launch.deadline.is_some_and(|deadline| ended_at >= deadline);
    if time_was_up {
        findings.coverage.push(CoverageNote {
            stage: "detect".to_owned(),
            what: "the program was ended when its time was up: what it would have done later is not known".to_owned(),
            help: Some("raise --time-limit to see more of it".to_owned()),
        });
    }
    wanted.apply(&mut findings);
    tell(args, context, &detected, &findings)?;
    if !(time_was_up && detected.ending == Ending::Killed) {
        check_ending(&detected, &request, context)?;
    }
    let told = findings.races.iter().any(|race| !race.is_suppressed());
    Ok(match (told, args.fail_on) {
        (true, FailOn::Any) => Exit::Races,
        _ => Exit::Clean,
    })
}

/// What was found, in names and lines. To read debug information takes as much memory as to look at a run: on a thread, as looks are,
/// it is given what they are done with, which the first thread would not be.
pub(super) fn explained(
    detected: &Detected,
    look: &CloserLook,
    config: &ExecutorConfig,
) -> ProgramFindings {
    std::thread::scope(|scope| {
        let explaining = scope.spawn(|| to_findings(detected, look, config));
        let explained = explaining.join();
        explained.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The second run. Without it, there is still what the first one has shown.
fn look_again(
    detected: &Detected,
    request: &DetectRequest<'_>,
    progress: &mut Progress,
) -> (CloserLook, Option<CoverageNote>) {
    if detected.findings.iter().all(|found| found.races.is_empty()) {
        return (CloserLook::default(), None);
    }
    let looked = (request.again)().and_then(|again| {
        let looked = look_closer(&again, detected, &mut |far| progress.look(far));
        looked.map_err(|error| error.to_string())
    });
    match looked {
        Ok(look) => (look, None),
        Err(error) => {
            let note = CoverageNote {
                stage: "detect".to_owned(),
                what: format!("the run could not be repeated to look closer at its races: {error}"),
                help: None,
            };
            (CloserLook::default(), Some(note))
        }
    }
}

fn failed(error: ProgramError) -> CliError {
    match error {
        ProgramError::Launch(error) => CliError::cannot_run(error),
        ProgramError::Detect(error) => CliError::cannot_run(error),
        ProgramError::Whole { .. } | ProgramError::Again { .. } => CliError::cannot_run(error),
    }
}

fn tell(
    args: &Args,
    context: &Context,
    detected: &Detected,
    findings: &ProgramFindings,
) -> Result<(), CliError> {
    let shown = ReportOptions {
        folder: "",
        since: None,
    };
    match (&args.output, args.format.format) {
        (Some(path), Format::Json) => stats::write(&findings.to_json(), path, context)?,
        (Some(path), Format::Text) => {
            let text = findings_text(&from_here(findings), shown, &|_, text| text.to_owned());
            stats::write(&text, path, context)?;
        }
        (None, format) => context.report(|out, paint| match format {
            Format::Json => out.write_all(findings.to_json().as_bytes()),
            Format::Text => out
                .write_all(findings_text(&from_here(findings), shown, &colours(paint)).as_bytes()),
        })?,
    }
    if args.explain_sync {
        context.remark(&sync_text(&detected.seen.sync));
    }
    Ok(())
}

/// A run that the engine could not finish is an error; one that crashed or failed is worth a remark.
fn check_ending(
    detected: &Detected,
    request: &DetectRequest<'_>,
    context: &Context,
) -> Result<(), CliError> {
    match ending::to_exit(&detected.ending, &request.launch) {
        Ok(_) => Ok(()),
        Err(CliError::Problem {
            exit: Exit::Guest(_),
            what,
            ..
        }) => {
            context.note(what);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn sync_text(sync: &SyncSummary) -> String {
    let mut text = String::from("What was taken for synchronisation, and how often:\n");
    for (rule, count) in &sync.rules {
        let _ = writeln!(text, "  {count:>12}  {}", rule.describe());
    }
    text.push_str("Plain instructions that are atomic by their source:\n");
    for (how, count) in &sync.atomic_by {
        let _ = writeln!(text, "  {count:>12}  {how}");
    }
    let idle = sync.functions.iter().filter(|(_, count)| **count == 0);
    let idle: Vec<&str> = idle.map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(
        text,
        "Known functions that were not called: {}",
        idle.join(", ")
    );
    text
}
