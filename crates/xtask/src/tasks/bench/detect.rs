//! `cargo xtask bench detect`: what finding the races of a program costs, side by side on the same sources: native,
//! ThreadSanitizer, Helgrind, DRD and `verdict detect`, which records and detects. Each takes turns with the others; times
//! are medians, as ratios to native. Programs are measured in two sizes: small ones are over before much but starting has been
//! done, large ones run and have memory as programs do for whose sake one looks at a benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::engine::median;
use super::family::{Run, run_family};
use crate::process::{cargo, run as run_shown, workspace_root};

/// How to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Runs of each program in each way; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Without Helgrind and DRD, which take most of the time
    #[arg(long)]
    quick: bool,
    /// Only programs of this size
    #[arg(long, value_enum)]
    size: Option<Size>,
}

/// How much a program has to do.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Size {
    /// Some hundredths of a second, a few megabytes
    Small,
    /// Half a second or more, tens of megabytes where the program is about memory
    Large,
}

impl Size {
    const ALL: [Size; 2] = [Size::Small, Size::Large];

    fn name(self) -> &'static str {
        match self {
            Size::Small => "small",
            Size::Large => "large",
        }
    }

    /// How a program of this size is built.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Size::Small => &[],
            Size::Large => &["-DLARGE"],
        }
    }

    /// The file of a program.
    fn file(self, program: &str) -> String {
        format!("{program}-{}", self.name())
    }
}

/// Programs of `benches/detect`, and what each needs to be linked.
const PROGRAMS: [(&str, &[&str]); 8] = [
    ("matmul", &[]),
    ("stencil", &[]),
    ("compress", &[]),
    ("table", &[]),
    ("queue", &[]),
    ("database", &["-lsqlite3"]),
    ("sort", &[]),
    ("fill", &[]),
];

/// Of the goals.
const SLOWEST_TO_NATIVE: f64 = 15.0;
const HELGRIND_AT_LEAST: f64 = 10.0;
const MEMORY_AT_MOST: f64 = 4.0;

/// A way to run a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Native,
    Us,
    ThreadSanitizer,
    Helgrind,
    Drd,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Us => "verdict",
            Way::ThreadSanitizer => "tsan",
            Way::Helgrind => "helgrind",
            Way::Drd => "drd",
        }
    }
}

/// What a way took: medians.
#[derive(Clone, Copy, Debug)]
struct Taken {
    way: Way,
    run: Run,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    run_shown(cargo().args(["build", "--release", "-p", "verdict-cli"]))?;
    let root = workspace_root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let bench = Bench {
        verdict: target.join("release/verdict"),
        folder: target.join("bench-detect"),
        runs: args.runs,
        ways: match args.quick {
            true => vec![Way::Native, Way::Us, Way::ThreadSanitizer],
            false => vec![
                Way::Native,
                Way::Us,
                Way::ThreadSanitizer,
                Way::Helgrind,
                Way::Drd,
            ],
        },
    };
    std::fs::create_dir_all(&bench.folder)
        .map_err(|error| format!("{}: {error}", bench.folder.display()))?;
    let programs: Vec<_> = PROGRAMS
        .iter()
        .filter(|(name, _)| name.contains(&args.only))
        .collect();
    let sizes = Size::ALL.into_iter();
    for size in sizes.filter(|size| args.size.is_none_or(|only| only == *size)) {
        for (name, libraries) in &programs {
            bench.compile(&root, name, libraries, size)?;
        }
        bench.head(size);
        let mut all = Vec::new();
        for (name, _) in &programs {
            all.push(bench.measure(name, size)?);
        }
        bench.goals(&all);
    }
    Ok(())
}

/// The tools and places of a measurement.
struct Bench {
    verdict: PathBuf,
    folder: PathBuf,
    runs: u32,
    ways: Vec<Way>,
}

impl Bench {
    /// Builds a program as it is, and for ThreadSanitizer.
    fn compile(
        &self,
        root: &Path,
        name: &str,
        libraries: &[&str],
        size: Size,
    ) -> Result<(), String> {
        let source = root.join("benches/detect").join(format!("{name}.c"));
        let program = size.file(name);
        let builds = [
            (program.clone(), &[][..]),
            (format!("{program}-tsan"), &["-fsanitize=thread"]),
        ];
        for (program, flags) in builds {
            run_shown(
                Command::new("gcc")
                    .args(["-O2", "-g", "-pthread"])
                    .args(size.flags())
                    .args(flags)
                    .arg(&source)
                    .arg("-o")
                    .arg(self.folder.join(program))
                    .args(libraries),
            )?;
        }
        Ok(())
    }

    fn command(&self, way: Way, name: &str) -> Command {
        let program = self.folder.join(name);
        let valgrind = |tool: &str| {
            let mut command = Command::new("valgrind");
            command.args(["-q", tool]).arg(&program);
            command
        };
        match way {
            Way::Native => Command::new(program),
            Way::ThreadSanitizer => Command::new(self.folder.join(format!("{name}-tsan"))),
            Way::Helgrind => valgrind("--tool=helgrind"),
            Way::Drd => valgrind("--tool=drd"),
            Way::Us => {
                let mut command = Command::new(&self.verdict);
                command.args(["detect", "--"]).arg(program);
                command
            }
        }
    }

    fn head(&self, size: Size) {
        println!(
            "\n{} programs: wall-clock and processor time as ratios to native, peak memory; median of {} runs each",
            size.name(),
            self.runs
        );
        print!("{:<10}", "program");
        for way in &self.ways {
            print!("{:>26}", way.name());
        }
        println!();
    }

    fn measure(&self, name: &str, size: Size) -> Result<Vec<Taken>, String> {
        let file = size.file(name);
        let mut runs = vec![Vec::new(); self.ways.len()];
        for _ in 0..self.runs {
            for (way, runs) in self.ways.iter().zip(&mut runs) {
                runs.push(run_family(&mut self.command(*way, &file))?);
            }
        }
        let taken: Vec<Taken> = self
            .ways
            .iter()
            .zip(&runs)
            .map(|(way, runs)| Taken {
                way: *way,
                run: middle(runs),
            })
            .collect();
        print_line(name, &taken);
        Ok(taken)
    }

    fn goals(&self, all: &[Vec<Taken>]) {
        let counted = |what: &str, holds: &dyn Fn(&[Taken]) -> bool| {
            let holding = all.iter().filter(|taken| holds(taken)).count();
            println!("{what}: {holding} of {}", all.len());
        };
        println!();
        counted("faster than ThreadSanitizer", &|taken| {
            seconds(taken, Way::Us) < seconds(taken, Way::ThreadSanitizer)
        });
        counted("at most 15 times native", &|taken| {
            seconds(taken, Way::Us) <= SLOWEST_TO_NATIVE * seconds(taken, Way::Native)
        });
        if self.ways.contains(&Way::Helgrind) {
            counted("at least 10 times faster than Helgrind", &|taken| {
                HELGRIND_AT_LEAST * seconds(taken, Way::Us) <= seconds(taken, Way::Helgrind)
            });
        }
        counted("at most 4 times the memory", &|taken| {
            peak(taken, Way::Us) <= MEMORY_AT_MOST * peak(taken, Way::Native)
        });
    }
}

fn print_line(name: &str, all: &[Taken]) {
    print!("{name:<10}");
    for taken in all {
        let megabytes = taken.run.peak_bytes as f64 / 1e6;
        if taken.way == Way::Native {
            print!(
                "{:>9.3} s{:>6.2} s{megabytes:>5.0} MB",
                taken.run.seconds, taken.run.cpu_seconds
            );
        } else {
            print!(
                "{:>9.1}x{:>7.1}x{megabytes:>5.0} MB",
                taken.run.seconds / seconds(all, Way::Native),
                taken.run.cpu_seconds / of(all, Way::Native).cpu_seconds,
            );
        }
    }
    println!();
}

fn middle(runs: &[Run]) -> Run {
    let each = |what: fn(&Run) -> f64| median(runs.iter().map(what).collect());
    Run {
        seconds: each(|run| run.seconds),
        cpu_seconds: each(|run| run.cpu_seconds),
        peak_bytes: each(|run| run.peak_bytes as f64) as u64,
    }
}

fn of(all: &[Taken], way: Way) -> Run {
    let found = all.iter().find(|taken| taken.way == way);
    found.expect("native and verdict are always measured").run
}

fn seconds(all: &[Taken], way: Way) -> f64 {
    of(all, way).seconds
}

fn peak(all: &[Taken], way: Way) -> f64 {
    of(all, way).peak_bytes as f64
}
