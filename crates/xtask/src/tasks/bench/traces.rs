//! `cargo xtask bench traces`: reading a trace, and detecting its races, from text and from the native format.
//!
//! Every figure is of a whole process, from start to finish, the quickest of several runs. A trace is read on one core while
//! races are detected on another, so there are two rates: by the clock, and by the time both cores took together, which is
//! what one core alone would reach. `x decode` is how many times more of that time it took than merely reading the same
//! file (`verdict trace check`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
const ALGORITHMS: [(&str, [Option<u32>; 2]); 7] = [
    ("fasttrack", [Some(10), Some(40)]),
    ("hb", [Some(5), None]),
    ("hybrid", [None, None]),
    ("adjacent", [None, None]),
    ("local", [None, None]),
    ("race", [None, None]),
    ("current", [None, None]),
];

/// How many times longer the trace is that shows whether memory grows with the number of events.
const LONGER: u64 = 4;

/// What that trace is of. `hb` and `hybrid` tell exact numbers of instances, so for each location they keep one record for
/// each thread, site and, `hybrid`, set of locks that nothing else stands for. There are few of those here: nearly all occur
/// in the shorter trace too, and what grows after that grows with the number of events.
const GROWTH_OF: [(&str, u64); 3] = [("--locations", 1000), ("--sites", 64), ("--locks", 8)];

/// Exit codes of a detection that worked: without races, with races.
const DETECTED: [i32; 2] = [0, 1];

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let verdict = build()?;
    let folder = target_folder().join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = [folder.join("trace.std"), folder.join("trace.vtrace")];
    make_traces(&verdict, args, &files)?;
    rates(&verdict, args, &files)?;
    programs(&verdict, &folder)?;
    growth(&verdict, args, &folder)
}

/// One line for each detector, text and native side by side.
fn rates(verdict: &Path, args: &Args, files: &[PathBuf; 2]) -> Result<(), String> {
    println!(
        "{} events, {} threads; quickest of {} runs; million events a second\n",
        args.events, args.threads, args.runs
    );
    let columns = format!(
        "{:>9} {:>9} {:>7} {:>9} {:>8}",
        "by clock", "one core", "wanted", "x decode", "peak MB"
    );
    println!("{:<10} {:^46} | {:^46}", "", "std", "native");
    println!("{:<10} {columns} | {columns}", "");
    let measure = |action: &[&str], file: &Path, exits: &[i32]| {
        let mut command = Command::new(verdict);
        command.args(action).arg(file);
        quickest(args.runs, &mut command, exits)
    };
    let mut decodes = Vec::new();
    for file in files {
        decodes.push(measure(&["trace", "check"], file, &[0])?);
    }
    let cell = |run: &Run, decode: &Run, wanted: Option<u32>| {
        let rate = |seconds: f64| args.events as f64 / seconds / 1e6;
        format!(
            "{:>9.1} {:>9.1} {:>7} {:>9.2} {:>8.1}",
            rate(run.seconds),
            rate(run.cpu_seconds),
            wanted.map(|wanted| wanted.to_string()).unwrap_or_default(),
            run.cpu_seconds / decode.cpu_seconds,
            run.peak_bytes as f64 / 1e6,
        )
    };
    let [std, native] = [0, 1].map(|file| cell(&decodes[file], &decodes[file], None));
    println!("{:<10} {std} | {native}", "decode");
    for (algorithm, wanted) in ALGORITHMS {
        let mut cells = Vec::new();
        for (file, (decode, wanted)) in files.iter().zip(decodes.iter().zip(wanted)) {
            let detected = measure(&["detect", "--algorithm", algorithm], file, &DETECTED)?;
            cells.push(cell(&detected, decode, wanted));
        }
        println!("{algorithm:<10} {} | {}", cells[0], cells[1]);
    }
    for (name, file) in ["std", "native"].iter().zip(files) {
        let bytes = fs::metadata(file).map_err(|error| error.to_string())?.len();
        let each = bytes as f64 / args.events as f64;
        println!("{name:<10} {each:.2} bytes an event");
    }
    Ok(())
}

/// Programs whose traces show how many bytes an event takes in the native format: each works on a file that is given last.
const PROGRAMS: [&[&str]; 3] = [
    &["pigz", "-p", "4", "--stdout"],
    &["pbzip2", "-p4", "--stdout"],
    &["sort", "--parallel=4"],
];
/// Bytes an event that are wanted at most.
const EVENT_BYTES_MAX: u32 = 4;

/// The size of traces of real programs.
fn programs(verdict: &Path, folder: &Path) -> Result<(), String> {
    let input = folder.join("numbers.txt");
    let numbers: String = (1..=40_000).map(|number| format!("{number}\n")).collect();
    fs::write(&input, numbers).map_err(|error| format!("{}: {error}", input.display()))?;
    println!("\nnative traces of programs (wanted: at most {EVENT_BYTES_MAX} bytes an event)");
    for program in PROGRAMS {
        let trace = folder.join("program.vtrace");
        let mut run = Command::new(verdict);
        run.args(["trace", "-o"]).arg(&trace).arg("--");
        run.args(program).arg(&input).stdout(Stdio::null());
        run_command(&mut run)?;
        let info = Command::new(verdict)
            .args(["trace", "info", "--format", "json"])
            .arg(&trace)
            .output()
            .map_err(|error| error.to_string())?;
        let info: serde_json::Value =
            serde_json::from_slice(&info.stdout).map_err(|error| error.to_string())?;
        let number = |name: &str| info[name].as_f64().ok_or(format!("no {name}"));
        println!(
            "{:<28} {:>11} events {:>5.2} bytes an event",
            program.join(" "),
            number("events")?,
            number("bytes")? / number("events")?
        );
    }
    Ok(())
}

/// Peak memory on two traces of the same kind, one of them longer.
fn growth(verdict: &Path, args: &Args, folder: &Path) -> Result<(), String> {
    let lengths = [args.events, LONGER * args.events];
    let traces = lengths.map(|events| (events, folder.join(format!("growth-{events}.vtrace"))));
    for (events, path) in &traces {
        let mut generate = Command::new(verdict);
        generate
            .args(["trace", "generate"])
            .arg(path)
            .args(["--events", &events.to_string()])
            .args(["--threads", &args.threads.to_string()]);
        for (option, number) in GROWTH_OF {
            generate.args([option, &number.to_string()]);
        }
        run_command(&mut generate)?;
    }
    let of = GROWTH_OF.map(|(option, number)| format!("{option} {number}"));
    println!("\npeak MB by number of events ({})", of.join(" "));
    println!(
        "{:<10} {:>11} {:>11} {:>7}",
        "", lengths[0], lengths[1], "ratio"
    );
    for (algorithm, _) in ALGORITHMS {
        let mut peaks = Vec::new();
        for (_, path) in &traces {
            let mut detect = Command::new(verdict);
            detect.args(["detect", "--algorithm", algorithm]).arg(path);
            peaks.push(quickest(1, &mut detect, &DETECTED)?.peak_bytes as f64 / 1e6);
        }
        let [shorter, longer] = [peaks[0], peaks[1]];
        println!(
            "{algorithm:<10} {shorter:>11.1} {longer:>11.1} {:>7.2}",
            longer / shorter
        );
    }
    Ok(())
}

/// The binary that users get.
pub(super) fn build() -> Result<PathBuf, String> {
    run_command(cargo().args(["build", "--release", "--package", "verdict-cli"]))?;
    Ok(target_folder().join("release/verdict"))
}

pub(in crate::tasks) fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => workspace_root().join(folder),
        None => workspace_root().join("target"),
    }
}

fn make_traces(verdict: &Path, args: &Args, [text, native]: &[PathBuf; 2]) -> Result<(), String> {
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
