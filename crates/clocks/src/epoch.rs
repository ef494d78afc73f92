//! A segment named by its thread and the number of posting segments before it on that thread.

use verdict_events::ThreadId;

/// The thread of a segment and the count of posting segments that precede it there, in one word so that
/// "same segment class as last time" is one comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(u64);

impl Epoch {
    /// Stands for "no access yet". No real epoch equals it: it would be the last of 2^32 threads.
    pub const NONE: Epoch = Epoch(u64::MAX);

    /// The epoch of `thread` after `count` of its posts.
    #[inline]
    pub fn new(thread: ThreadId, count: u32) -> Epoch {
        Epoch(u64::from(thread.0) << 32 | u64::from(count))
    }

    /// Whose segment it is.
    #[inline]
    pub fn thread(self) -> ThreadId {
        ThreadId((self.0 >> 32) as u32)
    }

    /// How many posting segments of that thread precede it.
    #[inline]
    pub fn count(self) -> u32 {
        self.0 as u32
    }

    /// Whether this is [`Epoch::NONE`].
    #[inline]
    pub fn is_none(self) -> bool {
        self == Epoch::NONE
    }
}

impl Default for Epoch {
    fn default() -> Epoch {
        Epoch::NONE
    }
}
