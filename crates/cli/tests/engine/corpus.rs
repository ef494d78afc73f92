//! Every race-free program of the corpus behaves as natively, at both levels of optimisation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use verdict_corpus::{Case, Opt, build_all, cases};

use crate::run::Program;
use crate::tools::text;

fn race_free() -> Vec<Case> {
    cases()
        .iter()
        .filter(|case| case.truth.races.is_empty())
        .cloned()
        .collect()
}

fn compare_all(opt: Opt, options: &[&str]) {
    let cases = race_free();
    assert!(cases.len() >= 60, "{} race-free programs", cases.len());
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let binaries = build_all(&cases, &[opt], jobs).unwrap_or_else(|error| panic!("{error}"));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < cases.len())
        {
            let mut argv = vec![text(&binaries[index])];
            argv.extend(cases[index].truth.args.iter().cloned());
            Program::new(&argv).options(options).compare();
        }
    };
    thread::scope(|scope| {
        (0..jobs).for_each(|_| drop(scope.spawn(work)));
    });
}

#[test]
fn unoptimised() {
    compare_all(Opt::O0, &[]);
}

#[test]
fn optimised() {
    compare_all(Opt::O2, &[]);
}

/// They neither read nor change anything outside, so a private world makes no difference.
#[test]
fn in_a_private_world() {
    compare_all(Opt::O2, &["--private"]);
}
