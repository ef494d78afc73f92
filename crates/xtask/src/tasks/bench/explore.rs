//! `cargo xtask bench explore`: how many executions a second leave one recording, on one core and on all of them, and
//! whether each is the same the second time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::engine;
use crate::process::{cargo, run as run_shown, workspace_root};

/// How to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Executions that leave the recording
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    run_shown(cargo().args(["build", "--release", "-p", "verdict-cli"]))?;
    let root = workspace_root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let verdict = target.join("release/verdict");
    let folder = target.join("bench-explore");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (program, recording) = (folder.join("lost"), folder.join("lost.vrec"));
    engine::compile(&root.join("benches/kernels/lost.c"), &program)?;
    engine::finish(
        Command::new(&verdict)
            .arg("record")
            .arg("-o")
            .arg(&recording)
            .arg("--")
            .arg(&program),
    )?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "\n{} executions with random schedules, from one recording of a program with four threads",
        args.runs
    );
    println!(
        "{:<8}{:>10}{:>16}{:>12}",
        "jobs", "seconds", "executions/s", "outcomes"
    );
    let mut first = None;
    // All cores twice: the second time must be the first one again, whatever else the machine does.
    for jobs in [1, cores, cores] {
        let explored = explore(&verdict, &recording, args.runs, jobs)?;
        println!(
            "{jobs:<8}{:>10.2}{:>16.0}{:>12}",
            explored.seconds,
            f64::from(args.runs) / explored.seconds,
            explored.outcomes
        );
        match &first {
            None => first = Some(explored.told),
            Some(told) if *told == explored.told => {}
            Some(_) => return Err("an execution was another one the second time".to_owned()),
        }
    }
    println!("every execution was the same each time");
    Ok(())
}

struct Explored {
    seconds: f64,
    outcomes: usize,
    /// Everything about every execution.
    told: serde_json::Value,
}

fn explore(verdict: &Path, recording: &Path, runs: u32, jobs: usize) -> Result<Explored, String> {
    let started = Instant::now();
    let output = Command::new(verdict)
        .arg("explore")
        .arg(recording)
        .args(["--runs", &runs.to_string(), "--jobs", &jobs.to_string()])
        .args(["--quantum", "500", "--format", "json"])
        .output()
        .map_err(|error| format!("verdict explore: {error}"))?;
    let seconds = started.elapsed().as_secs_f64();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let made = told["executions"].as_array().map_or(0, Vec::len);
    if made != runs as usize {
        return Err(format!("{made} executions instead of {runs}"));
    }
    Ok(Explored {
        seconds,
        outcomes: told["outcomes"].as_array().map_or(0, Vec::len),
        told,
    })
}
