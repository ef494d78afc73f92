//! Every recorded execution can be repeated to the instruction: same instructions of every thread, same switches, same
//! output, same accesses, after the files it used are gone.
//!
//! `VERDICT_REPLAYS` says how often each recording is replayed; `cargo xtask soak replay` raises it.

use crate::input::{lines, words};
use crate::recorded::{Recorded, record};
use crate::run::Program;
use crate::tools::{build, build_c, text, tool};

/// Records the program with both schedulers and replays it.
#[track_caller]
fn check(program: &Program) {
    let random = ["--schedule", "random", "--seed", "1", "--quantum", "20000"];
    for program in [program.clone(), program.clone().options(&random)] {
        let what = format!("{:?} {:?}", program.argv, program.options);
        let recorded = record(&program);
        expect_threads(&recorded, &what);
        recorded.replays_the_same(&what);
    }
}

#[track_caller]
fn expect_threads(recorded: &Recorded, what: &str) {
    let threads = recorded.execution.stats["threads"].as_array().unwrap();
    assert!(threads.len() > 1, "{what} has one thread");
}

/// Sleeps and waits that are over while others run, and whoever is woken or too late then.
#[test]
fn short_sleeps() {
    let guest = build_c("short_sleeps.c");
    for seed in 1..=10 {
        let seed = seed.to_string();
        let random = ["--schedule", "random", "--seed", &seed, "--quantum", "5000"];
        let program = Program::new(&[text(&guest)]).options(&random);
        let recorded = record(&program);
        recorded.replays_the_same(&format!("seed {seed}"));
    }
}

#[test]
fn pbzip2() {
    let pbzip2 = tool("pbzip2", "pbzip2");
    check(&Program::new(&[&pbzip2, "-p4", "-b1", "-k", "text"]).file("text", words(300_000)));
}

#[test]
fn xz() {
    let xz = tool("xz", "xz-utils");
    let program = Program::new(&[&xz, "-T2", "-0", "-k", "-c", "--block-size=100KiB", "text"]);
    check(&program.file("text", words(300_000)));
}

#[test]
fn pigz_from_a_pipe() {
    let pigz = tool("pigz", "pigz");
    check(&Program::new(&[&pigz, "-p4", "-1"]).stdin(words(400_000)));
}

#[test]
fn sort() {
    let sort = tool("sort", "coreutils");
    // From 128 Ki lines on `sort` uses threads.
    let program = Program::new(&[&sort, "--parallel=4", "-S64M", "text"]);
    check(&program.file("text", lines(140_000)));
}

#[test]
fn python_threads() {
    tool("python3", "python3");
    let script = "import threading, hashlib, random, time\n\
        def work(n):\n    for i in range(20): hashlib.sha1(str(random.random()).encode()); time.sleep(0.0001 * n)\n\
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]\n\
        print(id(threads) % 1000, hash('x'), time.time(), random.random())\n";
    check(&Program::new(&["/usr/bin/python3", "-c", script]));
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
    check(&Program::new(&["/usr/bin/python3", "-c", script]));
}

#[test]
fn rust_threads() {
    let program = build("threads_and_panic.rs", &["rustc", "-O", "--edition=2024"]);
    check(&Program::new(&[text(&program)]));
}

#[test]
fn cpp_exceptions() {
    let compiler = tool("g++", "g++");
    let program = build("exceptions.cpp", &[&compiler, "-O2", "-pthread"]);
    check(&Program::new(&[text(&program)]));
}

#[test]
fn thousand_threads() {
    check(&Program::new(&[text(&build_c("thousand_threads.c"))]));
}

#[test]
fn signals_and_timers() {
    check(&Program::new(&[text(&build_c("preempted.c"))]));
}

#[test]
fn pipes_and_polls() {
    check(&Program::new(&[text(&build_c("pipes.c"))]));
}

#[test]
fn sockets() {
    check(&Program::new(&[text(&build_c("sockets.c"))]));
}

#[test]
fn thread_ends() {
    check(&Program::new(&[text(&build_c("thread_ends.c"))]));
}

/// A program that could not be started is told to the parent with its error, recorded and replayed as natively.
#[test]
fn spawned_programs() {
    let program = Program::new(&[text(&build_c("spawned.c"))]);
    program.compare();
    let recorded = record(&program);
    let said = String::from_utf8_lossy(&recorded.execution.stdout).into_owned();
    let expected = "/no/such/program: No such file or directory, status 0\n\
        /bin/true: started, status 0\n\
        /etc/passwd: Permission denied, status 0\n\
        /bin/false: started, status 1\n";
    assert_eq!(said, expected);
    check(&program);
}

#[test]
fn reading_and_writing_all_the_time() {
    let program = Program::new(&[&text(&build_c("chatter.c")), "text", "1000"]);
    check(&program.file("text", words(2000)));
}
