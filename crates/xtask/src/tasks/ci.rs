//! `cargo xtask ci`: everything that must hold before a change is merged, quickest answer first.
//!
//! What the repository says of itself (ARCHITECTURE.md, README.md, ...) is checked by tests of this crate and of
//! the command line, so that one runner counts everything.

use crate::process::{cargo, run, succeeds};

pub(crate) fn run_all() -> Result<(), String> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    run(cargo()
        .args([
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--quiet",
        ])
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    run(cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    // Last, so that the runner's summary is what one sees.
    if succeeds(cargo().args(["nextest", "--version"])) {
        return run(cargo().args(["nextest", "run", "--workspace", "--no-fail-fast"]));
    }
    println!("cargo-nextest is not installed; using cargo test");
    run(cargo().args([
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-fail-fast",
    ]))
}
