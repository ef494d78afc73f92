//! The status page: how the controller knows that an executor is alive without asking it.
//!
//! The executor maps the page and stores two native words into it; the controller reads the file.

/// Size of the status file: one page, so that it can be mapped.
pub const STATUS_BYTES: u64 = 4096;

/// What the page says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// Bumped whenever the executor gets control back from the guest. A guest that runs for ever bumps it too, because
    /// the executor never lets it run without a budget.
    pub heartbeat: u64,
    /// Whether the executor is in a system call that may take for ever: then it need not bump anything.
    pub blocked: bool,
}

impl Status {
    /// Byte offset of the heartbeat, a native u64.
    pub const HEARTBEAT_AT: usize = 0;
    /// Byte offset of the blocked flag, a native u64; not zero means blocked.
    pub const BLOCKED_AT: usize = 8;
    /// How many bytes of the page mean something.
    pub const LEN: usize = 16;

    /// Reads the page's first bytes. Any bytes mean something.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        Self {
            heartbeat: word(Self::HEARTBEAT_AT),
            blocked: word(Self::BLOCKED_AT) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_are_read() {
        let mut bytes = [0; Status::LEN];
        bytes[Status::HEARTBEAT_AT] = 7;
        assert_eq!(
            Status::from_bytes(bytes),
            Status {
                heartbeat: 7,
                blocked: false
            }
        );
        bytes[Status::BLOCKED_AT] = 1;
        assert!(Status::from_bytes(bytes).blocked);
    }
}
