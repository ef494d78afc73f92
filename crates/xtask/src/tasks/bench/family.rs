//! One run of a program with all the processes it starts: their time and their memory together.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::engine::children_seconds;

/// How often the processes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// From start to finish.
    pub(super) seconds: f64,
    /// Time on processors, of all processes.
    pub(super) cpu_seconds: f64,
    /// The most memory that its processes had: the sum of the peaks of those that were there at once. Pages that several of
    /// them share, such as those of their program's code, count in each.
    pub(super) peak_bytes: u64,
}

/// Runs a program to its end; what it prints goes nowhere. Its exit code must be 0.
pub(super) fn run_family(command: &mut Command) -> Result<Run, String> {
    let line = format!("{command:?}");
    let failed = |error: std::io::Error| format!("{line}: {error}");
    let cpu_before = children_seconds()?;
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut peak_bytes = 0;
    let status = loop {
        peak_bytes = peak_bytes.max(peak_of(child.id()));
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        sleep(LOOK_EVERY);
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("{line} ended with {status}"));
    }
    Ok(Run {
        seconds,
        cpu_seconds: children_seconds()? - cpu_before,
        peak_bytes,
    })
}

/// The peaks of a process and of all that it has started, in bytes.
fn peak_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0);
    let own = peak * 1024;
    let words = words_of(process);
    // One that has not executed its program yet has the memory of its parent.
    let children = children_of(process).into_iter();
    let children = children.filter(|child| words_of(*child) != words);
    own + children.map(peak_of).sum::<u64>()
}

/// What a process was started with; nothing once it has ended.
fn words_of(process: u32) -> Vec<u8> {
    fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default()
}

/// The processes that any thread of a process has started.
fn children_of(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|children| {
            let numbers = children.split_whitespace().map(str::parse);
            numbers.filter_map(Result::ok).collect::<Vec<u32>>()
        })
        .collect()
}
