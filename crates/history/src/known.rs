//! What the history amounts to: what is known about each race, and what a run changes.

use std::collections::{BTreeMap, BTreeSet};

use verdict_findings::{ProgramFindings, Race, Suppression};

use crate::{Change, Comparison, Day, Entry, KnownRace, Mark, Opinion, Run, Seen, Severity};

/// Everything that follows from the entries of a log.
#[derive(Clone, Default, Debug)]
pub struct History {
    /// By id.
    races: BTreeMap<String, Known>,
    /// The races of the last run of each program with its arguments.
    last_runs: BTreeMap<(String, Vec<String>), BTreeSet<String>>,
}

/// What is known about a race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Every verdict it ever had, with the day and the program, the oldest first.
    pub verdicts: Vec<(Day, String, Seen)>,
    /// The last mark, unless it was taken back.
    pub mark: Option<Mark>,
}

impl Known {
    /// The most harmful it was ever seen to be.
    #[must_use]
    pub fn worst(&self) -> Severity {
        let all = self.verdicts.iter().map(|(_, _, seen)| seen.severity);
        all.fold(Severity::Unknown, Severity::worst)
    }

    /// The last that was said of it.
    #[must_use]
    pub fn headline(&self) -> &str {
        self.verdicts
            .last()
            .map_or("", |(_, _, seen)| &seen.headline)
    }
}

impl History {
    /// Of the entries of a log, in their order.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Self {
        let mut history = Self::default();
        for entry in entries {
            match entry {
                Entry::Run(run) => history.add_run(run),
                Entry::Mark(mark) => history.add_mark(mark),
            }
        }
        history
    }

    fn add_run(&mut self, run: &Run) {
        for seen in &run.races {
            let verdict = (run.day, run.program.clone(), seen.clone());
            self.known(&seen.id).verdicts.push(verdict);
        }
        let ids = run.races.iter().map(|seen| seen.id.clone()).collect();
        self.last_runs
            .insert((run.program.clone(), run.args.clone()), ids);
    }

    fn add_mark(&mut self, mark: &Mark) {
        let benign = mark.opinion == Opinion::Benign;
        self.known(&mark.id).mark = benign.then(|| mark.clone());
    }

    fn known(&mut self, id: &str) -> &mut Known {
        let nothing = || Known {
            verdicts: Vec::new(),
            mark: None,
        };
        self.races.entry(id.to_owned()).or_insert_with(nothing)
    }

    /// Every race that was ever seen or marked, by id.
    pub fn races(&self) -> impl Iterator<Item = (&str, &Known)> {
        self.races.iter().map(|(id, known)| (id.as_str(), known))
    }

    /// What is known about a race.
    #[must_use]
    pub fn race(&self, id: &str) -> Option<&Known> {
        self.races.get(id)
    }

    /// The races whose id begins so.
    #[must_use]
    pub fn ids_from(&self, beginning: &str) -> Vec<&str> {
        let ids = self.races.keys().map(String::as_str);
        ids.filter(|id| id.starts_with(beginning)).collect()
    }

    /// What this run changes.
    #[must_use]
    pub fn compare(&self, findings: &ProgramFindings) -> Comparison {
        let changes = findings
            .races
            .iter()
            .map(|race| (race.id.clone(), self.change(race)));
        let key = (findings.program.path.clone(), findings.program.args.clone());
        let now: BTreeSet<&str> = findings.races.iter().map(|race| race.id.as_str()).collect();
        let before = self.last_runs.get(&key).into_iter().flatten();
        let gone = before
            .filter(|id| !now.contains(id.as_str()))
            .map(|id| KnownRace {
                id: id.clone(),
                headline: self
                    .race(id)
                    .map_or(String::new(), |known| known.headline().to_owned()),
            });
        Comparison {
            changes: changes.collect(),
            gone: gone.collect(),
        }
    }

    fn change(&self, race: &Race) -> Change {
        let Some(known) = self
            .race(&race.id)
            .filter(|known| !known.verdicts.is_empty())
        else {
            return Change::New;
        };
        let (now, before) = (Severity::of(race), known.worst());
        if now.is_worse_than(before) {
            Change::Worse {
                before: before.word().to_owned(),
            }
        } else if before.is_worse_than(now) {
            Change::Better {
                before: before.word().to_owned(),
            }
        } else {
            Change::StillThere
        }
    }

    /// Suppresses the races that the user has marked, as far as the marks hold today. A race that is worse than it was when it
    /// was marked is reported all the same.
    pub fn apply_marks(&self, findings: &mut ProgramFindings, today: Day) {
        for race in &mut findings.races {
            let Some(mark) = self.race(&race.id).and_then(|known| known.mark.as_ref()) else {
                continue;
            };
            if Severity::of(race).is_worse_than(mark.severity) {
                race.suppressed = None;
                continue;
            }
            race.suppressed = Some(Suppression {
                by: "marked benign".to_owned(),
                reason: mark.reason.clone(),
                until: mark.until.map(|until| until.to_string()),
                expired: mark.until.is_some_and(|until| until < today),
            });
        }
    }
}
