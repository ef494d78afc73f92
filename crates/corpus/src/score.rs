//! What a detector reported against the truth: which races it missed, which reports are false.

use crate::truth::{AccessKind, Observed, Opt, Race, Truth};

/// One reported race: the line (from 1) of each side in the program's own file, and whether that
/// side writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reported {
    /// One side.
    pub first: (u32, bool),
    /// The other one.
    pub second: (u32, bool),
}

/// The answer to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score<'a> {
    /// Races that every run shows, but that were not reported.
    pub missed: Vec<&'a Race>,
    /// Reports that no race of the truth explains, in the order of the report.
    pub false_alarms: Vec<Reported>,
}

impl Score<'_> {
    /// Nothing missed, nothing false.
    pub fn perfect(&self) -> bool {
        self.missed.is_empty() && self.false_alarms.is_empty()
    }
}

/// Compares what happens-before reported on a run of the build of `opt` with [`Truth::args`].
///
/// Several reports may belong to one race, since a line may be several instructions.
pub fn score<'a>(truth: &'a Truth, opt: Opt, reported: &[Reported]) -> Score<'a> {
    let possible = |race: &&Race| race.exists_at(opt) && race.observed != Observed::Never;
    let explained = |report: &Reported| {
        truth
            .races
            .iter()
            .filter(possible)
            .any(|race| explains(race, *report))
    };
    let found = |race: &Race| reported.iter().any(|&report| explains(race, report));
    Score {
        missed: truth
            .races
            .iter()
            .filter(|race| race.expected_at(opt) && !found(race))
            .collect(),
        false_alarms: reported
            .iter()
            .copied()
            .filter(|report| !explained(report))
            .collect(),
    }
}

/// Whether the two sides, in either order, are the two marks of `race`.
fn explains(race: &Race, report: Reported) -> bool {
    let [Some(low), Some(high)] = [race.accesses.first(), race.accesses.last()] else {
        return false;
    };
    let side = |(line, kind): (u32, AccessKind), (reported_line, writes): (u32, bool)| {
        line == reported_line && kind.allows(writes)
    };
    let (low, high) = ((low.line, low.kind), (high.line, high.kind));
    (side(low, report.first) && side(high, report.second))
        || (side(low, report.second) && side(high, report.first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    fn pair(first: (u32, bool), second: (u32, bool)) -> Reported {
        Reported { first, second }
    }

    #[test]
    fn either_order_of_the_marked_lines_is_right() {
        let truth = &case("papers/portend_fig14c.c").truth;
        let (write, read) = truth.races[0].lines();
        for report in [
            pair((write, true), (read, false)),
            pair((read, false), (write, true)),
        ] {
            assert!(score(truth, Opt::O2, &[report]).perfect());
        }
    }

    #[test]
    fn silence_misses_what_every_run_shows_and_only_that() {
        let missed = |name| score(&case(name).truth, Opt::O0, &[]).missed.len();
        assert_eq!(missed("papers/portend_fig14c.c"), 1);
        assert_eq!(missed("papers/racefuzzer_fig1.c"), 0);
        assert_eq!(missed("racefree/lost_update_atomic.c"), 0);
    }

    #[test]
    fn wrong_lines_kinds_and_impossible_races_are_false_alarms() {
        let truth = &case("papers/portend_fig14c.c").truth;
        let (write, read) = truth.races[0].lines();
        let wrong_line = pair((write, true), (read + 1, false));
        let wrong_kind = pair((write, true), (read, true));
        let both = score(truth, Opt::O2, &[wrong_line, wrong_kind]);
        assert_eq!(both.false_alarms, [wrong_line, wrong_kind]);
        assert_eq!(both.missed.len(), 1);

        let figure = &case("papers/racefuzzer_fig1.c").truth;
        let false_candidate = figure.races.iter().find(|race| !race.real).expect("race b");
        let (x_write, x_read) = false_candidate.lines();
        let report = pair((x_write, true), (x_read, false));
        assert_eq!(score(figure, Opt::O2, &[report]).false_alarms, [report]);
    }

    #[test]
    fn an_update_explains_both_of_its_instructions() {
        let truth = &case("effects/lost_update.c").truth;
        let (line, _) = truth.races[0].lines();
        let reports = [
            pair((line, true), (line, true)),
            pair((line, false), (line, true)),
        ];
        assert!(score(truth, Opt::O0, &reports).perfect());
    }
}
