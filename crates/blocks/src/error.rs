//! Why a block trace could not be written, read or analysed.

use verdict_events::TraceError;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
pub enum BlocksError {
    /// The trace to build from could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A file could not be read.
    #[error("{file}: cannot be read: {problem}")]
    Read {
        /// Which.
        file: String,
        /// What the system said.
        problem: String,
    },
    /// A file could not be written.
    #[error("{file}: cannot be written: {problem}")]
    Write {
        /// Which.
        file: String,
        /// What the system said.
        problem: String,
    },
    /// The bytes of a file are not what was written.
    #[error(
        "{file}: at byte {offset}: {problem}: the file is damaged or of another block trace; build it again"
    )]
    Damaged {
        /// Which.
        file: String,
        /// Where.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
    /// The trace has more of something than the format can number.
    #[error("the trace has more than {max} {what}; cut it into parts")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        max: u64,
    },
    /// A thread was asked for that the trace does not have.
    #[error("the trace has no thread `{0}`")]
    NoThread(String),
    /// The memory that is allowed does not hold what must be held.
    #[error("at least {} MB of memory are needed, {} MB are allowed", .needed.div_ceil(1 << 20), .allowed >> 20)]
    Memory {
        /// Bytes.
        needed: u64,
        /// Bytes.
        allowed: u64,
    },
}
