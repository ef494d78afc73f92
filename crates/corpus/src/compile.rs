//! Builds the programs into a cache below cargo's target folder.
//!
//! A binary's name holds a hash of everything it is made from: source text and path, compiler
//! version, flags. It is built under a temporary name and renamed, so nobody sees half a file, and
//! under a file lock, so parallel tests, in one process or in many, build each program once.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{Case, Language, Opt};

/// Why a program could not be built.
#[derive(Clone, Debug)]
pub enum BuildError {
    /// The compiler cannot be started.
    CompilerMissing {
        /// The command that was tried.
        compiler: String,
        /// The variable that names another one.
        variable: &'static str,
        /// The system's reason.
        reason: String,
    },
    /// The compiler rejected the program.
    Rejected {
        /// The program, as a path below `programs/`.
        program: String,
        /// What the compiler said.
        stderr: String,
    },
    /// A file of the cache or of the corpus cannot be read or written.
    File {
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::CompilerMissing {
                compiler,
                variable,
                reason,
            } => write!(
                f,
                "the corpus needs the compiler `{compiler}`, which cannot be started ({reason}): \
                 install it or name another one in {variable}"
            ),
            BuildError::Rejected { program, stderr } => {
                write!(f, "programs/{program} does not build:\n{stderr}")
            }
            BuildError::File { path, reason } => write!(f, "{}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for BuildError {}

fn file_error(path: &Path, error: &io::Error) -> BuildError {
    BuildError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// Builds every case at every level in `jobs_max` threads; the result is in the order of
/// `cases`, then of `opts`.
///
/// # Errors
/// The first error in that order.
pub fn build_all(
    cases: &[Case],
    opts: &[Opt],
    jobs_max: usize,
) -> Result<Vec<PathBuf>, BuildError> {
    let wanted: Vec<(&Case, Opt)> = cases
        .iter()
        .flat_map(|case| opts.iter().map(move |&opt| (case, opt)))
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut built = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(case, opt)) = wanted.get(index) else {
                return built;
            };
            built.push((index, build(case, opt)));
        }
    };
    let mut built: Vec<_> = thread::scope(|scope| {
        let jobs: Vec<_> = (0..jobs_max.max(1)).map(|_| scope.spawn(work)).collect();
        jobs.into_iter()
            .flat_map(|job| job.join().expect("a build job does not panic"))
            .collect()
    });
    built.sort_by_key(|&(index, _)| index);
    built.into_iter().map(|(_, path)| path).collect()
}

/// The path of `case` built at `opt`.
pub(crate) fn build(case: &Case, opt: Opt) -> Result<PathBuf, BuildError> {
    let compiler = Compiler::of(case.language);
    let version = compiler.version()?;
    let flags = compiler.flags(opt, &case.truth.flags);
    let cached = cache_path(case, opt, &version, &flags)?;
    if cached.exists() {
        return Ok(cached);
    }
    let _lock = lock(&cached)?;
    if cached.exists() {
        return Ok(cached);
    }
    let partial = partial_path(&cached);
    let mut command = compiler.command();
    command.args(&flags).arg("-o").arg(&partial).arg(&case.path);
    let output = command.output().map_err(|error| compiler.missing(&error))?;
    if !output.status.success() {
        fs::remove_file(&partial).ok();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Rejected {
            program: case.name.clone(),
            stderr,
        });
    }
    fs::rename(&partial, &cached).map_err(|error| file_error(&cached, &error))?;
    Ok(cached)
}

fn cache_path(
    case: &Case,
    opt: Opt,
    version: &str,
    flags: &[String],
) -> Result<PathBuf, BuildError> {
    let text = fs::read(&case.path).map_err(|error| file_error(&case.path, &error))?;
    let mut hasher = DefaultHasher::new();
    (text, &case.path, version, flags).hash(&mut hasher);
    let stem = case.name.replace(['/', '.'], "-");
    let name = format!("{stem}-{opt}-{:016x}", hasher.finish());
    Ok(Path::new(env!("VERDICT_CORPUS_CACHE")).join(name))
}

/// Waits until no other test builds `cached`. Released when the file is closed.
fn lock(cached: &Path) -> Result<File, BuildError> {
    let locks = cached.with_file_name("locks");
    fs::create_dir_all(&locks).map_err(|error| file_error(&locks, &error))?;
    let path = locks.join(cached.file_name().unwrap_or_default());
    let file = File::create(&path).map_err(|error| file_error(&path, &error))?;
    file.lock().map_err(|error| file_error(&path, &error))?;
    Ok(file)
}

/// A name of its own for each attempt of each process. rustc derives crate names from it, so it
/// has no dots.
fn partial_path(cached: &Path) -> PathBuf {
    static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    let name = cached.file_name().unwrap_or_default().to_string_lossy();
    cached.with_file_name(format!("partial-{}-{attempt}-{name}", process::id()))
}

struct Compiler {
    variable: &'static str,
    default: &'static str,
    language: Language,
}

impl Compiler {
    fn of(language: Language) -> &'static Compiler {
        const COMPILERS: &[Compiler] = &[
            Compiler {
                variable: "CC",
                default: "cc",
                language: Language::C,
            },
            Compiler {
                variable: "CXX",
                default: "c++",
                language: Language::Cpp,
            },
            Compiler {
                variable: "RUSTC",
                default: "rustc",
                language: Language::Rust,
            },
        ];
        &COMPILERS[language as usize]
    }

    fn name(&self) -> String {
        std::env::var(self.variable).unwrap_or_else(|_| self.default.to_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.name());
        // rustup chooses the toolchain by the working directory.
        command.current_dir(crate::programs_dir());
        command
    }

    fn missing(&self, error: &io::Error) -> BuildError {
        BuildError::CompilerMissing {
            compiler: self.name(),
            variable: self.variable,
            reason: error.to_string(),
        }
    }

    /// Asked once per process; part of the cache key.
    fn version(&self) -> Result<String, BuildError> {
        static VERSIONS: [OnceLock<Result<String, BuildError>>; 3] = [const { OnceLock::new() }; 3];
        let ask = || {
            let output = self
                .command()
                .arg("--version")
                .output()
                .map_err(|error| self.missing(&error))?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        VERSIONS[self.language as usize].get_or_init(ask).clone()
    }

    fn flags(&self, opt: Opt, more: &[String]) -> Vec<String> {
        let level = match (self.language, opt) {
            (Language::Rust, Opt::O0) => &["--edition=2021", "-g", "-Copt-level=0"][..],
            (Language::Rust, Opt::O2) => &["--edition=2021", "-g", "-Copt-level=2"],
            (Language::C, Opt::O0) => &["-std=gnu17", "-g", "-O0"],
            (Language::C, Opt::O2) => &["-std=gnu17", "-g", "-O2"],
            (Language::Cpp, Opt::O0) => &["-std=gnu++17", "-g", "-O0"],
            (Language::Cpp, Opt::O2) => &["-std=gnu++17", "-g", "-O2"],
        };
        let threads: &[&str] = if self.language == Language::Rust {
            &[]
        } else {
            &["-pthread", "-Wall", "-Wextra"]
        };
        let own = level.iter().chain(threads).map(|&flag| flag.to_owned());
        own.chain(more.iter().cloned()).collect()
    }
}
