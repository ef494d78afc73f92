//! Which epochs of a thread can still be told apart.

use verdict_clocks::{Epoch, HappensBefore};
use verdict_events::ThreadId;

/// How many posts of a thread pass before its live counts are looked up again, and what more of them every
/// so many clocks buy: looking them up costs a step per clock.
const POSTS_MIN: u32 = 16;
const CLOCKS_PER_POST: usize = 16;

/// The live counts of each thread ([`HappensBefore::live_counts`]) at some time in the past.
///
/// Old ones stay valid for epochs that were over at that time: whatever count a clock holds later was held
/// then, or was made since and is larger.
#[derive(Default)]
pub(crate) struct LiveCounts {
    /// By thread.
    threads: Vec<Counts>,
}

#[derive(Default)]
struct Counts {
    /// How many posts the thread had made when they were looked up.
    posts: u32,
    /// Look again when it has made more than this.
    posts_max: u32,
    live: Vec<u32>,
}

impl LiveCounts {
    /// Epochs of one thread with the same class are told apart by no clock, now or later. Newer epochs have
    /// larger classes.
    pub fn class(&mut self, epoch: Epoch, order: &HappensBefore) -> u64 {
        let thread = epoch.thread();
        let index = thread.0 as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Counts::default);
        }
        let counts = &mut self.threads[index];
        if order.epoch(thread).count() > counts.posts_max {
            *counts = Counts::look_up(thread, order);
        }
        // What was not over yet is kept apart, each epoch for itself.
        let newer = u64::from(epoch.count().saturating_sub(counts.posts));
        counts.live.partition_point(|&count| count <= epoch.count()) as u64 + newer
    }
}

impl Counts {
    fn look_up(thread: ThreadId, order: &HappensBefore) -> Counts {
        let patience = u32::try_from(order.clocks() / CLOCKS_PER_POST).unwrap_or(u32::MAX);
        let posts = order.epoch(thread).count();
        Counts {
            posts,
            posts_max: posts.saturating_add(POSTS_MIN).saturating_add(patience),
            live: order.live_counts(thread),
        }
    }
}
