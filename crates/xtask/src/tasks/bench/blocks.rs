//! `cargo xtask bench blocks`: all races of large traces, by `hb` and `fasttrack` from the trace and by `blocks` from block
//! files, side by side.
//!
//! Every figure is of a whole process, from start to finish, the quickest of several rounds; in a round each way is run once,
//! so that whatever else the machine does befalls all of them. `cpu s` is the time of the main thread, which does its share
//! of the work: with other programs running it says more than the clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Run, quickest};
use super::traces::{build, target_folder};
use crate::process::run as run_command;

/// How much to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Events of each of the three traces
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    events: u64,

    /// Events of the large trace; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 200_000_000)]
    large_events: u64,

    /// Rounds of which the quickest run counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
}

/// A trace: its name, threads, locations, how rare critical sections are.
struct Kind {
    name: &'static str,
    threads: u32,
    locations: u64,
    lock_rarity: u32,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "few large blocks",
        threads: 8,
        locations: 1_000_000,
        lock_rarity: 400,
    },
    Kind {
        name: "many small blocks",
        threads: 8,
        locations: 1_000_000,
        lock_rarity: 1,
    },
    Kind {
        name: "many threads",
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
/// Exit codes of a detection that worked: without races, with races.
const DETECTED: [i32; 2] = [0, 1];

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let bench = Bench {
        verdict: build()?,
        folder: target_folder().join("bench"),
        rounds: args.rounds.max(1),
    };
    fs::create_dir_all(&bench.folder)
        .map_err(|error| format!("{}: {error}", bench.folder.display()))?;
    for kind in &KINDS {
        bench.side_by_side(kind, args.events)?;
    }
    bench.growth_with_events(args.events)?;
    bench.growth_with_threads(args.events)?;
    if args.large_events > 0 {
        bench.large(args.large_events)?;
    }
    Ok(())
}

struct Bench {
    verdict: PathBuf,
    folder: PathBuf,
    rounds: u32,
}

impl Bench {
    /// A trace and its block trace, and what building that took.
    fn make(&self, kind: &Kind, events: u64) -> Result<(PathBuf, PathBuf, Run), String> {
        let trace = self.folder.join("blocks.vtrace");
        let blocks = self.folder.join("blocks.blocks");
        let mut generate = Command::new(&self.verdict);
        generate
            .args(["trace", "generate", "--addresses"])
            .arg(&trace)
            .args(["--events", &events.to_string()])
            .args(["--threads", &kind.threads.to_string()])
            .args(["--locations", &kind.locations.to_string()])
            .args(["--lock-rarity", &kind.lock_rarity.to_string()]);
        run_command(&mut generate)?;
        if blocks.exists() {
            fs::remove_dir_all(&blocks)
                .map_err(|error| format!("{}: {error}", blocks.display()))?;
        }
        let mut make = Command::new(&self.verdict);
        make.args(["-q", "blocks", "build"])
            .arg(&trace)
            .arg(&blocks);
        let built = quickest(1, &mut make, &[0])?;
        Ok((trace, blocks, built))
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

    /// The quickest run of each command, when all of them are run in turn.
    fn in_turn(&self, commands: &mut [Command]) -> Result<Vec<Run>, String> {
        let mut best: Vec<Run> = Vec::new();
        for round in 0..self.rounds {
            for (nth, command) in commands.iter_mut().enumerate() {
                let run = quickest(1, command, &DETECTED)?;
                if round == 0 {
                    best.push(run);
                } else if run.seconds < best[nth].seconds {
                    best[nth] = run;
                }
            }
        }
        Ok(best)
    }

    fn side_by_side(&self, kind: &Kind, events: u64) -> Result<(), String> {
        let (trace, blocks, built) = self.make(kind, events)?;
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
        line("blocks build", &built);
        let mut commands = [
            self.detect(&trace, "hb", None),
            self.detect(&trace, "fasttrack", None),
            self.detect(&blocks, "blocks", Some(1)),
            self.detect(&blocks, "blocks", Some(2)),
        ];
        let runs = self.in_turn(&mut commands)?;
        let names = ["hb", "fasttrack", "blocks, 1 worker", "blocks, 2 workers"];
        for (name, run) in names.iter().zip(&runs) {
            line(name, run);
        }
        println!(
            "1 worker against hb: {:.2}x (wanted 1.00x); 2 workers against 1: {:.2}x (wanted {SPEED_UP_MIN}x)",
            runs[0].seconds / runs[2].seconds,
            runs[2].seconds / runs[3].seconds
        );
        let [hb, _, blocks, _] = &mut commands;
        self.same_report(hb, blocks)
    }

    /// The two reports must be the same but for the name of the algorithm.
    fn same_report(&self, hb: &mut Command, blocks: &mut Command) -> Result<(), String> {
        let report = |command: &mut Command| {
            let output = command
                .args(["--format", "json"])
                .stdout(std::process::Stdio::piped())
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

    fn growth_with_events(&self, events: u64) -> Result<(), String> {
        println!(
            "\nblocks, 1 worker, by number of events (wanted: at most {GROWTH_MAX}x for twice as many)"
        );
        for kind in &KINDS {
            let mut seconds = Vec::new();
            for events in [events / 2, events] {
                let (_, blocks, _) = self.make(kind, events)?;
                let run = self.in_turn(&mut [self.detect(&blocks, "blocks", Some(1))])?[0];
                println!(
                    "{:<20} {events:>12} {:>8.3} s {:>8.3} cpu s",
                    kind.name, run.seconds, run.cpu_seconds
                );
                seconds.push(run.cpu_seconds);
            }
            println!("{:<20} {:.2}x", "", seconds[1] / seconds[0]);
        }
        Ok(())
    }

    fn growth_with_threads(&self, events: u64) -> Result<(), String> {
        println!(
            "\nblocks, 1 worker, {events} events, by number of threads, with critical sections as often"
        );
        println!(
            "{:>8} {:>8} {:>8} {:>9}",
            "threads", "seconds", "cpu s", "peak MB"
        );
        for threads in [4, 8, 16, 32, 64] {
            let kind = Kind {
                threads,
                ..KINDS[2]
            };
            let (_, blocks, _) = self.make(&kind, events)?;
            let run = self.in_turn(&mut [self.detect(&blocks, "blocks", Some(1))])?[0];
            println!(
                "{threads:>8} {:>8.3} {:>8.3} {:>9.1}",
                run.seconds,
                run.cpu_seconds,
                run.peak_bytes as f64 / 1e6
            );
        }
        println!(
            "What grows with threads: clocks are as wide as there are threads, and whoever synchronises learns of more of them;\n\
             more blocks touch a location, but an access is compared with the one before it, not with every thread's."
        );
        Ok(())
    }

    fn large(&self, events: u64) -> Result<(), String> {
        let (_, blocks, built) = self.make(&KINDS[1], events)?;
        let run = self.in_turn(&mut [self.detect(&blocks, "blocks", Some(2))])?[0];
        println!(
            "\n{events} events from block files, 2 workers: {:.1} s (wanted {LARGE_SECONDS_MAX}), {:.2} GB (wanted {:.0}); built in {:.1} s, {:.2} GB",
            run.seconds,
            run.peak_bytes as f64 / 1e9,
            LARGE_BYTES_MAX as f64 / 1e9,
            built.seconds,
            built.peak_bytes as f64 / 1e9
        );
        Ok(())
    }
}
