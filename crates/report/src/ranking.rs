//! Which race is worse, and how many there are of each kind.

use verdict_findings::{Class, ProgramFindings, Race};

/// How bad a race is, as far as is known. The worst comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rank {
    /// An order violates the specification.
    SpecViolated,
    /// The output depends on the order.
    OutputDiffers,
    /// Nobody has asked what it can do, or the answer was not found.
    Unclassified,
    /// Only one order is possible.
    SingleOrdering,
    /// Nothing was seen to depend on it.
    KWitnessHarmless,
    /// Predicted, but no run brought the accesses face to face.
    NotReproduced,
}

impl Rank {
    /// All ranks, the worst first.
    pub const ALL: [Self; 6] = [
        Self::SpecViolated,
        Self::OutputDiffers,
        Self::Unclassified,
        Self::SingleOrdering,
        Self::KWitnessHarmless,
        Self::NotReproduced,
    ];

    /// Of a race.
    #[must_use]
    pub fn of(race: &Race) -> Self {
        match (
            race.class(),
            race.verdict.as_ref().and_then(|verdict| verdict.confirmed),
        ) {
            (Some(class), _) => class.into(),
            (None, Some(false)) => Self::NotReproduced,
            (None, _) => Self::Unclassified,
        }
    }

    /// As reports spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::SpecViolated => Class::SpecViolated.word(),
            Self::OutputDiffers => Class::OutputDiffers.word(),
            Self::Unclassified => "unclassified",
            Self::SingleOrdering => Class::SingleOrdering.word(),
            Self::KWitnessHarmless => Class::KWitnessHarmless.word(),
            Self::NotReproduced => "not-reproduced",
        }
    }

    /// What it means, in a few words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::SpecViolated => "an order of the accesses breaks the program",
            Self::OutputDiffers => "what the program writes depends on the order",
            Self::Unclassified => "what it can do was not asked or not found",
            Self::SingleOrdering => "only one order of the accesses is possible",
            Self::KWitnessHarmless => "no run showed a difference to the outside",
            Self::NotReproduced => "predicted; no run brought the accesses together",
        }
    }
}

impl From<Class> for Rank {
    fn from(class: Class) -> Self {
        match class {
            Class::SpecViolated => Self::SpecViolated,
            Class::OutputDiffers => Self::OutputDiffers,
            Class::SingleOrdering => Self::SingleOrdering,
            Class::KWitnessHarmless => Self::KWitnessHarmless,
        }
    }
}

/// The races that are to be reported, the worst first; races of one rank in the order in which they were found.
#[must_use]
pub fn worst_first(findings: &ProgramFindings) -> Vec<&Race> {
    let mut races: Vec<&Race> = findings
        .races
        .iter()
        .filter(|race| !race.is_suppressed())
        .collect();
    races.sort_by_key(|race| Rank::of(race));
    races
}

/// How many races there are of each rank that has any; suppressed ones are not counted.
pub(crate) fn counts(findings: &ProgramFindings) -> Vec<(Rank, u64)> {
    let ranks: Vec<Rank> = worst_first(findings).into_iter().map(Rank::of).collect();
    let groups = ranks.chunk_by(|a, b| a == b);
    groups.map(|group| (group[0], group.len() as u64)).collect()
}
