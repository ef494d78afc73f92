//! `verdict __executor`: this very program as an executor, started by a controller and by nobody else.

use std::ffi::OsString;
use std::process::ExitCode;

use verdict_launch::EXECUTOR_COMMAND;
use verdict_loader::{Layout, Lookup, Request};
use verdict_protocol::{EngineFault, FrameError, Outcome, Refusal, Report, ReportWriter, Stats};

use crate::Exit;

/// Whether these arguments make us an executor. Looked at before anything else: an executor has an empty environment,
/// the guest's signals to look after, and no use for the table of flags.
pub(crate) fn is_wanted(arguments: &[OsString]) -> bool {
    arguments
        .get(1)
        .is_some_and(|word| word == EXECUTOR_COMMAND)
}

/// Runs the guest. Comes back only if the arguments are not a controller's.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let number = |at: usize| arguments.get(at)?.to_str()?.parse::<i32>().ok();
    match (number(2), number(3), number(4)) {
        (Some(config), Some(report), Some(status)) if arguments.len() == 5 => {
            interim(config, report, status)
        }
        _ => {
            eprintln!(
                "error: `verdict {EXECUTOR_COMMAND}` is for verdict itself\nhelp: use `verdict exec`"
            );
            Exit::BadInput.into()
        }
    }
}

/// Until the engine's executor is linked in: refuses what it would refuse, and runs nothing.
fn interim(config: i32, report: i32, _status: i32) -> ExitCode {
    let told = verdict_reexec::settle()
        .map_err(FrameError::Io)
        .and_then(|()| {
            let config = verdict_protocol::read_config(&open(config)?)?;
            let outcome = outcome(&config);
            ReportWriter::new(open(report)?).write(&Report {
                outcome,
                stats: Stats::default(),
            })
        });
    if told.is_ok() {
        ExitCode::SUCCESS
    } else {
        Exit::CannotRun.into()
    }
}

fn open(number: i32) -> std::io::Result<std::fs::File> {
    let path = format!("/proc/self/fd/{number}");
    std::fs::File::options().read(true).write(true).open(path)
}

fn outcome(config: &verdict_protocol::ExecutorConfig) -> Outcome {
    let request = Request {
        program: &config.program,
        lookup: Lookup::Search(config.search_path()),
        argv: &config.argv,
        env: &config.env,
    };
    let layout = Layout {
        pie_base: 0x1000_0000,
        interp_base: 0x2000_0000,
        lowest: 0x1_0000,
        highest: 0x7fff_0000,
        reserved: Vec::new(),
        stack_limit: 8 << 20,
    };
    match verdict_loader::plan(&request, &layout) {
        Err(refusal) => Outcome::Refused(Refusal {
            message: refusal.to_string(),
            call: None,
            at: Vec::new(),
        }),
        Ok(_) => Outcome::EngineFault(EngineFault {
            message: "this build has no engine".into(),
            guest: None,
        }),
    }
}
