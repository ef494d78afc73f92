//! Parses every program's truth while the corpus is built, so that a malformed truth comment stops
//! the build of all tests that depend on it, with file and line.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[allow(dead_code, missing_docs)]
#[path = "src/discover.rs"]
mod discover;
#[allow(dead_code, missing_docs)]
#[path = "src/truth/mod.rs"]
mod truth;

fn main() -> ExitCode {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    println!("cargo::rerun-if-changed={}", programs.display());
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // <target>/<profile>/build/<package>/out: the cache is shared by all profiles.
    let target = out_dir.ancestors().nth(4).unwrap_or(&out_dir);
    println!(
        "cargo::rustc-env=VERDICT_CORPUS_CACHE={}",
        target.join("corpus").display()
    );

    let mistakes = mistakes(&programs);
    for mistake in &mistakes {
        println!("cargo::error={mistake}");
    }
    if mistakes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Every mistake in the truth comments below `programs`, as `programs/file:line: what is wrong`.
pub fn mistakes(programs: &Path) -> Vec<String> {
    let files = match discover::program_files(programs) {
        Ok(files) => files,
        Err(error) => return vec![format!("cannot list {}: {error}", programs.display())],
    };
    let mut mistakes = Vec::new();
    for file in files {
        match fs::read_to_string(programs.join(&file)) {
            Err(error) => mistakes.push(format!("programs/{}: {error}", file.display())),
            Ok(text) => {
                let errors = truth::parse(&text).err().unwrap_or_default();
                mistakes.extend(
                    errors
                        .iter()
                        .map(|e| format!("programs/{}:{e}", file.display())),
                );
            }
        }
    }
    mistakes
}
