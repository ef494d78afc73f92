//! `cargo xtask bench engine`: what running under the engine costs, as ratios of processor time to native, measured
//! side by side: native, counting, logging and Valgrind take turns, and each ratio is of medians.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::process::{cargo, run as run_shown, workspace_root};

/// How to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Runs of each program in each way; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// Bytes of text for the compressors.
const TEXT_BYTES: usize = 20 << 20;
const KERNELS: [&str; 6] = ["sieve", "matmul", "quicksort", "mix", "tree", "mutex"];
const PYTHON: &str = "s=0\nfor i in range(6000000): s+=i*i%7\nd={}\nfor i in range(500000): d[str(i)]=i\nprint(s,len(d))";
const SQL: &str = "create table t(a integer primary key,b text); \
    with recursive c(x) as (values(1) union all select x+1 from c where x<2400000) insert into t select x, 'row'||x from c; \
    select count(*),sum(length(t1.b)) from t t1 join t t2 on t1.a=t2.a*2;";

/// One program to measure.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) argv: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    run_shown(cargo().args(["build", "--release", "-p", "verdict-cli"]))?;
    let root = workspace_root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let verdict = target.join("release/verdict");
    let folder = target.join("bench-engine");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let subjects = subjects(&root, &folder)?;
    println!(
        "\nprocessor time as a ratio to native, median of {} runs each",
        args.runs
    );
    println!(
        "{:<12}{:>10}{:>10}{:>10}{:>16}",
        "program", "native s", "counting", "logging", "valgrind none"
    );
    for subject in subjects
        .iter()
        .filter(|subject| subject.name.contains(&args.only))
    {
        measure(subject, &verdict, args.runs)?;
    }
    start_up(&folder, &verdict, args.runs)
}

pub(super) fn subjects(root: &Path, folder: &Path) -> Result<Vec<Subject>, String> {
    let mut subjects = Vec::new();
    for kernel in KERNELS {
        let source = root.join("benches/kernels").join(format!("{kernel}.c"));
        let program = folder.join(kernel);
        compile(&source, &program)?;
        subjects.push(Subject {
            name: kernel.into(),
            argv: vec![program.display().to_string()],
        });
    }
    let text = folder.join("text");
    std::fs::write(&text, words()).map_err(|error| format!("{}: {error}", text.display()))?;
    let text = text.display().to_string();
    for (name, argv) in [
        ("bzip2", vec!["bzip2", "-c", &text]),
        ("gzip", vec!["gzip", "-c", &text]),
        ("cpython", vec!["/usr/bin/python3", "-c", PYTHON]),
        ("sqlite", vec!["sqlite3", ":memory:", SQL]),
    ] {
        subjects.push(Subject {
            name: name.into(),
            argv: argv.into_iter().map(str::to_owned).collect(),
        });
    }
    Ok(subjects)
}

pub(super) fn compile(source: &Path, program: &Path) -> Result<(), String> {
    run_shown(
        Command::new("cc")
            .args(["-O2", "-g", "-pthread"])
            .arg(source)
            .arg("-o")
            .arg(program),
    )
}

/// Text that compresses like text: words from a small vocabulary, the same in every run.
fn words() -> Vec<u8> {
    let mut text = Vec::with_capacity(TEXT_BYTES + 16);
    let mut state = 1u64;
    while text.len() < TEXT_BYTES {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let word = (state >> 33) % 5000;
        text.extend_from_slice(format!("{:x} ", word * word % 65_521).as_bytes());
        if word.is_multiple_of(11) {
            text.push(b'\n');
        }
    }
    text.truncate(TEXT_BYTES);
    text
}

fn measure(subject: &Subject, verdict: &Path, runs: u32) -> Result<(), String> {
    let under = |options: &[&str]| {
        let mut command = Command::new(verdict);
        command
            .arg("exec")
            .args(options)
            .arg("--")
            .args(&subject.argv);
        command
    };
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..runs {
        let mut native = Command::new(&subject.argv[0]);
        native.args(&subject.argv[1..]);
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=none", "-q"]).args(&subject.argv);
        let ways = [
            native,
            under(&[]),
            under(&["--accesses", "discard"]),
            valgrind,
        ];
        for (times, mut way) in times.iter_mut().zip(ways) {
            times.push(cpu_seconds(&mut way)?);
        }
    }
    let [native, counting, logging, valgrind] = times.map(median);
    println!(
        "{:<12}{native:>10.2}{:>10.2}{:>10.2}{:>16.2}",
        subject.name,
        counting / native,
        logging / native,
        valgrind / native
    );
    Ok(())
}

/// Wall-clock time of the smallest dynamic program.
fn start_up(folder: &Path, verdict: &Path, runs: u32) -> Result<(), String> {
    let source = folder.join("hello.c");
    let program = folder.join("hello");
    let text = "#include <stdio.h>\nint main(void) { puts(\"hello\"); }\n";
    std::fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    compile(&source, &program)?;
    let mut engine = Vec::new();
    let mut native = Vec::new();
    for _ in 0..runs * 4 {
        native.push(wall_ms(&mut Command::new(&program))?);
        engine.push(wall_ms(
            Command::new(verdict).args(["exec", "--"]).arg(&program),
        )?);
    }
    println!(
        "\nstart-up of a dynamic hello: {:.1} ms, native {:.1} ms",
        median(engine),
        median(native)
    );
    Ok(())
}

fn wall_ms(command: &mut Command) -> Result<f64, String> {
    let started = Instant::now();
    finish(command)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// Processor time of a command and everything it starts and waits for.
pub(super) fn cpu_seconds(command: &mut Command) -> Result<f64, String> {
    let before = children_seconds()?;
    finish(command)?;
    Ok(children_seconds()? - before)
}

pub(super) fn finish(command: &mut Command) -> Result<(), String> {
    let line = format!("{command:?}");
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line} ended with {status}")),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// Processor time of all children that were waited for: fields 16 and 17 of `/proc/self/stat`, in hundredths.
pub(super) fn children_seconds() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat")
        .map_err(|error| format!("/proc/self/stat: {error}"))?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(ticks as f64 / 100.0)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
