//! What a race can do.

use crate::{
    Habit, Instance, MemoryError, OutputDifference, Primary, ReplayOutcome, WordDifference,
};
use std::path::PathBuf;
use verdict_confirm::Ended;
use verdict_protocol::{CallStack, Looping, WaitingThread};

/// The four classes (Kasikci et al. 2015, section 3.3), worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Some order makes the program crash, hang or violate what it asserts.
    SpecViolated,
    /// Some order makes it say something else.
    OutputDiffers,
    /// All orders that were tried come to the same.
    KWitnessHarmless,
    /// Only one order is possible.
    SingleOrdering,
}

/// The verdict on one race.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// `None` if the two accesses never met in the primary, so that there was nothing to try.
    pub class: Option<Class>,
    /// For a violation: how the program ended.
    pub consequence: Option<Ended>,
    /// What happens in either order, so that it is not, or perhaps not, this race's doing.
    pub either_way: Option<Ended>,
    /// What it would be without runs whose schedule after the race was random, where these alone show the class: another race may be
    /// why.
    pub otherwise: Option<Class>,
    /// Where the thread to blame was then.
    pub place: Option<Box<CallStack>>,
    /// For a memory error that neither the C library nor a sanitizer has noticed: what and where.
    pub memory: Option<Box<MemoryError>>,
    /// Everybody, where threads wait or do not come to an end, or where an order is impossible.
    pub threads: Vec<WaitingThread>,
    /// Those of them that are in loops, and what the loops wait for.
    pub looping: Vec<Looping>,
    /// For differing output: where.
    pub output: Option<OutputDifference>,
    /// Alternates that came to the same.
    pub k: u32,
    /// Some instance leaves another state behind in the other order.
    pub states_differ: Option<bool>,
    /// Replay analysis over all instances tried.
    pub replay: Option<ReplayOutcome>,
    /// Instances by outcome.
    pub instances: InstanceCounts,
    /// Words that differ after the first instance that leaves another state.
    pub words: Vec<WordDifference>,
    /// What the threads do, by which the order does not matter.
    pub habit: Option<Habit>,
    /// Bits of what is read that depend on the order.
    pub bits: u64,
    /// Recordings that show it.
    pub evidence: Vec<Evidence>,
    /// What was not tried, in sentences.
    pub not_covered: Vec<String>,
    /// The instance that shows the class.
    pub shown: Option<Shown>,
}

/// An instance, and how its accesses were put in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// As it was recorded.
    pub instance: Instance,
    /// As it shows the class.
    pub order: ShownOrder,
}

/// An order of two accesses that is not simply the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownOrder {
    /// The second one first.
    Turned,
    /// The second one between the load and the store of the first.
    Between,
    /// As recorded, but right after each other.
    Kept,
}

/// Instances of a race, by what replay analysis says of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InstanceCounts {
    /// Both orders leave the same state.
    pub no_state_change: u64,
    /// They do not.
    pub state_change: u64,
    /// The other order cannot be replayed.
    pub replay_failure: u64,
    /// Not tried.
    pub not_tried: u64,
    /// Those of the tried ones whose other order leaves the path of the recorded one, so that a replayer with nothing but
    /// the recording fails.
    pub off_path: u64,
}

/// A recording and what it shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// The file.
    pub path: PathBuf,
    /// In a few words.
    pub shows: String,
    /// How often a thread loses its turn there that could have gone on.
    pub preemptions: u64,
}

impl Verdict {
    /// True if what it says may be another race's doing.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.otherwise.is_some()
            || self.either_way.is_some() && self.class == Some(Class::SpecViolated)
    }

    /// The class, if another race explains what this one was seen to do; `None` if that is certainly its own doing.
    #[must_use]
    pub fn if_explained(&self) -> Option<Class> {
        let harmless = Class::KWitnessHarmless;
        self.is_doubtful()
            .then(|| self.otherwise.unwrap_or(harmless))
    }

    /// True if it is the recorded execution that breaks, and the other order avoids it.
    #[must_use]
    pub fn is_of_recorded(&self, primary: &Primary) -> bool {
        match &self.memory {
            Some(memory) => memory.in_recorded,
            None => self.consequence.as_ref() == Some(&primary.ended),
        }
    }

    /// Nothing is known yet.
    pub(crate) fn unknown() -> Self {
        Verdict {
            class: None,
            consequence: None,
            either_way: None,
            otherwise: None,
            place: None,
            memory: None,
            threads: Vec::new(),
            looping: Vec::new(),
            output: None,
            k: 0,
            states_differ: None,
            replay: None,
            instances: InstanceCounts::default(),
            words: Vec::new(),
            habit: None,
            bits: 0,
            evidence: Vec::new(),
            not_covered: Vec::new(),
            shown: None,
        }
    }
}
