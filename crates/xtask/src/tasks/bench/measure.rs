//! One run of a program: its time and its memory.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// How often a running program's memory is looked at. To look takes time from the program, which may want all processors.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// From start to finish.
    pub(super) seconds: f64,
    /// Time on processors, of all threads.
    pub(super) cpu_seconds: f64,
    /// The most memory it had at once.
    pub(super) peak_bytes: u64,
}

/// Runs a program several times, and keeps the quickest run.
pub(super) fn quickest(times: u32, command: &mut Command, allowed: &[i32]) -> Result<Run, String> {
    let runs: Result<Vec<Run>, String> = (0..times).map(|_| once(command, allowed)).collect();
    let quickest = runs?
        .into_iter()
        .min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    quickest.ok_or_else(|| "nothing was run".to_owned())
}

fn once(command: &mut Command, allowed: &[i32]) -> Result<Run, String> {
    let line = format!("{command:?}");
    let started = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{line}: {error}"))?;
    let (seconds, peak_bytes) = watch(&child, started)?;
    let cpu_seconds = cpu_seconds(&child);
    let status = child.wait().map_err(|error| format!("{line}: {error}"))?;
    if !status.code().is_some_and(|code| allowed.contains(&code)) {
        return Err(format!("{line} ended with {status}"));
    }
    Ok(Run {
        seconds,
        cpu_seconds,
        peak_bytes,
    })
}

/// Waits until the child has ended, without taking its remains away, and says how long that took and how much memory it had.
fn watch(child: &Child, started: Instant) -> Result<(f64, u64), String> {
    let (ended, news) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let memory = scope.spawn(move || peak_bytes(child.id(), &news));
        let pid = Pid::from_child(child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let waited = waitid(WaitId::Pid(pid), options);
        let seconds = started.elapsed().as_secs_f64();
        drop(ended);
        let peak_bytes = memory.join().map_err(|_| "the watcher panicked")?;
        waited.map_err(|error| error.to_string())?;
        Ok((seconds, peak_bytes))
    })
}

/// The most memory a program has had when last looked at, until it has ended.
fn peak_bytes(pid: u32, ended: &mpsc::Receiver<()>) -> u64 {
    let mut peak_bytes = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kilobytes) = peak.and_then(|peak| peak.trim().strip_suffix(" kB")) {
            let kilobytes = kilobytes.parse::<u64>();
            peak_bytes = kilobytes.map_or(peak_bytes, |kilobytes| kilobytes * 1024);
        }
        if ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected) {
            return peak_bytes;
        }
    }
}

/// Clock ticks a second, on every Linux for x86-64: the precision of `cpu_seconds`.
const TICKS: f64 = 100.0;

/// Processor time of a child that has ended but not been waited for.
fn cpu_seconds(child: &Child) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // The name of the program comes second, in parentheses, and may hold anything.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    // User and system time are fields 14 and 15, counted from 1; the first after the name is 3.
    let ticks = |field: usize| {
        fields
            .get(field - 3)
            .and_then(|text| text.parse::<f64>().ok())
    };
    match (ticks(14), ticks(15)) {
        (Some(user), Some(system)) => (user + system) / TICKS,
        _ => f64::NAN,
    }
}
