//! Races that have been looked at and are not to be told again, for now.

use verdict_findings::{ProgramFindings, Race, Suppression};

use crate::subject::Subject;
use crate::suppression_file::{self, SuppressionError};
use crate::{Date, Pattern};

/// One line of a suppression file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// From 1.
    pub line: usize,
    /// The last day it holds.
    pub until: Option<Date>,
    /// Why.
    pub reason: String,
    /// All of these must match.
    pub(crate) criteria: Vec<(Subject, Pattern)>,
}

/// A suppression file. The format is described in `docs/suppressions.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suppressions {
    file: String,
    rules: Vec<Rule>,
}

impl Suppressions {
    /// Reads the text of a file. Its name is for messages.
    ///
    /// # Errors
    /// All lines that make no sense.
    pub fn parse(file: &str, text: &str) -> Result<Self, SuppressionError> {
        Ok(Self {
            file: file.to_owned(),
            rules: suppression_file::parse(file, text)?,
        })
    }

    /// The name it was read under.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Marks the races and predictions that a rule is about, and returns the rules that are about none: they may be out of date. The
    /// first rule that still holds counts; one that has expired says so only where no other one holds.
    pub fn apply(&self, findings: &mut ProgramFindings, today: Date) -> Vec<&Rule> {
        let mut used = vec![false; self.rules.len()];
        let all = findings.races.iter_mut().chain(&mut findings.predictions);
        for race in all {
            let mut expired = None;
            for (index, rule) in self.rules.iter().enumerate() {
                if !rule.matches(race) {
                    continue;
                }
                used[index] = true;
                if rule.has_expired(today) {
                    expired = expired.or(Some(rule));
                } else {
                    race.suppressed = Some(self.suppression(rule, false));
                    break;
                }
            }
            if let (None, Some(rule)) = (&race.suppressed, expired) {
                race.suppressed = Some(self.suppression(rule, true));
            }
        }
        let unused = self.rules.iter().zip(used).filter(|(_, used)| !used);
        unused.map(|(rule, _)| rule).collect()
    }

    fn suppression(&self, rule: &Rule, expired: bool) -> Suppression {
        Suppression {
            by: format!("{}:{}", self.file, rule.line),
            reason: rule.reason.clone(),
            until: rule.until.map(|date| date.to_string()),
            expired,
        }
    }
}

impl Rule {
    fn matches(&self, race: &Race) -> bool {
        let mut criteria = self.criteria.iter();
        criteria.all(|(subject, pattern)| subject.matches(pattern, race))
    }

    fn has_expired(&self, today: Date) -> bool {
        self.until.is_some_and(|until| until < today)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::{Access, Program, Schema, Variable};

    fn findings() -> ProgramFindings {
        let mut findings = ProgramFindings::new(Schema::Races1, Program::default());
        for (id, function, variable) in [
            ("1a", "count", "stats.hits"),
            ("2b", "shop::sell(int)", "till"),
        ] {
            let access = Access {
                function: Some(function.to_owned()),
                ..Access::default()
            };
            let mut race = Race::new(id, [access.clone(), access]);
            race.variable = Variable {
                name: Some(variable.to_owned()),
                ..Variable::default()
            };
            findings.races.push(race);
        }
        findings
    }

    fn apply(text: &str) -> (Vec<String>, Vec<usize>) {
        let suppressions = Suppressions::parse("known.txt", text).unwrap();
        let mut findings = findings();
        let unused = suppressions.apply(&mut findings, "2026-11-16".parse().unwrap());
        let shown = findings.races.iter().map(|race| match &race.suppressed {
            Some(by) => format!(
                "{} {}{}",
                by.by,
                by.reason,
                if by.expired { " (expired)" } else { "" }
            ),
            None => "told".to_owned(),
        });
        (
            shown.collect(),
            unused.iter().map(|rule| rule.line).collect(),
        )
    }

    #[test]
    fn rules_are_about_predictions_too() {
        let suppressions = Suppressions::parse("known.txt", "variable till because rare").unwrap();
        let mut findings = findings();
        findings.predictions = findings.races.split_off(1);
        let unused = suppressions.apply(&mut findings, "2026-11-16".parse().unwrap());
        assert!(unused.is_empty(), "{unused:?}");
        assert!(!findings.races[0].is_suppressed());
        assert!(findings.predictions[0].is_suppressed());
    }

    #[test]
    fn rules_say_why() {
        let (races, unused) =
            apply("# known\n\nvariable stats.* because only statistics\nrace 77 because gone\n");
        assert_eq!(races, ["known.txt:3 only statistics", "told"]);
        assert_eq!(unused, [4]);
    }

    #[test]
    fn all_criteria_must_match() {
        let (races, _) = apply(
            "function shop::sell variable stats because no such pair\nfunction shop::sell variable till because one writer",
        );
        assert_eq!(races, ["told", "known.txt:2 one writer"]);
    }

    #[test]
    fn the_day_named_is_the_last_one() {
        let (races, _) = apply(
            "variable stats until 2026-11-16 because today\nvariable till until 2026-11-15 because yesterday",
        );
        assert_eq!(
            races,
            ["known.txt:1 today", "known.txt:2 yesterday (expired)"]
        );
    }

    #[test]
    fn a_rule_that_holds_counts_before_one_that_does_not() {
        let (races, unused) =
            apply("variable till until 2020-01-01 because old\nvariable till because new");
        assert_eq!(races[1], "known.txt:2 new");
        assert!(unused.is_empty());
    }
}
