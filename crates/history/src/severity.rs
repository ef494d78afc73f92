//! How harmful a race is, as far as a verdict says.

use serde::{Deserialize, Serialize};
use verdict_findings::{Class, Race};

/// What one run thought of a race. The more harmful is the greater; [`Unknown`](Self::Unknown) compares with nothing.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nobody asked, or there was no answer.
    #[serde(rename = "unclassified")]
    Unknown,
    /// Predicted, but never brought about.
    NotReproduced,
    /// See [`Class::KWitnessHarmless`].
    KWitnessHarmless,
    /// See [`Class::SingleOrdering`].
    SingleOrdering,
    /// See [`Class::OutputDiffers`].
    OutputDiffers,
    /// See [`Class::SpecViolated`].
    SpecViolated,
}

impl Severity {
    /// Of a race as it is now.
    #[must_use]
    pub fn of(race: &Race) -> Self {
        let confirmed = race.verdict.as_ref().and_then(|verdict| verdict.confirmed);
        match (race.class(), confirmed) {
            (Some(Class::SpecViolated), _) => Self::SpecViolated,
            (Some(Class::OutputDiffers), _) => Self::OutputDiffers,
            (Some(Class::SingleOrdering), _) => Self::SingleOrdering,
            (Some(Class::KWitnessHarmless), _) => Self::KWitnessHarmless,
            (None, Some(false)) => Self::NotReproduced,
            (None, _) => Self::Unknown,
        }
    }

    /// How much harm: nothing is known, none, the output, the program.
    fn harm(self) -> Option<u8> {
        match self {
            Self::Unknown => None,
            Self::NotReproduced | Self::KWitnessHarmless | Self::SingleOrdering => Some(0),
            Self::OutputDiffers => Some(1),
            Self::SpecViolated => Some(2),
        }
    }

    /// Whether both are known and this is more harmful.
    #[must_use]
    pub fn is_worse_than(self, other: Self) -> bool {
        matches!((self.harm(), other.harm()), (Some(own), Some(other)) if own > other)
    }

    /// The more harmful of two.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        if other.harm() > self.harm() {
            other
        } else {
            self
        }
    }

    /// As reports spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unclassified",
            Self::NotReproduced => "not-reproduced",
            Self::KWitnessHarmless => "k-witness-harmless",
            Self::SingleOrdering => "single-ordering",
            Self::OutputDiffers => "output-differs",
            Self::SpecViolated => "spec-violated",
        }
    }
}
