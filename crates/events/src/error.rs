//! Why a trace could not be read or written. Each error names the file, the place in it, and what was
//! expected there.

/// Why a trace could not be read further.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Reading the bytes failed.
    #[error("{file}: cannot be read: {source}")]
    Io {
        /// The file, or `<stdin>`.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The content is of no known format, or not of the one asked for.
    #[error("{file}: {problem}")]
    Format {
        /// The file, or `<stdin>`.
        file: String,
        /// What was expected and what was found.
        problem: String,
    },
    /// A line of a text trace is not of its format.
    #[error("{file}:{line}: expected {expected}, found {}", quoted(.found))]
    Text {
        /// The file, or `<stdin>`.
        file: String,
        /// Line number from 1.
        line: u64,
        /// What the format allows here.
        expected: String,
        /// The text that is there, shortened.
        found: String,
    },
    /// Bytes of a binary trace are not of its format.
    #[error("{file}: at byte {offset}: {problem}")]
    Binary {
        /// The file, or `<stdin>`.
        file: String,
        /// Offset of the first byte that could not be understood.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
    /// A binary trace stops before its end mark: it is still being written, or its tail was lost.
    #[error(
        "{file}: ends at byte {offset} without an end mark, after {events} whole events: \
         it is still being written or was cut"
    )]
    Incomplete {
        /// The file, or `<stdin>`.
        file: String,
        /// Where the last whole frame ends.
        offset: u64,
        /// Number of events in whole frames, all of which have been delivered.
        events: u64,
    },
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Writing the bytes failed.
    #[error("cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// The format can only be read.
    #[error("{format} traces can be read but not written")]
    ReadOnly {
        /// The format.
        format: &'static str,
    },
    /// The target format has no words for an event.
    #[error("{format} cannot express event {position} ({event}): {reason}")]
    Inexpressible {
        /// The target format.
        format: &'static str,
        /// Which event of the trace, from 0.
        position: u64,
        /// The event, for people.
        event: String,
        /// What the format lacks.
        reason: String,
    },
}

fn quoted(found: &str) -> String {
    match found {
        "" => "nothing".to_owned(),
        _ => format!("`{found}`"),
    }
}
