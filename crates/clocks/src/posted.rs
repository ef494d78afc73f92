//! What posting operations left in one object, for receiving operations to read.

use verdict_events::ThreadId;

use crate::{Epoch, VectorClock};

/// The join of the clocks posted to an object.
#[derive(Debug, Default, Clone)]
pub struct Posted {
    clock: VectorClock,
    /// Who posted last, if that thread knew all that was posted before. A receiver that already knows
    /// this post knows the whole clock, so the join is skipped.
    latest: Epoch,
    empty: Emptiness,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Emptiness {
    #[default]
    Empty,
    Filled,
}

impl Posted {
    /// Adds what `poster` knows. Its clock must already count the segment that ends with this post.
    pub fn post(&mut self, poster: ThreadId, clock: &VectorClock) {
        if self.is_known_to(clock) || self.clock.le(clock) {
            self.replace(poster, clock);
        } else {
            self.clock.join(clock);
            self.latest = Epoch::NONE;
        }
    }

    /// Forgets what was posted before and holds what `poster` knows.
    pub fn replace(&mut self, poster: ThreadId, clock: &VectorClock) {
        self.clock.clone_from(clock);
        self.latest = Epoch::new(poster, clock.get(poster));
        self.empty = Emptiness::Filled;
    }

    /// Adds what another object holds.
    pub fn join(&mut self, other: &Posted) {
        if other.empty == Emptiness::Empty {
            return;
        }
        if self.empty == Emptiness::Empty {
            self.clone_from(other);
            return;
        }
        self.clock.join(&other.clock);
        self.latest = Epoch::NONE;
    }

    /// Teaches `receiver` all that was posted.
    pub fn receive(&self, receiver: &mut VectorClock) {
        if !self.is_known_to(receiver) {
            receiver.join(&self.clock);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.clock.clear();
        self.latest = Epoch::NONE;
        self.empty = Emptiness::Empty;
    }

    /// The joined clock.
    pub fn clock(&self) -> &VectorClock {
        &self.clock
    }

    /// True only if `clock` surely knows everything here; false says nothing.
    fn is_known_to(&self, clock: &VectorClock) -> bool {
        let known = self.empty == Emptiness::Empty
            || !self.latest.is_none() && clock.get(self.latest.thread()) >= self.latest.count();
        debug_assert!(
            !known || self.clock.le(clock),
            "a post is known but not what it posted"
        );
        known
    }
}
