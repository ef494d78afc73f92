//! `cargo xtask bench blocks`: all races of large traces, by `hb` and `fasttrack` from the trace and by `blocks` from block
//! files, side by side.
//!
//! Two cores that share their caches and their way to memory are not twice one core. What two workers can reach at best is shown by
//! two detections that run at the same time and have nothing else in common.
//!
//! Every figure is of a whole process, from start to finish, the quickest of several rounds; in a round each way is run once,
//! so that whatever else the machine does befalls all of them. `cpu s` is the time of all threads of the process.
//!
//! Making traces and block files takes longer than measuring. `--prepare` does only that, and what is there is not made again: on a
//! machine with other work, prepare first and measure, part by part, when it is quiet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::measure::{Run, quickest};
use super::traces::{build, target_folder};
use crate::process::run as run_command;

/// How much to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// What to measure; everything if nothing is named
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,

    /// Only the trace of this name: large-blocks, small-blocks, many-threads
    #[arg(long, value_name = "TRACE")]
    only: Option<String>,

    /// Events of each of the three traces
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    events: u64,

    /// Events of the large trace
    #[arg(long, value_name = "N", default_value_t = 200_000_000)]
    large_events: u64,

    /// Rounds of which the quickest run counts; of what takes less than a second there are eight times as many
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,

    /// Make traces and block files, and measure nothing
    #[arg(long)]
    prepare: bool,

    /// Leave traces and block files where they are
    #[arg(long)]
    keep: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Detectors, on three traces
    SideBySide,
    /// Time by number of events
    Events,
    /// Time by number of threads
    Threads,
    /// The large trace
    Large,
}

/// A trace: its name, threads, locations, how rare critical sections are.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    threads: u32,
    locations: u64,
    lock_rarity: u32,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "large-blocks",
        threads: 8,
        locations: 1_000_000,
        lock_rarity: 400,
    },
    Kind {
        name: "small-blocks",
        threads: 8,
        locations: 1_000_000,
        lock_rarity: 1,
    },
    Kind {
        name: "many-threads",
        threads: 64,
        locations: 1_000_000,
        lock_rarity: 2,
    },
];

/// How many times the time of half the events all events may take.
const GROWTH_MAX: f64 = 2.2;
const SPEED_UP_MIN: f64 = 1.8;
const LARGE_SECONDS_MAX: f64 = 60.0;
const LARGE_BYTES_MAX: u64 = 4_000_000_000;
/// Seconds that are quick, and how many times as many rounds there are of what is.
const QUICK: f64 = 1.0;
const QUICK_ROUNDS: u32 = 8;
/// Exit codes of a detection that worked: without races, with races.
const DETECTED: [i32; 2] = [0, 1];

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let bench = Bench {
        verdict: build()?,
        folder: target_folder().join("bench-blocks"),
        rounds: args.rounds.max(1),
        prepare: args.prepare,
    };
    fs::create_dir_all(&bench.folder).map_err(|error| named(&bench.folder, &error))?;
    let wanted = |part: Part| args.parts.is_empty() || args.parts.contains(&part);
    let named_kind = |kind: &&Kind| args.only.as_ref().is_none_or(|only| only == kind.name);
    let kinds: Vec<&Kind> = KINDS.iter().filter(named_kind).collect();
    if kinds.is_empty() {
        let names = KINDS.map(|kind| kind.name).join(", ");
        return Err(format!("--only: there are {names}"));
    }
    for kind in &kinds {
        if wanted(Part::SideBySide) {
            bench.side_by_side(kind, args.events)?;
        }
    }
    if wanted(Part::Events) {
        bench.growth_with_events(&kinds, args.events)?;
    }
    if wanted(Part::Threads) {
        bench.growth_with_threads(args.events)?;
    }
    if wanted(Part::Large) {
        bench.large(args.large_events)?;
    }
    match args.prepare || args.keep {
        true => Ok(()),
        false => fs::remove_dir_all(&bench.folder).map_err(|error| named(&bench.folder, &error)),
    }
}

fn named(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

struct Bench {
    verdict: PathBuf,
    folder: PathBuf,
    rounds: u32,
    prepare: bool,
}

/// A trace and its block trace.
struct Made {
    trace: PathBuf,
    blocks: PathBuf,
}

impl Bench {
    /// Makes a trace and its blocks, unless they are there.
    fn make(&self, kind: &Kind, events: u64) -> Result<Made, String> {
        let name = format!("{}-{}-{}-{events}", kind.name, kind.threads, kind.locations);
        let made = Made {
            trace: self.folder.join(format!("{name}.vtrace")),
            blocks: self.folder.join(format!("{name}.blocks")),
        };
        if !made.trace.exists() {
            let mut generate = Command::new(&self.verdict);
            generate
                .args(["trace", "generate", "--addresses"])
                .arg(&made.trace)
                .args(["--events", &events.to_string()])
                .args(["--threads", &kind.threads.to_string()])
                .args(["--locations", &kind.locations.to_string()])
                .args(["--lock-rarity", &kind.lock_rarity.to_string()]);
            run_command(&mut generate)?;
        }
        if !made.blocks.exists() {
            run_command(&mut self.build(&made.trace, &made.blocks))?;
        }
        Ok(made)
    }

    fn build(&self, trace: &Path, blocks: &Path) -> Command {
        let mut command = Command::new(&self.verdict);
        command
            .args(["-q", "blocks", "build"])
            .arg(trace)
            .arg(blocks);
        command
    }

    /// What building the block trace takes, of a second one that is thrown away.
    fn time_build(&self, made: &Made) -> Result<Run, String> {
        let again = self.folder.join("again.blocks");
        let run = quickest(1, &mut self.build(&made.trace, &again), &[0])?;
        fs::remove_dir_all(&again).map_err(|error| named(&again, &error))?;
        Ok(run)
    }

    fn detect(&self, input: &Path, algorithm: &str, workers: Option<u32>) -> Command {
        let mut command = Command::new(&self.verdict);
        command
            .args(["detect", "--algorithm", algorithm])
            .arg(input);
        if let Some(workers) = workers {
            command.args(["--workers", &workers.to_string()]);
        }
        command
    }

    /// The quickest run of each command, when all of them are run in turn. Those that are over in less than a second are run more
    /// often: whatever else the machine does for a moment is more of their time.
    fn in_turn(&self, commands: &mut [Command]) -> Result<Vec<Run>, String> {
        let mut best: Vec<Run> = Vec::new();
        for round in 0..self.rounds * QUICK_ROUNDS {
            for (nth, command) in commands.iter_mut().enumerate() {
                let known = best.get(nth).map(|run| run.seconds);
                if round >= self.rounds && known.is_none_or(|seconds| seconds > QUICK) {
                    continue;
                }
                let run = quickest(1, command, &DETECTED)?;
                match known {
                    None => best.push(run),
                    Some(seconds) if run.seconds < seconds => best[nth] = run,
                    Some(_) => {}
                }
            }
        }
        Ok(best)
    }

    fn side_by_side(&self, kind: &Kind, events: u64) -> Result<(), String> {
        let made = self.make(kind, events)?;
        if self.prepare {
            return Ok(());
        }
        println!("\n{}: {events} events, {} threads", kind.name, kind.threads);
        println!(
            "{:<20} {:>8} {:>8} {:>11} {:>9}",
            "", "seconds", "cpu s", "million/s", "peak MB"
        );
        let line = |name: &str, run: &Run| {
            println!(
                "{name:<20} {:>8.3} {:>8.3} {:>11.1} {:>9.1}",
                run.seconds,
                run.cpu_seconds,
                events as f64 / run.seconds / 1e6,
                run.peak_bytes as f64 / 1e6
            );
        };
        let built = self.time_build(&made)?;
        line("blocks build", &built);
        let mut commands = [
            self.detect(&made.trace, "hb", None),
            self.detect(&made.trace, "fasttrack", None),
            self.detect(&made.blocks, "blocks", Some(1)),
            self.detect(&made.blocks, "blocks", Some(2)),
        ];
        let runs = self.in_turn(&mut commands)?;
        let names = ["hb", "fasttrack", "blocks, 1 worker", "blocks, 2 workers"];
        for (name, run) in names.iter().zip(&runs) {
            line(name, run);
        }
        println!(
            "1 worker against hb: {:.2}x (wanted 1.00x), with building: {:.2}x; 2 workers against 1: {:.2}x (wanted {SPEED_UP_MIN}x)",
            runs[0].seconds / runs[2].seconds,
            runs[0].seconds / (built.seconds + runs[2].seconds),
            runs[2].seconds / runs[3].seconds
        );
        println!(
            "two detections with 1 worker, side by side: {:.2}x of one after the other; more than that, two workers cannot reach here",
            2.0 * runs[2].seconds / self.two_at_once(&made.blocks)?
        );
        let [hb, _, blocks, _] = &mut commands;
        self.same_report(hb, blocks)
    }

    /// How long two detections with one worker each take that have nothing in common but the machine.
    fn two_at_once(&self, blocks: &Path) -> Result<f64, String> {
        let mut best = f64::INFINITY;
        for _ in 0..self.rounds * QUICK_ROUNDS {
            let started = Instant::now();
            let start = |_| {
                let mut command = self.detect(blocks, "blocks", Some(1));
                command.stdout(Stdio::null()).spawn()
            };
            let children: Result<Vec<_>, _> = (0..2).map(start).collect();
            for mut child in children.map_err(|error| error.to_string())? {
                child.wait().map_err(|error| error.to_string())?;
            }
            best = best.min(started.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    /// The two reports must be the same but for the name of the algorithm.
    fn same_report(&self, hb: &mut Command, blocks: &mut Command) -> Result<(), String> {
        let report = |command: &mut Command| {
            let output = command
                .args(["--format", "json"])
                .stdout(Stdio::piped())
                .output()
                .map_err(|error| error.to_string())?;
            String::from_utf8(output.stdout).map_err(|error| error.to_string())
        };
        let (hb, blocks) = (report(hb)?, report(blocks)?);
        if hb.replacen(r#""algorithm":"hb""#, r#""algorithm":"blocks""#, 1) != blocks {
            return Err("hb and blocks do not report the same".to_owned());
        }
        println!("hb and blocks report the same, byte for byte");
        Ok(())
    }

    fn growth_with_events(&self, kinds: &[&Kind], events: u64) -> Result<(), String> {
        if !self.prepare {
            println!(
                "\nblocks, 1 worker, by number of events (wanted: at most {GROWTH_MAX}x for twice as many)"
            );
        }
        for kind in kinds {
            // Twice the events on the same memory would also be twice as often on what others use: as much is shared only
            // where the memory grows with them.
            let smaller = Kind {
                locations: kind.locations / 2,
                ..**kind
            };
            let half = self.make(&smaller, events / 2)?;
            let whole = self.make(kind, events)?;
            if self.prepare {
                continue;
            }
            let mut commands =
                [half, whole].map(|made| self.detect(&made.blocks, "blocks", Some(1)));
            let runs = self.in_turn(&mut commands)?;
            for (events, run) in [events / 2, events].iter().zip(&runs) {
                println!(
                    "{:<20} {events:>12} {:>8.3} s {:>8.3} cpu s",
                    kind.name, run.seconds, run.cpu_seconds
                );
            }
            println!("{:<20} {:.2}x", "", runs[1].seconds / runs[0].seconds);
        }
        Ok(())
    }

    fn growth_with_threads(&self, events: u64) -> Result<(), String> {
        if !self.prepare {
            println!(
                "\nblocks, 1 worker, {events} events, by number of threads, with critical sections as often"
            );
            println!(
                "{:>8} {:>8} {:>8} {:>9} {:>10} {:>10}",
                "threads", "seconds", "cpu s", "peak MB", "blocks", "records"
            );
        }
        for threads in [4, 8, 16, 32, 64] {
            let kind = Kind {
                threads,
                ..KINDS[2]
            };
            let made = self.make(&kind, events)?;
            if self.prepare {
                continue;
            }
            let run = self.in_turn(&mut [self.detect(&made.blocks, "blocks", Some(1))])?[0];
            let [blocks, records] = self.sizes(&made.blocks)?;
            println!(
                "{threads:>8} {:>8.3} {:>8.3} {:>9.1} {blocks:>10} {records:>10}",
                run.seconds,
                run.cpu_seconds,
                run.peak_bytes as f64 / 1e6
            );
        }
        if !self.prepare {
            println!("{THREADS_EXPLAINED}");
        }
        Ok(())
    }

    /// Blocks, and entries that can race.
    fn sizes(&self, blocks: &Path) -> Result<[u64; 2], String> {
        let output = Command::new(&self.verdict)
            .args(["blocks", "info", "--format", "json"])
            .arg(blocks)
            .output()
            .map_err(|error| error.to_string())?;
        let info: serde_json::Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let number = |name: &str| info[name].as_u64().ok_or(format!("no {name}"));
        Ok([number("blocks")?, number("racing_entries")?])
    }

    fn large(&self, events: u64) -> Result<(), String> {
        let made = self.make(&KINDS[1], events)?;
        if self.prepare {
            return Ok(());
        }
        let run = self.in_turn(&mut [self.detect(&made.blocks, "blocks", Some(2))])?[0];
        println!(
            "\n{events} events from block files, 2 workers: {:.1} s (wanted {LARGE_SECONDS_MAX}), {:.2} GB (wanted {:.0})",
            run.seconds,
            run.peak_bytes as f64 / 1e9,
            LARGE_BYTES_MAX as f64 / 1e9
        );
        Ok(())
    }
}

const THREADS_EXPLAINED: &str = "\
What grows with threads: clocks are as wide as there are threads, and whoever synchronises learns of more of them;
more blocks touch a location, but an access is compared with the one before it, not with every thread's.";
