//! Which epochs every running thread already follows: nothing that is still to come can race with them.

use verdict_clocks::{Epoch, HappensBefore};

/// How many synchronisation operations pass before a thread is looked up again, and what more of them each running
/// thread costs: looking it up takes a step per thread.
const OPERATIONS_MIN: u64 = 16;
const OPERATIONS_PER_THREAD: u64 = 2;

/// [`HappensBefore::known_to_all`] of each thread at some time in the past. It only grows, so old answers stay valid.
#[derive(Default)]
pub(crate) struct Settled {
    /// By thread.
    threads: Vec<Known>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// Segments with smaller counts are settled.
    below: u32,
    /// Look again after this many synchronisation operations.
    look_at: u64,
}

impl Settled {
    /// True only if all that happens from now on follows `epoch`, or is of the same thread.
    #[inline]
    pub fn contains(&mut self, epoch: Epoch, order: &HappensBefore) -> bool {
        match self.threads.get(epoch.thread().0 as usize) {
            Some(known) if epoch.count() < known.below => true,
            Some(known) if order.sync_operations() < known.look_at => false,
            _ => self.look_up(epoch, order),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, epoch: Epoch, order: &HappensBefore) -> bool {
        let index = epoch.thread().0 as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, Known::default());
        }
        let patience = OPERATIONS_MIN + OPERATIONS_PER_THREAD * self.threads.len() as u64;
        let known = Known {
            below: order.known_to_all(epoch.thread()),
            look_at: order.sync_operations() + patience,
        };
        self.threads[index] = known;
        epoch.count() < known.below
    }
}
