//! Processes that the program starts. What they do is not told, so all there is to know is how many there were.

use verdict_stream::SystemCall;

/// `clone`, `fork`, `vfork` and `clone3`.
const MAKES_CHILDREN: [u64; 4] = [56, 57, 58, 435];

/// Counts children that are no threads. The same calls make both, and what `clone3` is asked for is not told; but threads are.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Children {
    all: u64,
    threads: u64,
}

impl Children {
    /// A call has returned.
    pub(crate) fn called(&mut self, call: &SystemCall) {
        self.all += u64::from(MAKES_CHILDREN.contains(&call.number) && call.result > 0);
    }

    /// One of them is a thread.
    pub(crate) fn was_thread(&mut self) {
        self.threads += 1;
    }

    /// How many are processes.
    pub(crate) fn processes(self) -> u64 {
        self.all.saturating_sub(self.threads)
    }
}
