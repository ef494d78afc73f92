//! How an execution ended, or why the recording of it did.

use std::fmt;

use crate::codec::{Codec, Expected, Input, codec_enum, codec_struct};

/// The end, and what a replay must have come to by then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// How.
    pub outcome: EndOutcome,
    /// Instructions retired by all threads.
    pub instructions: u64,
    /// Instructions retired by each thread, in the order of creation.
    pub threads: Vec<u64>,
    /// All that was put out: to anything else, to standard output, to standard error.
    pub outputs: [OutputSum; 3],
}

/// How an execution ended, or why the recording of it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EndOutcome {
    /// The program ended by itself.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// A signal ended it.
    Killed {
        /// Which one.
        signal: i32,
    },
    /// The recording had reached the size it may have. The program went on.
    SizeLimit {
        /// That size.
        max_size: u64,
    },
    /// All threads waited, and nothing outside could have changed that.
    Deadlock,
    /// It had as many instructions as it was to have.
    Limit,
    /// The program asked for something that the engine does not do, or the engine failed.
    Refused {
        /// One sentence.
        message: String,
    },
}

/// Everything written to one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutputSum {
    /// How many bytes.
    pub len: u64,
    /// [`crate::digest()`] of them, in the order in which they were written.
    pub digest: u64,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.outcome {
            EndOutcome::Exited { code } => write!(f, "the program ended with code {code}"),
            EndOutcome::Killed { signal } => write!(f, "signal {signal} ended the program"),
            EndOutcome::SizeLimit { max_size } => write!(
                f,
                "cut by --max-size {max_size} at instruction {}",
                self.instructions
            ),
            EndOutcome::Deadlock => write!(f, "all threads of the program waited for ever"),
            EndOutcome::Limit => {
                write!(f, "stopped after {} instructions", self.instructions)
            }
            EndOutcome::Refused { message } => write!(f, "the engine went no further: {message}"),
        }
    }
}

codec_enum!(EndOutcome, "an outcome" {
    0 => Exited { code },
    1 => Killed { signal },
    2 => SizeLimit { max_size },
    3 => Refused { message },
    4 => Deadlock {},
    5 => Limit {},
});
codec_struct!(OutputSum { len, digest });
codec_struct!(End {
    outcome,
    instructions,
    threads,
    outputs
});

impl Codec for [OutputSum; 3] {
    fn encode(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|sum| sum.encode(out));
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        let mut sums = Self::default();
        for sum in &mut sums {
            *sum = OutputSum::decode(input)?;
        }
        Ok(sums)
    }
}
