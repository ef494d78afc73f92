//! The stages of a run.

/// What is done to a program, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// Run the program and keep what is needed to repeat that.
    Record,
    /// Find the races of the recorded run.
    Detect,
    /// Bring the accesses of each face to face.
    Confirm,
    /// Say what each can do.
    Classify,
}

impl Stage {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Record, Self::Detect, Self::Confirm, Self::Classify];

    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Detect => "detect",
            Self::Confirm => "confirm",
            Self::Classify => "classify",
        }
    }
}
