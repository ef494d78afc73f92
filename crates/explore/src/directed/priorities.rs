//! Threads in an order of their own (after Burckhardt et al. 2010).

use std::collections::BTreeMap;
use verdict_events::ThreadId;
use verdict_schedule::SplitMix;

/// An order of threads, drawn as they appear; who has used up a turn or gives way goes last.
#[derive(Clone, Default, Debug)]
pub(super) struct Priorities {
    ranks: BTreeMap<ThreadId, i64>,
    last: i64,
    /// Decisions in a row that left the same thread running.
    pub(super) in_a_row: u32,
}

impl Priorities {
    pub(super) fn demote(&mut self, thread: ThreadId) {
        self.last -= 1;
        self.ranks.insert(thread, self.last);
    }

    pub(super) fn highest(&mut self, threads: &[ThreadId], random: &mut SplitMix) -> ThreadId {
        const RANKS: u64 = 1 << 32;
        for thread in threads {
            self.ranks
                .entry(*thread)
                .or_insert_with(|| random.below(RANKS) as i64);
        }
        let highest = threads.iter().max_by_key(|thread| self.ranks[thread]);
        *highest.expect("somebody can run")
    }
}
