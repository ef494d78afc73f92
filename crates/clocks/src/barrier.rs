//! Barriers in rounds: whoever leaves is ordered after every arrival of the round it arrived in.
//!
//! A round takes arrivals until the first of its members leaves. A fast thread may arrive for the
//! next round while slow ones have not yet left this one, so several rounds can be open for leaving.
//! A departure without an arrival receives nothing: nothing says which round it belonged to.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use verdict_events::ThreadId;

use crate::{Posted, VectorClock};

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    rounds: VecDeque<Round>,
    /// Number of the round at the front of `rounds`.
    front: u64,
    /// The round in which each waiting thread arrived.
    arrived: FxHashMap<ThreadId, u64>,
}

#[derive(Debug, Default)]
struct Round {
    posted: Posted,
    waiting: u32,
    closed: bool,
}

impl Barrier {
    pub fn enter(&mut self, thread: ThreadId, clock: &VectorClock) {
        self.take_arrival(thread);
        if self.rounds.back().is_none_or(|round| round.closed) {
            self.rounds.push_back(Round::default());
        }
        self.arrived
            .insert(thread, self.front + self.rounds.len() as u64 - 1);
        let round = self.rounds.back_mut().expect("a round was opened above");
        round.posted.post(thread, clock);
        round.waiting += 1;
    }

    pub fn leave(&mut self, thread: ThreadId, clock: &mut VectorClock) {
        if let Some(number) = self.take_arrival(thread) {
            let round = &mut self.rounds[(number - self.front) as usize];
            round.closed = true;
            round.posted.receive(clock);
            self.drop_finished();
        }
    }

    fn take_arrival(&mut self, thread: ThreadId) -> Option<u64> {
        let number = self.arrived.remove(&thread)?;
        self.rounds[(number - self.front) as usize].waiting -= 1;
        Some(number)
    }

    fn drop_finished(&mut self) {
        while self
            .rounds
            .front()
            .is_some_and(|round| round.closed && round.waiting == 0)
        {
            self.rounds.pop_front();
            self.front += 1;
        }
    }

    /// What is posted and may still be received.
    pub fn posted(&self) -> impl Iterator<Item = &Posted> {
        self.rounds.iter().map(|round| &round.posted)
    }
}
