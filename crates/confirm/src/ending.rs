//! How a run ended, seen from outside.

use verdict_launch::Copied;
use verdict_protocol::{Exploration, Outcome};

const SIGABRT: i32 = 6;
/// What Rust's runtime exits with after a panic of the main thread.
const RUST_PANIC: u8 = 101;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// In one word.
    pub kind: EndedKind,
    /// In a sentence.
    pub detail: String,
}

/// How a run ended, in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EndedKind {
    /// By itself, with this code.
    Exited(u8),
    /// A signal for a fault.
    Crash(i32),
    /// `abort`.
    Abort,
    /// A failed assertion.
    Assertion,
    /// An exception that nobody caught, or a panic.
    Exception,
    /// A sanitizer or the C library found memory misused.
    MemoryError,
    /// What the user wants to hold does not.
    Property,
    /// Everybody waits for somebody.
    Deadlock,
    /// Everybody who can run is in a loop that nothing can end.
    InfiniteLoop,
    /// It did not end within its instructions.
    Hang,
    /// It did not end within its time, or the engine lost it: nothing is known.
    Unknown,
}

impl EndedKind {
    /// True if something went wrong, whatever the program's usual code is.
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(self, EndedKind::Exited(_) | EndedKind::Unknown)
    }
}

impl Ended {
    /// Of a copy.
    #[must_use]
    pub fn of(copied: &Copied) -> Self {
        match copied {
            Copied::Explored(exploration) => Ended::of_exploration(exploration),
            Copied::Lost { how } => Ended::new(EndedKind::Unknown, how.clone()),
            Copied::TimedOut => Ended::new(EndedKind::Unknown, "it ran for too long".into()),
        }
    }

    fn new(kind: EndedKind, detail: String) -> Self {
        Ended { kind, detail }
    }

    /// Of a copy that reported.
    #[must_use]
    pub fn of_exploration(exploration: &Exploration) -> Self {
        if let Some(property) = &exploration.violated {
            return Ended::new(EndedKind::Property, format!("{property} does not hold"));
        }
        if let Some(misuse) = &exploration.misuse {
            return Ended::new(EndedKind::MemoryError, misuse.clone());
        }
        let errors = error_output(exploration);
        match &exploration.report.outcome {
            Outcome::Exited { code } if *code == RUST_PANIC && errors.contains("panicked at") => {
                Ended::new(EndedKind::Exception, line_with(&errors, "panicked at"))
            }
            Outcome::Exited { code } => {
                Ended::new(EndedKind::Exited(*code), format!("exit code {code}"))
            }
            Outcome::Signalled { signal, .. } if *signal == SIGABRT => aborted(&errors),
            Outcome::Signalled { signal, .. } => {
                Ended::new(EndedKind::Crash(*signal), signal_name(*signal))
            }
            Outcome::Deadlock(deadlock) => Ended::new(
                EndedKind::Deadlock,
                format!("all {} threads wait", deadlock.threads.len()),
            ),
            Outcome::LimitReached { .. } if !exploration.looping.is_empty() => Ended::new(
                EndedKind::InfiniteLoop,
                format!(
                    "thread {} is in a loop that nothing can end",
                    exploration.looping[0].thread
                ),
            ),
            Outcome::LimitReached { .. } => Ended::new(
                EndedKind::Hang,
                format!(
                    "not over after {} instructions",
                    exploration.report.stats.instructions
                ),
            ),
            Outcome::Refused(refusal) => Ended::new(EndedKind::Unknown, refusal.message.clone()),
            Outcome::EngineFault(fault) => Ended::new(EndedKind::Unknown, fault.message.clone()),
            Outcome::ReplayStopped { .. }
            | Outcome::Diverged(_)
            | Outcome::NotEnforced { .. }
            | Outcome::Stopped => Ended::new(EndedKind::Unknown, "it was stopped".into()),
        }
    }
}

/// `abort` is what assertions, exceptions and the C library's checks end with: their last words tell them apart.
fn aborted(errors: &str) -> Ended {
    const WORDS: [(&str, EndedKind); 11] = [
        ("Assertion `", EndedKind::Assertion),
        ("assertion failed", EndedKind::Assertion),
        ("terminate called", EndedKind::Exception),
        ("panicked at", EndedKind::Exception),
        ("free():", EndedKind::MemoryError),
        ("double free", EndedKind::MemoryError),
        ("munmap_chunk()", EndedKind::MemoryError),
        ("malloc", EndedKind::MemoryError),
        ("corruption", EndedKind::MemoryError),
        ("corrupted", EndedKind::MemoryError),
        ("Sanitizer", EndedKind::MemoryError),
    ];
    for (word, kind) in WORDS {
        if errors.contains(word) {
            return Ended::new(kind, line_with(errors, word));
        }
    }
    Ended::new(EndedKind::Abort, "abort".into())
}

fn line_with(text: &str, word: &str) -> String {
    let line = text.lines().find(|line| line.contains(word));
    line.unwrap_or(word).trim().to_string()
}

fn error_output(exploration: &Exploration) -> String {
    let bytes: Vec<u8> = exploration
        .output
        .iter()
        .filter(|piece| piece.stream == 2)
        .flat_map(|piece| piece.bytes.iter().copied())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn signal_name(signal: i32) -> String {
    match signal {
        4 => "illegal instruction (SIGILL)".into(),
        5 => "trap (SIGTRAP)".into(),
        7 => "bus error (SIGBUS)".into(),
        8 => "arithmetic error (SIGFPE)".into(),
        11 => "segmentation fault (SIGSEGV)".into(),
        other => format!("signal {other}"),
    }
}
