//! The corpus: guest programs with their truth, built on demand.
//!
//! ```no_run
//! use verdict_corpus::{Opt, cases};
//!
//! for case in cases() {
//!     let binary = case.build(Opt::O2)?;
//!     for race in case.truth.races.iter().filter(|race| race.expected_at(Opt::O2)) {
//!         println!("{}: {:?} {}", binary.display(), race.lines(), race.class);
//!     }
//! }
//! # Ok::<(), verdict_corpus::BuildError>(())
//! ```
//!
//! The programs and the syntax of their truth comments are described in `programs/README.md`.
//! A malformed truth comment does not get here: this crate's build script rejects it.

#![forbid(unsafe_code)]

mod compile;
mod discover;
mod score;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use compile::{BuildError, build_all};
pub use discover::Language;
pub use score::{Reported, Score, score};
pub use truth::{
    Access, AccessKind, Class, Consequence, Consequences, Label, Needs, Observed, Opt, Race,
    ReplayOutcome, Truth, TruthError, parse,
};

/// One guest program with its truth.
#[derive(Clone, Debug)]
pub struct Case {
    /// The path below `programs/`, with `/`: `papers/portend_fig1.c`.
    pub name: String,
    /// The source file.
    pub path: PathBuf,
    /// What it is written in.
    pub language: Language,
    /// What its comments promise.
    pub truth: Truth,
}

impl Case {
    /// The program built at `opt`; built now unless the cache has it.
    ///
    /// # Errors
    /// When the compiler is missing or rejects the program.
    pub fn build(&self, opt: Opt) -> Result<PathBuf, BuildError> {
        compile::build(self, opt)
    }

    /// The source line `line` (from 1), for messages; empty if there is none.
    pub fn source_line(&self, line: u32) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let index = (line as usize).saturating_sub(1);
        text.lines().nth(index).unwrap_or_default().to_owned()
    }
}

/// The folder with the programs.
pub fn programs_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let relative = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
        // Debug information names the sources by this path, so it must not contain `..`.
        relative.canonicalize().unwrap_or(relative)
    })
}

/// All programs, in the order of their names.
///
/// # Panics
/// When the programs changed under a running test so that they no longer parse.
pub fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let files = discover::program_files(programs_dir()).expect("programs/ can be listed");
        files.iter().map(|file| load(file)).collect()
    })
}

/// The program called `name`, such as `papers/portend_fig1.c`.
///
/// # Panics
/// When there is none: a test that names a program that is gone must fail.
pub fn case(name: &str) -> &'static Case {
    let found = cases().iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("programs/{name} does not exist"))
}

fn load(file: &Path) -> Case {
    let path = programs_dir().join(file);
    let name = file
        .to_str()
        .expect("names of programs are ASCII")
        .to_owned();
    let text = fs::read_to_string(&path).expect("programs can be read");
    let truth = parse(&text).unwrap_or_else(|errors| panic!("programs/{name}:{}", errors[0]));
    let language = Language::of(file).expect("only programs are listed");
    Case {
        name,
        path,
        language,
        truth,
    }
}
