//! What a race can do to the program (Portend+, section 3.3), and why some do nothing (replay-classification, 5.4).

use serde::{Deserialize, Serialize};

use crate::Frame;

/// What a race can do. The worst comes first.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// An order violates the specification: see [`Consequence`].
    SpecViolated,
    /// The output depends on the order.
    OutputDiffers,
    /// Only one order is possible.
    SingleOrdering,
    /// In k runs of the other order, nothing that can be seen from outside depends on it.
    KWitnessHarmless,
}

impl Class {
    /// All classes, the worst first.
    pub const ALL: [Self; 4] = [
        Self::SpecViolated,
        Self::OutputDiffers,
        Self::SingleOrdering,
        Self::KWitnessHarmless,
    ];

    /// As JSON and reports spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::SpecViolated => "spec-violated",
            Self::OutputDiffers => "output-differs",
            Self::SingleOrdering => "single-ordering",
            Self::KWitnessHarmless => "k-witness-harmless",
        }
    }

    /// The class that is spelled so.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }

    /// Whether someone should do something about it.
    #[must_use]
    pub fn is_harmful(self) -> bool {
        matches!(self, Self::SpecViolated | Self::OutputDiffers)
    }
}

/// How a specification is violated.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Consequence {
    /// In a word.
    pub kind: ConsequenceKind,
    /// What happens to the program, in plain words and without a full stop: `thread 2 frees queue->mutex while thread 1
    /// locks it`.
    #[serde(default)]
    pub detail: String,
    /// The thread it happens to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Where that thread is then, the innermost frame first.
    #[serde(default)]
    pub stack: Vec<Frame>,
    /// Of a deadlock: who waits for what, a line each, in a circle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycle: Vec<String>,
    /// Of a memory error that was seen as it happened: the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<MisusedBlock>,
}

/// A block of the heap that was used as it should not be.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct MisusedBlock {
    /// Bytes that were asked for.
    pub size: u64,
    /// Where, the innermost frame first.
    #[serde(default)]
    pub allocated_at: Vec<Frame>,
    /// Where it was freed, if it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freed_at: Vec<Frame>,
}

/// How a specification is violated, in a word.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum ConsequenceKind {
    /// A fatal signal other than that of abort.
    Crash,
    /// abort(), also a sanitizer's.
    Abort,
    /// A failed assert().
    Assertion,
    /// An uncaught C++ exception or a Rust panic.
    Exception,
    /// Threads wait for each other for ever.
    Deadlock,
    /// A thread waits for what nobody will do any more, or nothing goes on and no circle is known.
    Hang,
    /// A loop whose exit condition nothing can change any more.
    InfiniteLoop,
    /// Heap overflow, use after free, double free, invalid free.
    MemoryError,
    /// A user's predicate is false.
    Property,
    /// The program ends by itself, with another exit code.
    ExitCode,
}

impl ConsequenceKind {
    /// As JSON and reports spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Abort => "abort",
            Self::Assertion => "assertion",
            Self::Exception => "exception",
            Self::Deadlock => "deadlock",
            Self::Hang => "hang",
            Self::InfiniteLoop => "infinite-loop",
            Self::MemoryError => "memory-error",
            Self::Property => "property",
            Self::ExitCode => "exit-code",
        }
    }
}

/// The kinds of benign race.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Ad hoc synchronisation without lock instructions.
    UserConstructedSynchronisation,
    /// An unlocked check that is repeated under the lock.
    DoubleCheck,
    /// The read may return the old or the new value.
    BothValuesValid,
    /// The write stores what is already there.
    RedundantWrite,
    /// The accesses use different bits of a word.
    DisjointBits,
    /// Only statistics depend on it.
    Approximate,
}

impl Label {
    /// As JSON and reports spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::UserConstructedSynchronisation => "user-constructed-synchronisation",
            Self::DoubleCheck => "double-check",
            Self::BothValuesValid => "both-values-valid",
            Self::RedundantWrite => "redundant-write",
            Self::DisjointBits => "disjoint-bits",
            Self::Approximate => "approximate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_json() {
        for class in Class::ALL {
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("{:?}", class.word()));
            assert_eq!(Class::from_word(class.word()), Some(class));
        }
        assert!(Class::SpecViolated < Class::KWitnessHarmless);
    }
}
