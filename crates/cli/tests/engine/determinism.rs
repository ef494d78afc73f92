//! The same program, arguments and seed give the same execution, to the last instruction: instructions of every
//! thread, switches, system calls, and the hash of all memory accesses. On an idle machine and on a loaded one, with
//! accesses logged or not.
//!
//! `VERDICT_DETERMINISM_RUNS` says how many runs are compared; `cargo xtask soak determinism` raises it.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use verdict_corpus::{Opt, case};

use crate::input::{lines, words};
use crate::run::{Program, observe};
use crate::tools::{build, build_c, text, tool};

const RUNS_DEFAULT: usize = 5;
/// Threads that compete for the processors during half of the runs.
const LOAD_THREADS: usize = 3;

/// What must be the same in every run.
#[derive(PartialEq, Eq, Debug)]
struct Execution {
    stdout: Vec<u8>,
    /// Instructions by thread, switches and their hash, signals, system calls.
    stats: Value,
}

/// One run: what must be the same, and the accesses if they were hashed.
fn execute(program: &Program, accesses: &str, folder: &Path) -> (Execution, Value) {
    let stats = folder.with_file_name("stats.json");
    let program = program.clone().options(&[
        "--accesses",
        accesses,
        "--stats-file",
        &text(&stats),
        "--format",
        "json",
    ]);
    program.prepare(folder);
    let seen = observe(program.under_engine(folder), &program.stdin, folder);
    let written = fs::read(&stats).unwrap_or_else(|error| {
        panic!(
            "{:?}: no statistics ({error}): {}",
            program.argv,
            String::from_utf8_lossy(&seen.stderr)
        )
    });
    let mut stats: Value = serde_json::from_slice(&written).unwrap();
    let fields = stats.as_object_mut().unwrap();
    let accesses = fields.remove("accesses").unwrap();
    // Blocks depend on the instrumentation, times on the machine.
    for field in ["blocks_translated", "pages_invalidated", "times_ns"] {
        fields.remove(field);
    }
    let stdout = seen.stdout;
    (Execution { stdout, stats }, accesses)
}

/// Runs `work` while others compete for the processors.
fn under_load<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..LOAD_THREADS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn runs() -> usize {
    let wanted = env::var("VERDICT_DETERMINISM_RUNS");
    wanted.map_or(RUNS_DEFAULT, |runs| runs.parse().expect("a number of runs"))
}

/// Every other run is under load; accesses are hashed in half of the runs, and otherwise logged or not.
#[track_caller]
fn same_every_time(program: &Program) -> Execution {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    let (first, hash) = execute(program, "hash", &folder);
    assert!(hash["hash"].is_string(), "accesses were not hashed: {hash}");
    for run in 1..runs() {
        let accesses = ["off", "hash", "discard", "hash"][(run - 1) % 4];
        let (again, again_hash) = if run % 2 == 0 {
            under_load(|| execute(program, accesses, &folder))
        } else {
            execute(program, accesses, &folder)
        };
        let what = format!(
            "{:?} {:?}, run {run}, accesses {accesses}",
            program.argv, program.options
        );
        assert_eq!(first, again, "{what}");
        if accesses == "hash" {
            assert_eq!(hash, again_hash, "{what}: accesses");
        }
    }
    println!(
        "{} runs the same: {} instructions, {} switches, {} accesses: {:?} {:?}",
        runs(),
        first.stats["instructions"],
        first.stats["switches"],
        hash["logged"],
        program.argv,
        program.options
    );
    first
}

/// Repeats the program with both schedulers; another seed must give another execution, or the comparison is blind.
#[track_caller]
fn same_for_both_schedulers(program: &Program) {
    let round_robin = same_every_time(program);
    let threads = round_robin.stats["threads"].as_array().unwrap().len();
    assert!(threads > 1, "{:?} has one thread", program.argv);
    let first = same_every_time(&seeded(program, "1"));
    let root = tempfile::tempdir().unwrap();
    let (second, _) = execute(&seeded(program, "2"), "off", &root.path().join("folder"));
    let hash = |run: &Execution| run.stats["switches_hash"].clone();
    assert_ne!(hash(&first), hash(&second), "{:?}: seeds", program.argv);
    assert_ne!(
        hash(&first),
        hash(&round_robin),
        "{:?}: schedulers",
        program.argv
    );
}

fn seeded(program: &Program, seed: &str) -> Program {
    let random = ["--schedule", "random", "--seed", seed];
    program.clone().options(&random)
}

fn corpus_program(name: &str) -> Program {
    let case = case(name);
    let mut argv = vec![text(
        &case
            .build(Opt::O2)
            .unwrap_or_else(|error| panic!("{error}")),
    )];
    argv.extend(case.truth.args.iter().cloned());
    Program::new(&argv)
}

#[test]
fn pbzip2() {
    let pbzip2 = tool("pbzip2", "pbzip2");
    same_for_both_schedulers(
        &Program::new(&[&pbzip2, "-p4", "-b1", "-k", "text"]).file("text", words(500_000)),
    );
}

#[test]
fn xz() {
    let xz = tool("xz", "xz-utils");
    let program = Program::new(&[&xz, "-T2", "-0", "-k", "--block-size=100KiB", "text"]);
    same_for_both_schedulers(&program.file("text", words(400_000)));
}

#[test]
fn pigz() {
    let pigz = tool("pigz", "pigz");
    same_for_both_schedulers(
        &Program::new(&[&pigz, "-p4", "-1", "-k", "text"]).file("text", words(600_000)),
    );
}

#[test]
fn sort() {
    let sort = tool("sort", "coreutils");
    // From 128 Ki lines on `sort` uses threads.
    let program = Program::new(&[&sort, "--parallel=4", "-S64M", "text"]);
    same_for_both_schedulers(&program.file("text", lines(140_000)));
}

#[test]
fn python_threads() {
    tool("python3", "python3");
    let script = "import threading, hashlib, random, time\n\
        def work(n):\n    for i in range(20): hashlib.sha1(str(random.random()).encode()); time.sleep(0.0001 * n)\n\
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\n\
        print(id(threads) % 1000, hash('x'), time.time(), random.random())\n";
    same_for_both_schedulers(&Program::new(&["/usr/bin/python3", "-c", script]));
}

#[test]
fn sqlite_in_threads() {
    tool("python3", "python3");
    let script = "import sqlite3, threading\n\
        sqlite3.connect('data.db').execute('create table t(thread, n)')\n\
        def work(me):\n    db = sqlite3.connect('data.db', timeout=1000, isolation_level=None)\n    \
            for n in range(5): db.execute('insert into t values(?, ?)', (me, n))\n\
        threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\n\
        print(sqlite3.connect('data.db').execute('select * from t order by rowid').fetchall())\n";
    same_for_both_schedulers(&Program::new(&["/usr/bin/python3", "-c", script]));
}

/// When a file was last read, and when the run changed one, are not part of its input.
#[test]
fn times_of_files() {
    let script = "import os, threading\n\
        t = threading.Thread(target=lambda: open('new', 'w').write('x')); t.start(); t.join()\n\
        print([(s.st_atime_ns, s.st_mtime_ns) for s in map(os.stat, ['old', 'new'])])\n";
    same_every_time(&Program::new(&["/usr/bin/python3", "-c", script]).file("old", "x"));
}

#[test]
fn rust_threads() {
    let program = build("threads_and_panic.rs", &["rustc", "-O", "--edition=2024"]);
    same_for_both_schedulers(&Program::new(&[text(&program)]));
}

#[test]
fn cpp_exceptions() {
    let compiler = tool("g++", "g++");
    let program = build("exceptions.cpp", &[&compiler, "-O2", "-pthread"]);
    same_for_both_schedulers(&Program::new(&[text(&program)]));
}

#[test]
fn thousand_threads() {
    same_for_both_schedulers(&Program::new(&[text(&build_c("thousand_threads.c"))]));
}

#[test]
fn signals_and_timers() {
    same_for_both_schedulers(&Program::new(&[text(&build_c("preempted.c"))]));
}

#[test]
fn pipes_and_polls() {
    same_for_both_schedulers(&Program::new(&[text(&build_c("pipes.c"))]));
}

#[test]
fn thread_ends() {
    same_for_both_schedulers(&Program::new(&[text(&build_c("thread_ends.c"))]));
}

#[test]
fn corpus_programs() {
    for name in [
        "racefree/bounded_buffer.c",
        "racefree/lock_free_queue.cpp",
        "racefree/rust_channels.rs",
        "racefree/openmp_reduction.c",
        "racefree/stdio_shared.c",
        "effects/lost_update.c",
    ] {
        // Too short for two seeds to differ with certainty.
        same_every_time(&corpus_program(name));
        same_every_time(&seeded(&corpus_program(name), "1"));
    }
}
