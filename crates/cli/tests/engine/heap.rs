//! No memory error is seen where there is none: in race-free programs and in those of a distribution.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use verdict_corpus::{Opt, build_all, cases};
use verdict_launch::{GuestOutput, LaunchOptions};
use verdict_observe::HeapUse;
use verdict_protocol::{ExecutorConfig, World};
use verdict_races::{Run, heap_use_of};

use crate::input::words;
use crate::tools::{text, tool};

fn look(argv: &[String], input: &[u8]) -> HeapUse {
    let bytes = |text: &String| text.as_bytes().to_vec();
    let argv: Vec<Vec<u8>> = argv.iter().map(bytes).collect();
    let environment = vec![b"PATH=/usr/bin:/bin".to_vec()];
    let config = ExecutorConfig {
        world: World::Private {
            input: input.to_vec(),
        },
        ..ExecutorConfig::new(argv[0].clone(), argv, environment)
    };
    let launch = LaunchOptions {
        executor: env!("CARGO_BIN_EXE_verdict").into(),
        output: GuestOutput::Discarded,
        ..LaunchOptions::default()
    };
    heap_use_of(&Run { config, launch }).unwrap()
}

#[test]
fn programs_of_the_corpus() {
    let race_free = cases().iter().filter(|case| case.truth.races.is_empty());
    let cases: Vec<_> = race_free.cloned().collect();
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let binaries = build_all(&cases, &[Opt::O2], jobs).unwrap_or_else(|error| panic!("{error}"));
    let (next, blocks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < cases.len())
        {
            let mut argv = vec![text(&binaries[index])];
            argv.extend(cases[index].truth.args.iter().cloned());
            let seen = look(&argv, b"");
            assert_eq!(seen.errors, [], "{}", cases[index].name);
            blocks.fetch_add(seen.blocks as usize, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        (0..jobs).for_each(|_| drop(scope.spawn(work)));
    });
    let blocks = blocks.into_inner();
    assert!(blocks > 100, "{blocks} blocks");
}

#[test]
fn programs_of_a_distribution() {
    let words = words(1 << 18);
    let sql = "create table t(a, b); with recursive n(i) as (values(1) union all select i + 1 from n where i < 2000)
        insert into t select i, hex(i * 7919) from n; select b, count(*), group_concat(a) from t group by b % 7;";
    let sqlite = [tool("sqlite3", "sqlite3"), ":memory:".to_owned()];
    assert_eq!(look(&sqlite, sql.as_bytes()).errors, []);
    let (sort, xz, bzip2) = (
        tool("sort", "coreutils"),
        tool("xz", "xz-utils"),
        tool("bzip2", "bzip2"),
    );
    let perl = "my %h; $h{$_}++ while <>; print scalar(keys %h), join ',', sort keys %h";
    let all: [&[&str]; 4] = [
        &[&sort, "--parallel=4", "-u"],
        &[&xz, "-T2", "-1", "-c", "--block-size=64KiB"],
        &[&bzip2, "-c"],
        &[&tool("perl", "perl"), "-e", perl],
    ];
    for argv in all {
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        let seen = look(&argv, &words);
        assert_eq!(seen.errors, [], "{argv:?}");
        assert!(seen.blocks > 0, "{argv:?}: no blocks");
    }
}
