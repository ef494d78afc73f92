//! Executions that leave a recording: they find what it had, go their own way, and nothing outside is seen of them.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Program, files_below, observe};
use crate::tools::{build_c, text, tool};

/// A recording of `explored.c` in which nobody lost an update, in a folder that it left changed.
struct Recorded {
    root: TempDir,
    /// Whoever is connected to has to have come from the guest.
    listener: TcpListener,
}

impl Recorded {
    fn new() -> Self {
        Self::started_by(&[])
    }

    /// By a program that it replaces.
    fn started_by(starter: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let guest = text(&build_c("explored.c"));
        let argv = [starter, &[guest.as_str(), &port, "and truncate"]].concat();
        let program = Program::new(&argv)
            .file("data", "01234 the rest of the file")
            .stdin("abcdef")
            .options(&["-o", "../recording.vrec"]);
        let folder = root.path().join("folder");
        program.prepare(&folder);
        let seen = observe(program.recorded(&folder), &program.stdin, &folder);
        assert_eq!(
            String::from_utf8_lossy(&seen.stdout),
            "file: X the rest of the file\npipe: ped\ninput: def\nmade once: yes\ncounted 100\n"
                .replace("X the", "Xthe")
        );
        Recorded { root, listener }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("folder")
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verdict"));
        command
            .args(["explore", "../recording.vrec"])
            .args(options)
            .current_dir(self.folder());
        command
    }

    fn explore(&self, options: &[&str]) -> Value {
        let output = self
            .command(options)
            .args(["--format", "json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Short turns, so that updates are lost.
const SHORT: [&str; 2] = ["--quantum", "40"];

/// Everything that the executions came to: how often, and the last line.
fn last_lines(explored: &Value) -> Vec<(u64, String)> {
    let outcomes = explored["outcomes"].as_array().unwrap();
    let outcome = |outcome: &Value| {
        (
            outcome["executions"].as_u64().unwrap(),
            outcome["last_line"].as_str().unwrap().to_owned(),
        )
    };
    outcomes.iter().map(outcome).collect()
}

#[test]
fn every_seed_is_an_execution_of_its_own_and_always_the_same_one() {
    let recorded = Recorded::new();
    let options = [&SHORT[..], &["--runs", "60", "--seed", "5"]].concat();
    let one_job = recorded.explore(&[&options[..], &["--jobs", "1"]].concat());
    let more_jobs = recorded.explore(&[&options[..], &["--jobs", "3"]].concat());
    assert_eq!(one_job, more_jobs);
    let lines = last_lines(&one_job);
    assert!(lines.len() > 3, "{lines:?}");
    let executions = one_job["executions"].as_array().unwrap();
    let hashes: std::collections::BTreeSet<&str> = executions
        .iter()
        .map(|execution| execution["switches_hash"].as_str().unwrap())
        .collect();
    assert!(hashes.len() > 50, "{} of 60 schedules", hashes.len());
    for execution in executions {
        assert_eq!(execution["ending"]["kind"], "exited", "{execution}");
        assert_eq!(execution["input_missing"], 0, "{execution}");
    }
}

/// The file as it was when it was opened, at its offset, with what was written; the pipe's other half; the input that came
/// later; and a name that was free then.
#[test]
fn they_find_what_the_recording_had() {
    let recorded = Recorded::new();
    let kept = text(&recorded.root.path().join("kept"));
    let explored = recorded.explore(&["--runs", "3", "--quantum", "100000", "--keep", &kept]);
    assert_eq!(last_lines(&explored), [(3, "counted 100".to_owned())]);
    let shown = replay(&Path::new(&kept).join("seed-0.vrec"), &recorded.folder());
    assert_eq!(
        shown,
        "file: Xthe rest of the file\npipe: ped\ninput: def\nmade once: yes\ncounted 100\n"
    );
}

/// Descriptors, input and files of the program that was replaced are those of the one that replaced it.
#[test]
fn a_program_that_replaced_another_is_explored_like_any_other() {
    let env = tool("env", "coreutils");
    let recorded = Recorded::started_by(&[&env, "A=1"]);
    let kept = text(&recorded.root.path().join("kept"));
    let options = [&SHORT[..], &["--runs", "6", "--keep", &kept]].concat();
    let explored = recorded.explore(&options);
    for outcome in explored["outcomes"].as_array().unwrap() {
        let recording = outcome["recording"].as_str().unwrap();
        let shown = replay(Path::new(recording), &recorded.folder());
        assert!(
            shown.starts_with("file: Xthe rest of the file\npipe: ped\ninput: def\n"),
            "{shown}"
        );
        assert_eq!(shown.lines().last(), outcome["last_line"].as_str());
    }
}

fn replay(recording: &Path, folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["replay", &text(recording)])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_not_in_the_recording_is_up_to_the_policy() {
    let recorded = Recorded::new();
    let kept = text(&recorded.root.path().join("kept"));
    let few = ["--runs", "2", "--quantum", "100000"];
    let options = [&few[..], &["--input", "end-of-file", "--keep", &kept]].concat();
    let ended = recorded.explore(&options);
    assert_eq!(ended["executions"][0]["input_missing"], 1);
    let shown = replay(&Path::new(&kept).join("seed-0.vrec"), &recorded.folder());
    assert!(shown.contains("pipe: ped\ninput: \n"), "{shown}");
    let stopped = recorded.explore(&[&few[..], &["--input", "stop"]].concat());
    let words = stopped["outcomes"][0]["ending"]["words"].as_str().unwrap();
    assert!(
        words.contains("asks for more input than there is"),
        "{words}"
    );
    let output = recorded.command(&[&few[..], &["--input", "stop"]].concat());
    let text = String::from_utf8({ output }.output().unwrap().stdout).unwrap();
    assert!(
        text.contains("none, an execution that asks for some stops; 2 of the executions asked"),
        "{text}"
    );
}

/// An outcome that no user has seen yet can be replayed, and is the one that was told.
#[test]
fn what_was_found_can_be_replayed() {
    let recorded = Recorded::new();
    let kept = text(&recorded.root.path().join("kept"));
    let options = [&SHORT[..], &["--runs", "12", "--keep", &kept]].concat();
    let explored = recorded.explore(&options);
    for outcome in explored["outcomes"].as_array().unwrap() {
        let recording = outcome["recording"].as_str().unwrap();
        let shown = replay(Path::new(recording), &recorded.folder());
        let last = shown.lines().last().unwrap();
        assert_eq!(Some(last), outcome["last_line"].as_str());
    }
}

/// A moment in the middle of a thread, where nobody would have switched.
#[test]
fn any_instruction_will_do() {
    let recorded = Recorded::new();
    let kept = text(&recorded.root.path().join("kept"));
    for from in ["1:1000", "2:777", "0:30000"] {
        let options = [&SHORT[..], &["--runs", "4", "--from", from]].concat();
        let options = [&options[..], &["--keep", &kept]].concat();
        let explored = recorded.explore(&options);
        let first = explored["outcomes"][0]["recording"].as_str().unwrap();
        let shown = replay(Path::new(first), &recorded.folder());
        assert_eq!(
            shown.lines().last(),
            explored["outcomes"][0]["last_line"].as_str(),
            "{from}"
        );
    }
    let output = recorded
        .command(&["--from", "3:99999999"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("thread 3 never executes 99,999,999 instructions"),
        "{}",
        said(&output)
    );
}

/// Under most schedules the guest deletes a file, writes to `/tmp`, connects to somebody and kills its parent.
#[test]
fn nothing_escapes() {
    let recorded = Recorded::new();
    let before = files_below(&recorded.folder());
    let log = recorded.root.path().join("log");
    let strace = tool("strace", "strace");
    let explore = recorded.command(&[&SHORT[..], &["--runs", "10"]].concat());
    let calls = "trace=openat,unlink,unlinkat,mkdir,mkdirat,rename,truncate,connect,bind,sendto,kill,tkill,tgkill";
    let output = Command::new(strace)
        .args(["-f", "-o", &text(&log), "-e", calls])
        .arg(explore.get_program())
        .args(explore.get_args())
        .current_dir(recorded.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let misbehaved = recorded.explore(&[&SHORT[..], &["--runs", "10"]].concat());
    let counts = last_lines(&misbehaved);
    let lost: u64 = counts
        .iter()
        .filter(|(_, line)| line != "counted 100")
        .map(|(executions, _)| executions)
        .sum();
    assert!(lost > 0, "{counts:?}");
    assert_eq!(files_below(&recorded.folder()), before);
    assert!(!Path::new("/tmp/verdict-explored-test").exists());
    assert!(recorded.listener.accept().is_err(), "somebody connected");
    let asked = fs::read_to_string(&log).unwrap();
    // The controller comes first; it ends its executors, and that is all that anybody may be sent.
    let (controller, _) = asked.split_once(' ').unwrap();
    let escapes = |line: &&str| {
        let (pid, call) = line.split_once(' ').unwrap();
        let changes = ["unlink", "mkdir", "rename", "truncate", "kill", "tgkill"];
        let asks = |name: &&str| call.trim().starts_with(*name);
        call.trim().starts_with("connect(")
            || call.contains("verdict-explored-test")
            || call.contains("\"data\", O_RDWR")
            || pid != controller && changes.iter().any(asks)
    };
    let escaped: Vec<&str> = asked.lines().filter(escapes).collect();
    assert_eq!(escaped, [""; 0]);
    assert!(asked.lines().count() > 50, "strace saw nothing");
}
