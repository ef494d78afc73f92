//! Short stand-ins for bytes that need not be kept: XXH3, fast and without an attacker in mind.

use std::fmt;
use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// Of some bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// Of a few words, such as the arguments of a system call: enough to notice that others were given.
#[must_use]
pub fn digest_words(words: &[u64]) -> u32 {
    let mixed = words.iter().fold(0x9e37_79b9_7f4a_7c15_u64, |sum, word| {
        (sum ^ word)
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .rotate_left(29)
    });
    (mixed ^ mixed >> 32) as u32
}

/// Of everything written to one stream, whatever the pieces.
#[derive(Clone)]
pub struct OutputDigest {
    hasher: XxHash3_64,
    len: u64,
}

impl OutputDigest {
    /// Of nothing so far.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hasher: XxHash3_64::new(),
            len: 0,
        }
    }

    /// More was written.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.len += bytes.len() as u64;
    }

    /// How much, and its digest.
    #[must_use]
    pub fn sum(&self) -> crate::OutputSum {
        crate::OutputSum {
            len: self.len,
            digest: self.hasher.finish(),
        }
    }
}

impl Default for OutputDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OutputDigest {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.sum().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_matter_and_bytes_do() {
        let mut pieces = OutputDigest::new();
        pieces.update(b"on");
        pieces.update(b"");
        pieces.update(b"ce");
        assert_eq!(pieces.sum().digest, digest(b"once"));
        assert_eq!(pieces.sum().len, 4);
        assert_ne!(digest(b"once"), digest(b"oncf"));
    }

    #[test]
    fn order_of_words_matters() {
        assert_ne!(digest_words(&[1, 2]), digest_words(&[2, 1]));
        assert_ne!(digest_words(&[0]), digest_words(&[0, 0]));
    }
}
