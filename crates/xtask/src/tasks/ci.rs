//! `cargo xtask ci`: everything that must hold before a change is merged, cheapest first.

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
    run(cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    // Last, so that the runner's summary is what one sees.
    match succeeds(cargo().args(["nextest", "--version"])) {
        true => run(cargo().args(["nextest", "run", "--workspace"])),
        false => run(cargo().args(["test", "--workspace", "--lib", "--bins", "--tests"])),
    }
}
