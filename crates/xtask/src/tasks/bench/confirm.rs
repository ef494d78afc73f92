//! `cargo xtask bench confirm`: what a run that is steered to a race costs, as a ratio of processor time to native, and
//! how many runs of a short program there are in a second.
//!
//! A kernel runs in one of two threads that race afterwards (`benches/directed/beside.c`). One confirmation has runs
//! before those that count: a batch of runs is compared with a smaller one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::engine::{children_seconds, median};
use crate::process::{cargo, run as run_shown, workspace_root};

/// How to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Measurements of each program; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

const KERNELS: [&str; 5] = ["sieve", "matmul", "quicksort", "mix", "tree"];
/// Its threads contend for a lock when they really run at the same time, so that it is no part of the mean.
const CONTENDING: &str = "mutex";
/// Steered runs that are measured together.
const BATCH: u32 = 3;
/// What takes about 5 milliseconds natively.
const SHORT: &str = "7000000";
/// Runs of the short program.
const SHORT_RUNS: [u32; 2] = [50, 450];

/// A program with a race, and the pair of lines it has.
struct Subject {
    name: String,
    argv: Vec<String>,
    pair: String,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    run_shown(cargo().args(["build", "--release", "-p", "verdict-cli"]))?;
    let root = workspace_root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let verdict = target.join("release/verdict");
    let folder = target.join("bench-confirm");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let source = root.join("benches/directed/beside.c");
    let pair = pair(&source)?;
    println!(
        "\nprocessor time of a steered run as a ratio to native, median of {} measurements",
        args.runs
    );
    println!(
        "{:<12}{:>10}{:>10}{:>8}",
        "program", "native s", "steered s", "ratio"
    );
    let mut ratios = Vec::new();
    let all = KERNELS.iter().chain([&CONTENDING]);
    for kernel in all.filter(|kernel| kernel.contains(&args.only)) {
        let subject = Subject {
            name: (*kernel).to_owned(),
            argv: vec![build(&root, &folder, Some(kernel))?],
            pair: pair.clone(),
        };
        let ratio = overhead(&subject, &verdict, &folder, args.runs)?;
        if *kernel != CONTENDING {
            ratios.push(ratio);
        }
    }
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    if !ratios.is_empty() {
        println!(
            "geometric mean of those that compute {:.2}",
            (logs / ratios.len() as f64).exp()
        );
    }
    let short = Subject {
        name: "short".to_owned(),
        argv: vec![build(&root, &folder, None)?, SHORT.to_owned()],
        pair,
    };
    throughput(&short, &verdict, &folder, args.runs)
}

/// The two lines of the race, as `confirm` takes them.
fn pair(source: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(source).map_err(|error| format!("{source:?}: {error}"))?;
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("racing = "))
        .map(|(index, _)| format!("beside.c:{}", index + 1))
        .collect();
    Ok(lines.join(","))
}

fn build(root: &Path, folder: &Path, kernel: Option<&str>) -> Result<String, String> {
    let program = folder.join(kernel.unwrap_or("short"));
    let mut sources = vec![root.join("benches/directed/beside.c")];
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-g", "-pthread"]);
    if let Some(kernel) = kernel {
        let object = folder.join(format!("{kernel}.o"));
        run_shown(
            Command::new("cc")
                .args(["-O2", "-g", "-c", "-Dmain=kernel_main"])
                .arg(root.join("benches/kernels").join(format!("{kernel}.c")))
                .arg("-o")
                .arg(&object),
        )?;
        compile.arg("-DKERNEL");
        sources.push(object);
    }
    run_shown(compile.args(&sources).arg("-o").arg(&program))?;
    Ok(program.display().to_string())
}

fn overhead(subject: &Subject, verdict: &Path, folder: &Path, runs: u32) -> Result<f64, String> {
    let (mut native, mut steered) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let before = children_seconds()?;
        finish(Command::new(&subject.argv[0]).args(&subject.argv[1..]))?;
        let between = children_seconds()?;
        native.push(between - before);
        confirm(subject, verdict, folder, 1, 1)?;
        let few = children_seconds()?;
        confirm(subject, verdict, folder, 1 + BATCH, 1)?;
        let many = children_seconds()?;
        steered.push(((many - few) - (few - between)) / f64::from(BATCH));
    }
    let (native, steered) = (median(native), median(steered));
    println!(
        "{:<12}{native:>10.2}{steered:>10.2}{:>8.2}",
        subject.name,
        steered / native
    );
    Ok(steered / native)
}

fn throughput(subject: &Subject, verdict: &Path, folder: &Path, runs: u32) -> Result<(), String> {
    let mut speeds = Vec::new();
    let mut natives = Vec::new();
    for _ in 0..runs {
        let started = Instant::now();
        finish(Command::new(&subject.argv[0]).args(&subject.argv[1..]))?;
        natives.push(started.elapsed().as_secs_f64());
        let mut times = Vec::new();
        for count in SHORT_RUNS {
            let started = Instant::now();
            confirm(subject, verdict, folder, count, 2)?;
            times.push(started.elapsed().as_secs_f64());
        }
        speeds.push(f64::from(SHORT_RUNS[1] - SHORT_RUNS[0]) / (times[1] - times[0]));
    }
    println!(
        "a program of {:.1} ms, two at a time: {:.0} steered runs a second",
        1e3 * median(natives),
        median(speeds)
    );
    Ok(())
}

fn confirm(
    subject: &Subject,
    verdict: &Path,
    folder: &Path,
    runs: u32,
    jobs: u32,
) -> Result<(), String> {
    let evidence = folder.join("evidence");
    finish(
        Command::new(verdict)
            .args(["confirm", "--pair", &subject.pair])
            .arg(format!("--runs={runs}"))
            .arg(format!("--jobs={jobs}"))
            .arg("--evidence")
            .arg(evidence)
            .arg("--")
            .args(&subject.argv),
    )
}

/// Runs to the end: 1 says that a race was confirmed.
fn finish(command: &mut Command) -> Result<(), String> {
    let line = format!("{command:?}");
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{line}: {error}"))?;
    if matches!(status.code(), Some(0 | 1)) {
        return Ok(());
    }
    Err(format!("{line} ended with {status}"))
}
