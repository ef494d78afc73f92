//! What is asked of one run: `--only-threads`, `--only-module`, `--only-function`, `--ignore`.

use std::str::FromStr;

use verdict_findings::{ProgramFindings, Race, Thread};

use crate::Pattern;
use crate::subject::{Subject, function_matches};

/// Which races are wanted. Lists that are empty ask for nothing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RaceFilter {
    /// Both accesses are by these threads.
    pub only_threads: Vec<ThreadPattern>,
    /// One access at least is in one of these binaries.
    pub only_modules: Vec<Pattern>,
    /// One access at least is in one of these functions, or called by it.
    pub only_functions: Vec<Pattern>,
    /// Neither function, file, module nor variable is one of these.
    pub ignore: Vec<Pattern>,
}

/// A thread by number, or by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadPattern {
    /// As reports count them.
    Id(u32),
    /// The name that the thread has.
    Name(Pattern),
}

impl FromStr for ThreadPattern {
    type Err = std::convert::Infallible;

    /// A number is an id, everything else is a pattern for the name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse() {
            Ok(id) => Self::Id(id),
            Err(_) => Self::Name(Pattern::new(text)),
        })
    }
}

impl ThreadPattern {
    fn matches(&self, id: u32, threads: &[Thread]) -> bool {
        match self {
            Self::Id(wanted) => *wanted == id,
            Self::Name(pattern) => threads
                .iter()
                .find(|thread| thread.id == id)
                .and_then(|thread| thread.name.as_deref())
                .is_some_and(|name| pattern.matches(name)),
        }
    }
}

/// How many were not wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TakenAway {
    /// Races.
    pub races: usize,
    /// What was only predicted.
    pub predictions: usize,
}

impl RaceFilter {
    /// Takes away the races and predictions that are not wanted, and says how many there were.
    pub fn apply(&self, findings: &mut ProgramFindings) -> TakenAway {
        let threads = &findings.threads;
        let take = |from: &mut Vec<Race>| {
            let before = from.len();
            from.retain(|race| self.wants(race, threads));
            before - from.len()
        };
        TakenAway {
            races: take(&mut findings.races),
            predictions: take(&mut findings.predictions),
        }
    }

    fn wants(&self, race: &Race, threads: &[Thread]) -> bool {
        let by_thread = |id| {
            let mut patterns = self.only_threads.iter();
            patterns.any(|pattern| pattern.matches(id, threads))
        };
        let accesses = &race.accesses;
        if !self.only_threads.is_empty() && !accesses.iter().all(|access| by_thread(access.thread))
        {
            return false;
        }
        let in_module = |pattern: &Pattern| Subject::Module.matches(pattern, race);
        if !self.only_modules.is_empty() && !self.only_modules.iter().any(in_module) {
            return false;
        }
        let in_function = |pattern: &Pattern| {
            accesses
                .iter()
                .any(|access| function_matches(pattern, access))
        };
        if !self.only_functions.is_empty() && !self.only_functions.iter().any(in_function) {
            return false;
        }
        let ignored = |pattern: &Pattern| {
            [
                Subject::Function,
                Subject::File,
                Subject::Module,
                Subject::Variable,
            ]
            .iter()
            .any(|subject| subject.matches(pattern, race))
        };
        !self.ignore.iter().any(ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::{Access, Program, Schema, Variable};

    fn access(thread: u32, function: &str, module: &str) -> Access {
        Access {
            thread,
            function: Some(function.to_owned()),
            file: Some(format!("src/{function}.c")),
            module: module.to_owned(),
            ..Access::default()
        }
    }

    fn findings() -> ProgramFindings {
        let mut findings = ProgramFindings::new(Schema::Races1, Program::default());
        findings.threads = [(1, "main"), (2, "worker-0"), (3, "worker-1")]
            .map(|(id, name)| Thread {
                id,
                name: Some(name.to_owned()),
                ..Thread::default()
            })
            .to_vec();
        for (id, first, second, variable) in [
            (
                "a",
                access(1, "open", "bin/shop"),
                access(2, "sell", "bin/shop"),
                "stats.hits",
            ),
            (
                "b",
                access(2, "sell", "bin/shop"),
                access(3, "push", "lib/libq.so.2"),
                "queue.head[3]",
            ),
        ] {
            let mut race = Race::new(id, [first, second]);
            race.variable = Variable {
                name: Some(variable.to_owned()),
                ..Variable::default()
            };
            findings.races.push(race);
        }
        findings
    }

    fn left(filter: &RaceFilter) -> String {
        let mut findings = findings();
        let away = filter.apply(&mut findings);
        assert_eq!(away.races + findings.races.len(), 2);
        findings.races.iter().map(|race| race.id.as_str()).collect()
    }

    #[test]
    fn nothing_asked_is_everything_told() {
        assert_eq!(left(&RaceFilter::default()), "ab");
    }

    #[test]
    fn predictions_are_asked_for_as_races_are() {
        let filter = RaceFilter {
            ignore: vec![Pattern::new("queue.head")],
            ..RaceFilter::default()
        };
        let mut findings = findings();
        findings.predictions = std::mem::take(&mut findings.races);
        let away = filter.apply(&mut findings);
        assert_eq!((away.races, away.predictions), (0, 1));
        assert_eq!(findings.predictions[0].id, "a");
    }

    #[test]
    fn threads_by_number_and_name() {
        let only = |patterns: &[&str]| RaceFilter {
            only_threads: patterns.iter().map(|text| text.parse().unwrap()).collect(),
            ..RaceFilter::default()
        };
        assert_eq!(left(&only(&["worker-*"])), "b");
        assert_eq!(left(&only(&["1", "2"])), "a");
        assert_eq!(
            left(&only(&["1"])),
            "",
            "the other access is by another thread"
        );
    }

    #[test]
    fn modules_and_functions_of_one_side_are_enough() {
        let filter = RaceFilter {
            only_modules: vec![Pattern::new("libq.so*")],
            ..RaceFilter::default()
        };
        assert_eq!(left(&filter), "b");
        let filter = RaceFilter {
            only_functions: vec![Pattern::new("open"), Pattern::new("close")],
            ..RaceFilter::default()
        };
        assert_eq!(left(&filter), "a");
    }

    #[test]
    fn what_is_ignored_may_be_anything() {
        for (pattern, expected) in [
            ("stats", "b"),
            ("queue.head", "a"),
            ("push", "a"),
            ("open.c", "b"),
            ("bin/shop", ""),
            ("s", "ab"),
        ] {
            let filter = RaceFilter {
                ignore: vec![Pattern::new(pattern)],
                ..RaceFilter::default()
            };
            assert_eq!(left(&filter), expected, "{pattern}");
        }
    }
}
