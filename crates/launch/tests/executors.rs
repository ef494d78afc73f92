//! Every way an executor can end, with a shell in the executor's place.
#![forbid(unsafe_code)]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use verdict_launch::{Ending, LaunchError, LaunchOptions, SignalPolicy, run, run_until_heard};
use verdict_protocol::{ExecutorConfig, Outcome, Report, ReportWriter, Stats};

fn config() -> ExecutorConfig {
    ExecutorConfig::new(b"/bin/true".to_vec(), vec![b"true".to_vec()], Vec::new())
}

/// An executor that is a shell script. `$1` is the test's folder; `$2`, `$3` and `$4` are config, report and status.
fn script(folder: &Path, text: &str) -> LaunchOptions {
    LaunchOptions {
        executor: "/bin/sh".into(),
        executor_arguments: vec!["-c".into(), text.into(), "sh".into(), folder.into()],
        tick: Duration::from_millis(20),
        ..LaunchOptions::default()
    }
}

fn run_script(text: &str) -> Ending {
    let folder = TempDir::new().unwrap();
    run(&config(), &script(folder.path(), text)).unwrap()
}

fn report() -> Report {
    Report {
        outcome: Outcome::Exited { code: 7 },
        stats: Stats::default(),
    }
}

fn write_report(folder: &Path) {
    let file = fs::File::create(folder.join("report")).unwrap();
    ReportWriter::new(file).write(&report()).unwrap();
}

#[test]
fn what_the_executor_reports_is_believed_whatever_its_exit_code() {
    let folder = TempDir::new().unwrap();
    write_report(folder.path());
    let options = script(
        folder.path(),
        "/bin/cat $1/report > /proc/self/fd/$3; exit 9",
    );
    assert_eq!(
        run(&config(), &options).unwrap(),
        Ending::Reported(Box::new(report()))
    );
}

#[test]
fn the_executor_finds_its_config_and_an_empty_environment() {
    let folder = TempDir::new().unwrap();
    let text = "/bin/cat /proc/self/fd/$2 > $1/config; /usr/bin/tr '\\0' '\\n' < /proc/self/environ > $1/environment";
    run(&config(), &script(folder.path(), text)).unwrap();
    let read = |name| fs::File::open(folder.path().join(name)).unwrap();
    assert_eq!(
        verdict_protocol::read_config(&read("config")).unwrap(),
        config()
    );
    // A shell adds variables of its own to what it starts; none of ours may be among them.
    let environment = fs::read_to_string(folder.path().join("environment")).unwrap();
    assert!(environment.lines().all(|v| {
        ["PWD=", "OLDPWD=", "SHLVL=", "_="]
            .iter()
            .any(|own| v.starts_with(own))
    }));
}

#[test]
fn our_descriptors_are_out_of_the_way() {
    let folder = TempDir::new().unwrap();
    run(
        &config(),
        &script(
            folder.path(),
            "echo $2 $3 $4 > $1/numbers; echo /proc/self/fd/* > $1/open",
        ),
    )
    .unwrap();
    let numbers = fs::read_to_string(folder.path().join("numbers")).unwrap();
    assert!(
        numbers
            .split_whitespace()
            .all(|n| n.parse::<u32>().unwrap() >= 1000),
        "{numbers}"
    );
    let open = fs::read_to_string(folder.path().join("open")).unwrap();
    // The shell's own redirection and directory take a descriptor or two; the test runner may leave more open, but none
    // of the low ones may be ours.
    for number in numbers.split_whitespace() {
        assert!(
            open.split_whitespace()
                .any(|path| path == format!("/proc/self/fd/{number}")),
            "{open}"
        );
    }
}

#[test]
fn killed() {
    assert_eq!(run_script("kill -KILL $$"), Ending::Killed);
}

#[test]
fn crashed() {
    let how = |text| match run_script(text) {
        Ending::Crashed { how } => how,
        other => panic!("{other:?}"),
    };
    assert_eq!(how("kill -SEGV $$"), "crashed with signal 11");
    assert_eq!(how("exit 5"), "ended with code 5 and without a report");
    assert_eq!(
        how("echo some sixteen bytes and more > /proc/self/fd/$3"),
        "ended with code 0, and of its report what was written is damaged (it does not begin as it should)"
    );
}

#[test]
fn interrupted_before_the_guest_began() {
    let ending = run_script("kill -INT $$");
    let Ending::Reported(report) = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(
        report.outcome,
        Outcome::Signalled {
            signal: 2,
            fault: None
        }
    );
}

#[test]
fn silence_is_taken_for_death() {
    assert_eq!(run_script("while :; do :; done"), Ending::Hung);
}

#[test]
fn no_executor_is_an_error() {
    let options = LaunchOptions {
        executor: "/no/such/executor".into(),
        ..LaunchOptions::default()
    };
    assert!(matches!(
        run(&config(), &options),
        Err(LaunchError::Spawn(_))
    ));
}

/// The tick is too long to be what ends it.
#[test]
fn an_executor_that_nobody_listens_to_any_more_is_ended() {
    let folder = TempDir::new().unwrap();
    let options = LaunchOptions {
        tick: Duration::from_secs(1000),
        ..script(folder.path(), "while :; do :; done")
    };
    let heard = run_until_heard(&config(), &options, |_| 7);
    assert_eq!(heard.unwrap(), 7);
}

#[test]
fn an_executor_that_is_listened_to_ends_by_itself() {
    let folder = TempDir::new().unwrap();
    let options = script(folder.path(), "exit 5");
    let heard = run_until_heard(&config(), &options, |mut told| {
        let mut all = Vec::new();
        told.read_to_end(&mut all).map(|_| all)
    });
    assert_eq!(heard.unwrap().unwrap(), b"");
}

/// Ctrl-C and SIGTERM reach this very process; the run goes on until the executor ends it.
#[test]
fn the_guest_decides_about_signals() {
    let folder = TempDir::new().unwrap();
    let text = "trap 'exit 5' TERM; kill -INT $PPID; kill -QUIT $PPID; kill -TERM $PPID; while :; do :; done";
    let options = LaunchOptions {
        signals: SignalPolicy::GuestDecides,
        ..script(folder.path(), text)
    };
    let ending = run(&config(), &options).unwrap();
    assert_eq!(
        ending,
        Ending::Crashed {
            how: "ended with code 5 and without a report".into()
        }
    );
}
