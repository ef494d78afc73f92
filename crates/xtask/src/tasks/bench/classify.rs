//! `cargo xtask bench classify`: what classifying costs. Processor time of `verdict classify`, without that of finding the races, for
//! each race and as a ratio to the program's own time; replay analysis alone, and with consequence analysis. What a user waits for each
//! race, with as many copies at a time as there are processors, stands beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::engine;
use crate::process::{cargo, run as run_shown, workspace_root};

/// How to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Runs of each program; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

struct Bench {
    verdict: PathBuf,
    folder: PathBuf,
    runs: u32,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    run_shown(cargo().args(["build", "--release", "-p", "verdict-cli"]))?;
    let root = workspace_root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let bench = Bench {
        verdict: target.join("release/verdict"),
        folder: target.join("bench-classify"),
        runs: args.runs,
    };
    fs::create_dir_all(&bench.folder)
        .map_err(|error| format!("{}: {error}", bench.folder.display()))?;
    println!(
        "\nprocessor time in seconds, median of {} runs each; analyses without detection",
        args.runs
    );
    println!(
        "{:<24}{:>7}{:>10}{:>10}{:>10}{:>10}{:>12}{:>10}{:>10}",
        "program",
        "races",
        "native",
        "detect",
        "replay",
        "x native",
        "consequence",
        "each race",
        "by clock"
    );
    let sources = [
        root.join("benches/classify/short_segments.c"),
        root.join("benches/classify/many_races_long.c"),
        root.join("benches/classify/many_races.c"),
        root.join("programs/papers/portend_fig1.c"),
        root.join("programs/papers/portend_fig14a.c"),
        root.join("programs/effects/lost_update.c"),
        root.join("programs/effects/lost_wakeup.c"),
    ];
    for source in sources {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        if name.contains(&args.only) {
            bench.measure(&name, &source)?;
        }
    }
    Ok(())
}

impl Bench {
    fn measure(&self, name: &str, source: &Path) -> Result<(), String> {
        let program = self.folder.join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-g", "-O1", "-pthread", "-w", "-o"]);
        run_shown(compiler.arg(&program).arg(source))?;
        let report = self.folder.join("verdicts.json");
        let mut times = [const { Vec::new() }; 4];
        let mut clocks = [const { Vec::new() }; 4];
        for _ in 0..self.runs {
            let native = Command::new(&program);
            let ways = [
                native,
                self.command(&["detect"], &report, &program),
                self.command(&["classify", "--replay-only"], &report, &program),
                self.command(&["classify"], &report, &program),
            ];
            for (nth, mut way) in ways.into_iter().enumerate() {
                way.current_dir(&self.folder).stdin(Stdio::null());
                let started = Instant::now();
                times[nth].push(cpu_seconds(&mut way)?);
                clocks[nth].push(started.elapsed().as_secs_f64());
            }
        }
        let [_, detected, _, classified] = clocks.map(engine::median);
        let [native, detect, replay, all] = times.map(engine::median);
        let races = races(&report)?;
        let replay = (replay - detect).max(0.0);
        let all = (all - detect).max(0.0);
        println!(
            "{name:<24}{races:>7}{native:>10.3}{detect:>10.2}{replay:>10.2}{:>10.1}{all:>12.2}{:>10.2}{:>10.2}",
            replay / native.max(0.001),
            all / (races.max(1) as f64),
            (classified - detected).max(0.0) / (races.max(1) as f64)
        );
        Ok(())
    }

    fn command(&self, words: &[&str], report: &Path, program: &Path) -> Command {
        let mut command = Command::new(&self.verdict);
        command.args(words).args(["--quiet", "--format", "json"]);
        command.arg("--output").arg(report).arg("--").arg(program);
        command
    }
}

/// Processor time of a command and all that it started; races found are no failure.
fn cpu_seconds(command: &mut Command) -> Result<f64, String> {
    let before = engine::children_seconds()?;
    let status = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match status.code() {
        Some(0 | 1) => Ok(engine::children_seconds()? - before),
        _ => Err(format!("{command:?} ended with {status}")),
    }
}

/// How many races the report has.
fn races(report: &Path) -> Result<usize, String> {
    let text = fs::read(report).map_err(|error| format!("{}: {error}", report.display()))?;
    let document: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", report.display()))?;
    Ok(document["races"].as_array().map_or(0, Vec::len))
}
