//! Programs recorded once and replayed as often as one likes, and what must be the same each time.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{Ending, Program, observe};
use crate::tools::text;

const REPLAYS_DEFAULT: usize = 2;

/// How often each recording is replayed; `cargo xtask soak replay` raises it.
pub fn replays() -> usize {
    let wanted = env::var("VERDICT_REPLAYS");
    wanted.map_or(REPLAYS_DEFAULT, |runs| runs.parse().expect("a number"))
}

/// A recording and the execution it is of.
pub struct Recorded {
    pub folder: TempDir,
    pub execution: Execution,
}

/// What must be the same in every replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    /// Instructions by thread, switches and their hash, signals.
    pub stats: Value,
    /// The number of accesses and their hash.
    pub accesses: Value,
}

impl Recorded {
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("recording.vrec")
    }

    /// Where the program ran. Its files are gone: a replay does not need them.
    fn place(&self) -> PathBuf {
        self.folder.path().join("folder")
    }

    /// One replay.
    pub fn replay(&self, accesses: &str) -> (Execution, Vec<u8>) {
        let stats = self.folder.path().join("replay.json");
        let mut command = verdict(&self.place());
        command
            .args(["replay", "--format", "json", "--accesses", accesses])
            .args(["--stats-file", &text(&stats)])
            .arg(self.file());
        let seen = observe(command, b"", &self.place());
        assert!(
            seen.files.is_empty(),
            "a replay wrote {:?}",
            seen.files.keys()
        );
        let (stats, accesses) = read_stats(&stats, &seen.stderr);
        let execution = Execution {
            ending: seen.ending,
            stdout: seen.stdout,
            stats,
            accesses,
        };
        (execution, seen.stderr)
    }

    /// Replays it again and again; half of the replays hash all accesses.
    #[track_caller]
    pub fn replays_the_same(&self, what: &str) {
        for run in 0..replays() {
            let accesses = ["hash", "off"][run % 2];
            let (mut again, said) = self.replay(accesses);
            if accesses == "off" {
                again.accesses = self.execution.accesses.clone();
            }
            assert!(
                again == self.execution,
                "{what}, replay {run}:\n{}\nrecorded {}\nreplayed {}",
                String::from_utf8_lossy(&said),
                self.execution.shown(),
                again.shown()
            );
        }
        println!(
            "{} replays the same: {} instructions, {} switches, {} accesses, {} bytes: {what}",
            replays(),
            self.execution.stats["instructions"],
            self.execution.stats["switches"],
            self.execution.accesses["logged"],
            fs::metadata(self.file()).unwrap().len(),
        );
    }
}

impl Execution {
    fn shown(&self) -> String {
        format!(
            "{:?}, {} bytes out, {}, {}",
            self.ending,
            self.stdout.len(),
            self.stats,
            self.accesses
        )
    }
}

/// `verdict`, in a folder, without this machine's variables.
fn verdict(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verdict"));
    command
        .current_dir(folder)
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

/// Records a program, with whatever `run` does to it while it runs.
pub fn record_with(
    program: &Program,
    run: impl FnOnce(Command, &Path) -> (Ending, Vec<u8>, Vec<u8>),
) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("folder");
    let stats = folder.path().join("record.json");
    let recording = folder.path().join("recording.vrec");
    let program = program.clone().options(&[
        "-o",
        &text(&recording),
        "--accesses",
        "hash",
        "--stats-file",
        &text(&stats),
        "--format",
        "json",
    ]);
    program.prepare(&place);
    let (ending, stdout, stderr) = run(program.recorded(&place), &place);
    let (stats, accesses) = read_stats(&stats, &stderr);
    // Whatever it read is gone now, and whatever it wrote is.
    fs::remove_dir_all(&place).unwrap();
    fs::create_dir(&place).unwrap();
    Recorded {
        folder,
        execution: Execution {
            ending,
            stdout,
            stats,
            accesses,
        },
    }
}

/// Records a program that needs nobody else.
pub fn record(program: &Program) -> Recorded {
    record_with(program, |command, folder| {
        let seen = observe(command, &program.stdin, folder);
        (seen.ending, seen.stdout, seen.stderr)
    })
}

fn read_stats(path: &Path, said: &[u8]) -> (Value, Value) {
    let written = fs::read(path).unwrap_or_else(|error| {
        panic!("no statistics ({error}): {}", String::from_utf8_lossy(said))
    });
    fs::remove_file(path).unwrap();
    let mut stats: Value = serde_json::from_slice(&written).unwrap();
    let fields = stats.as_object_mut().unwrap();
    let accesses = fields.remove("accesses").unwrap();
    // Blocks depend on the instrumentation, times on the machine.
    for field in ["blocks_translated", "pages_invalidated", "times_ns"] {
        fields.remove(field);
    }
    (stats, accesses)
}
