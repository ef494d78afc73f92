//! What the guest says and what it is told: standard output and error, captured; standard input, by policy.

use verdict_recording::{OutputDigest, digest};

/// Where standard input comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// It is at its end.
    EndOfFile,
    /// These bytes in order, and then what `after` says.
    Data {
        /// The bytes.
        bytes: Vec<u8>,
        /// What follows them.
        after: AfterInput,
    },
}

/// What a guest gets that asks for more input than there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterInput {
    /// The end of the file.
    EndOfFile,
    /// Nothing: the execution stops there and says so.
    Stop,
}

/// What becomes of what the guest writes to standard output and error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputMode {
    /// It is kept and goes nowhere.
    Capture,
    /// It is kept and shown at once on the executor's own output.
    Show,
}

/// Which output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Stream {
    Output,
    Error,
}

/// One write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// Where to.
    pub stream: Stream,
    /// What.
    pub bytes: Vec<u8>,
}

/// All that the guest has written to standard output and error.
#[derive(Clone, Debug)]
pub struct Transcript {
    said: Vec<Said>,
    stored: u64,
    stored_max: u64,
    /// Of standard output and of standard error.
    digests: [OutputDigest; 2],
}

impl Transcript {
    /// Keeps at most so many bytes; the hash covers all.
    pub(super) fn new(stored_max: u64) -> Self {
        Transcript {
            said: Vec::new(),
            stored: 0,
            stored_max,
            digests: [OutputDigest::new(), OutputDigest::new()],
        }
    }

    /// Writes in order, as far as they are kept. Neighbours on one stream are one.
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// Bytes written to one stream, as far as they are kept.
    pub fn bytes(&self, stream: Stream) -> Vec<u8> {
        self.said
            .iter()
            .filter(|said| said.stream == stream)
            .flat_map(|said| said.bytes.iter().copied())
            .collect()
    }

    /// Bytes written to one stream, kept or not.
    pub fn length(&self, stream: Stream) -> u64 {
        self.digests[stream as usize].sum().len
    }

    /// Bytes written, kept or not.
    pub fn total(&self) -> u64 {
        self.digests.iter().map(|digest| digest.sum().len).sum()
    }

    /// A hash of what each stream was given: equal for equal bytes, however the writes were cut and the streams took turns.
    pub fn hash(&self) -> u64 {
        let words = self.digests.iter().flat_map(|digest| {
            let sum = digest.sum();
            [sum.len, sum.digest]
        });
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        digest(&bytes)
    }

    pub(super) fn say(&mut self, stream: Stream, bytes: &[u8]) {
        self.digests[stream as usize].update(bytes);
        let room = (self.stored_max - self.stored).min(bytes.len() as u64) as usize;
        if room == 0 {
            return;
        }
        self.stored += room as u64;
        match self.said.last_mut() {
            Some(last) if last.stream == stream => last.bytes.extend_from_slice(&bytes[..room]),
            _ => self.said.push(Said {
                stream,
                bytes: bytes[..room].to_vec(),
            }),
        }
    }
}

/// Shows bytes on the executor's own output; false if nobody listens any more.
pub(super) fn show(stream: Stream, bytes: &[u8]) -> bool {
    let descriptor = match stream {
        Stream::Output => libc::STDOUT_FILENO,
        Stream::Error => libc::STDERR_FILENO,
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: a valid buffer.
        let count = unsafe { libc::write(descriptor, rest.as_ptr().cast(), rest.len()) };
        if count >= 0 {
            rest = &rest[count as usize..];
            continue;
        }
        match crate::memory::errno() {
            libc::EINTR => {}
            libc::EAGAIN => wait_for_reader(descriptor),
            _ => return false,
        }
    }
    true
}

fn wait_for_reader(descriptor: i32) {
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one valid element.
    unsafe { libc::poll(&mut poll, 1, -1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_what_is_not_kept_and_does_not_see_how_writes_are_cut() {
        let mut whole = Transcript::new(4);
        whole.say(Stream::Output, b"abcdefgh");
        let mut parts = Transcript::new(1 << 20);
        parts.say(Stream::Output, b"abc");
        parts.say(Stream::Output, b"defgh");
        assert_eq!(whole.hash(), parts.hash());
        assert_eq!(whole.bytes(Stream::Output), b"abcd");
        assert_eq!((whole.total(), parts.said().len()), (8, 1));
        let mut other = Transcript::new(4);
        other.say(Stream::Error, b"abcdefgh");
        assert_ne!(whole.hash(), other.hash());
    }
}
