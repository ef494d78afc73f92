//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/`, one after the other.
//!
//! Each starts from `fuzz/seeds` and keeps what it finds interesting in `fuzz/corpus`. Coverage needs a compiler flag that
//! stable compilers hide; `RUSTC_BOOTSTRAP` uncovers it, for the fuzz targets alone.

use std::ffi::OsStr;
use std::fs;

use crate::process::{cargo, run, succeeds, workspace_root};

/// What to fuzz, and for how long.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The targets; all of them if none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,

    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 600)]
    seconds: u32,
}

pub(crate) fn run_targets(args: &Args) -> Result<(), String> {
    if !succeeds(cargo().args(["fuzz", "--version"])) {
        return Err("cargo-fuzz is missing: `cargo install cargo-fuzz`".to_owned());
    }
    let all = all_targets()?;
    if let Some(unknown) = args.targets.iter().find(|target| !all.contains(target)) {
        return Err(format!(
            "`{unknown}` is no fuzz target; there are {}",
            all.join(", ")
        ));
    }
    let targets = if args.targets.is_empty() {
        &all
    } else {
        &args.targets
    };
    targets
        .iter()
        .try_for_each(|target| run_target(target, args.seconds))
}

/// The files in `fuzz/fuzz_targets`, in order of name.
fn all_targets() -> Result<Vec<String>, String> {
    let folder = workspace_root().join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut targets: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("rs")))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    Ok(targets)
}

fn run_target(target: &str, seconds: u32) -> Result<(), String> {
    let fuzz = workspace_root().join("fuzz");
    let corpus = fuzz.join("corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    // The two native targets differ in how they read, not in what.
    let seeds = fuzz.join("seeds").join(target.trim_end_matches("_file"));
    let mut command = cargo();
    command
        .args(["fuzz", "run", "--sanitizer", "none", target])
        .arg(corpus)
        .arg(seeds)
        .args(["--", "-max_len=4096"])
        .arg(format!("-max_total_time={seconds}"))
        .env("RUSTC_BOOTSTRAP", "1");
    run(&mut command)
}
