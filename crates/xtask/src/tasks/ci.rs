//! `cargo xtask ci`: everything that must hold before a change is merged, quickest answer first.
//!
//! What the repository says of itself (ARCHITECTURE.md, README.md, ...) is checked by tests of this crate and of
//! the command line, so that one runner counts everything.

use std::process::Command;

use super::bench::target_folder;
use crate::process::{cargo, run, succeeds, workspace_root};

pub(crate) fn run_all() -> Result<(), String> {
    run(&mut cargo_with("fmt --all --check"))?;
    run(&mut cargo_with(
        "clippy --workspace --all-targets -- -D warnings",
    ))?;
    run(&mut fuzz_targets())?;
    run(&mut documentation())?;
    run(&mut cargo_with("test --workspace --doc --quiet"))?;
    // Installs what the tests of the cluster need; they would do it themselves, but in the time that is counted as theirs.
    run(&mut prepare_spark())?;
    // Last, so that the runner's summary is what one sees.
    if succeeds(&mut cargo_with("nextest --version")) {
        return run(&mut cargo_with("nextest run --workspace --no-fail-fast"));
    }
    println!("cargo-nextest is not installed; using cargo test");
    run(&mut cargo_with(
        "test --workspace --lib --bins --tests --no-fail-fast",
    ))
}

fn prepare_spark() -> Command {
    let mut command = Command::new(workspace_root().join("cluster/spark/prepare"));
    command.arg(target_folder().join("spark"));
    command
}

/// A workspace of their own, which nothing else builds.
fn fuzz_targets() -> Command {
    let mut command = cargo_with("check --locked --quiet --manifest-path");
    command.arg(workspace_root().join("fuzz/Cargo.toml"));
    command.arg("--target-dir").arg(target_folder());
    command
}

/// Links that lead nowhere are errors. Links to private items are not: whoever changes the code reads those pages.
fn documentation() -> Command {
    let mut command = cargo_with("doc --workspace --no-deps --document-private-items --quiet");
    command.env(
        "RUSTDOCFLAGS",
        "-D warnings -A rustdoc::private-intra-doc-links",
    );
    command
}

fn cargo_with(words: &str) -> Command {
    let mut command = cargo();
    command.args(words.split(' '));
    command
}
