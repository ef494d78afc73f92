//! `cargo xtask bench traces`: reading a trace, and detecting its races, from text and from the native format.
//!
//! Every figure is of a whole process, from start to finish, the quickest of several runs. `x decode` is how many times longer
//! than merely reading the same file (`verdict trace check`) it took.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Run, quickest};
use crate::process::{cargo, run as run_command, workspace_root};

/// The trace to measure with.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Number of events
    #[arg(long, value_name = "N", default_value_t = 5_000_000)]
    events: u64,

    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 8)]
    threads: u32,

    /// Runs of which the quickest counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
}

/// What is detected with, and the million events a second that are wanted from text and from the native format.
const ALGORITHMS: [(&str, Option<f64>, Option<f64>); 7] = [
    ("fasttrack", Some(10.0), Some(40.0)),
    ("hb", Some(5.0), None),
    ("hybrid", None, None),
    ("adjacent", None, None),
    ("local", None, None),
    ("race", None, None),
    ("current", None, None),
];

/// How many times longer the trace is that shows whether memory grows with the number of events.
const LONGER: u64 = 4;
const GROWTH_LOCATIONS: u64 = 1000;

/// Exit codes of a detection that worked: without races, with races.
const DETECTED: [i32; 2] = [0, 1];

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let verdict = build()?;
    let folder = target_folder().join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let text = folder.join("trace.std");
    let native = folder.join("trace.vtrace");
    make_traces(&verdict, args, &text, &native)?;
    println!(
        "{} events, {} threads; quickest of {} runs",
        args.events, args.threads, args.runs
    );
    println!(
        "{:<22} {:>8} {:>8} {:>11} {:>7} {:>9} {:>9}",
        "", "seconds", "cpu s", "million/s", "wanted", "x decode", "peak MB"
    );
    for (name, path) in [("std", &text), ("native", &native)] {
        let bench = Bench {
            args,
            verdict: &verdict,
            name,
            path,
        };
        bench.file()?;
    }
    growth(&verdict, args, &folder)
}

/// Peak memory on two traces over the same few locations, one of them longer.
fn growth(verdict: &Path, args: &Args, folder: &Path) -> Result<(), String> {
    println!("\npeak MB over {GROWTH_LOCATIONS} locations, by number of events");
    let lengths = [args.events, LONGER * args.events];
    println!("{:<22} {:>11} {:>11}", "", lengths[0], lengths[1]);
    let traces = lengths.map(|events| (events, folder.join(format!("growth-{events}.vtrace"))));
    for (events, path) in &traces {
        let mut generate = Command::new(verdict);
        generate
            .args(["trace", "generate"])
            .arg(path)
            .args(["--events", &events.to_string()])
            .args(["--threads", &args.threads.to_string()])
            .args(["--locations", &GROWTH_LOCATIONS.to_string()]);
        run_command(&mut generate)?;
    }
    for (algorithm, ..) in ALGORITHMS {
        let mut peaks = Vec::new();
        for (_, path) in &traces {
            let mut detect = Command::new(verdict);
            detect.args(["detect", "--algorithm", algorithm]).arg(path);
            peaks.push(quickest(1, &mut detect, &DETECTED)?.peak_bytes as f64 / 1e6);
        }
        println!("{algorithm:<22} {:>11.1} {:>11.1}", peaks[0], peaks[1]);
    }
    Ok(())
}

struct Bench<'a> {
    args: &'a Args,
    verdict: &'a Path,
    name: &'a str,
    path: &'a Path,
}

impl Bench<'_> {
    fn file(&self) -> Result<(), String> {
        let bytes = fs::metadata(self.path)
            .map_err(|error| error.to_string())?
            .len();
        let per_event = bytes as f64 / self.args.events as f64;
        let mut check = Command::new(self.verdict);
        check.args(["trace", "check"]).arg(self.path);
        let decode = quickest(self.args.runs, &mut check, &[0])?;
        self.print("decode", &decode, &decode, None);
        for (algorithm, from_text, from_native) in ALGORITHMS {
            let mut detect = Command::new(self.verdict);
            detect
                .args(["detect", "--algorithm", algorithm])
                .arg(self.path);
            let detected = quickest(self.args.runs, &mut detect, &DETECTED)?;
            let wanted = if self.name == "std" {
                from_text
            } else {
                from_native
            };
            self.print(algorithm, &detected, &decode, wanted);
        }
        println!("{:<22} {per_event:.2} bytes an event", self.name);
        Ok(())
    }

    fn print(&self, what: &str, run: &Run, decode: &Run, wanted: Option<f64>) {
        println!(
            "{:<22} {:>8.3} {:>8.3} {:>11.1} {:>7} {:>9.2} {:>9.1}",
            format!("{} {what}", self.name),
            run.seconds,
            run.cpu_seconds,
            self.args.events as f64 / run.seconds / 1e6,
            wanted.map(|wanted| wanted.to_string()).unwrap_or_default(),
            run.seconds / decode.seconds,
            run.peak_bytes as f64 / 1e6,
        );
    }
}

/// The binary that users get.
fn build() -> Result<PathBuf, String> {
    run_command(cargo().args(["build", "--release", "--package", "verdict-cli"]))?;
    Ok(target_folder().join("release/verdict"))
}

fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => workspace_root().join(folder),
        None => workspace_root().join("target"),
    }
}

fn make_traces(verdict: &Path, args: &Args, text: &Path, native: &Path) -> Result<(), String> {
    let mut generate = Command::new(verdict);
    generate
        .args(["trace", "generate"])
        .arg(text)
        .args(["--events", &args.events.to_string()])
        .args(["--threads", &args.threads.to_string()]);
    run_command(&mut generate)?;
    run_command(
        Command::new(verdict)
            .args(["trace", "convert"])
            .args([text, native]),
    )
}
