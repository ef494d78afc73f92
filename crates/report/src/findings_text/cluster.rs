//! Races of one mistake are told together: the first in full, the others in a line each. Once it is known what races can do,
//! only those are that are of the same lines and do the same.

use std::collections::HashMap;

use verdict_findings::{Access, ConsequenceKind, ProgramFindings, Race};

use super::{ReportOptions, changes};
use crate::plain::name;
use crate::ranking::{Rank, worst_first};
use crate::text::{COLUMNS, Paint, Tone, count};
use crate::words;
use crate::wrap::hanging;

/// More than these are counted, not shown.
const SHOWN_MAX: usize = 8;

/// Races in the order in which they are told, each with those that are told in a line under it.
pub(super) fn told<'a>(
    findings: &'a ProgramFindings,
    options: ReportOptions,
) -> Vec<(&'a Race, Vec<&'a Race>)> {
    let mut told: Vec<(&Race, Vec<&Race>)> = Vec::new();
    let mut known: HashMap<Mistake, usize> = HashMap::new();
    for race in worst_first(findings) {
        let is_loud =
            changes::of_race(&race.id, options.since).is_some_and(|change| change.is_loud);
        let mistake = Mistake::of(race).filter(|_| !is_loud);
        match mistake.as_ref().and_then(|mistake| known.get(mistake)) {
            Some(first) => {
                let (first, others) = &mut told[*first];
                // What a cluster is named after is what is told.
                let leads = mistake == Some(Mistake::Cluster(&race.id));
                others.push(if leads {
                    std::mem::replace(first, race)
                } else {
                    race
                });
            }
            None => {
                known.extend(mistake.map(|mistake| (mistake, told.len())));
                told.push((race, Vec::new()));
            }
        }
    }
    told
}

/// What races have in common that are told together.
#[derive(PartialEq, Eq, Hash)]
enum Mistake<'a> {
    /// Nothing is known but the races themselves, and they are in one cluster.
    Cluster(&'a str),
    /// They are of the same lines and do the same: a compiler that unrolls a loop makes many of one.
    Lines {
        rank: Rank,
        consequence: Option<ConsequenceKind>,
        variable: Option<&'a str>,
        lines: [(&'a str, u32); 2],
    },
}

impl<'a> Mistake<'a> {
    /// `None` for a race that is like no other.
    fn of(race: &'a Race) -> Option<Self> {
        let Some(verdict) = &race.verdict else {
            return race.cluster.as_deref().map(Mistake::Cluster);
        };
        let line = |access: &'a Access| Some((access.file.as_deref()?, access.line?));
        let mut lines = [line(&race.accesses[0])?, line(&race.accesses[1])?];
        lines.sort_unstable();
        let name = race.variable.name.as_deref();
        Some(Mistake::Lines {
            rank: Rank::of(race),
            consequence: verdict.consequence.as_ref().map(|found| found.kind),
            // All elements of an array are one.
            variable: name.map(|name| name.split('[').next().unwrap_or(name)),
            lines,
        })
    }
}

/// The races that are told with another one.
pub(super) fn others(race: &Race, others: &[&Race], paint: Paint) -> String {
    if others.is_empty() {
        return String::new();
    }
    if race.verdict.is_some() {
        return format!("\n{}", of_these_lines(others));
    }
    let mut text = "\n  the same mistake\n".to_owned();
    for other in others.iter().take(SHOWN_MAX) {
        let [first, second] = &other.accesses;
        let line = format!("{}, {}", side(first), side(second));
        text.push_str(&hanging("    ", "      ", &line, COLUMNS));
        let facts = format!(
            "race {}; {}",
            name(&other.id),
            words::times(other.instances)
        );
        for line in hanging("      ", "      ", &facts, COLUMNS).lines() {
            text.push_str(&format!("{}\n", paint(Tone::Dim, line)));
        }
    }
    if let Some(more) = others.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("    and {more} more\n"));
    }
    text
}

/// `the same with 2 more races of these lines: c0ffee000001, c0ffee000002`
fn of_these_lines(others: &[&Race]) -> String {
    let shown = others.iter().take(SHOWN_MAX).map(|other| name(&other.id));
    let mut ids: Vec<String> = shown.collect();
    if others.len() > SHOWN_MAX {
        ids.push("...".to_owned());
    }
    let line = format!(
        "the same with {} of these lines: {}",
        count(others.len() as u64, "more race"),
        ids.join(", ")
    );
    hanging("  ", "    ", &line, COLUMNS)
}

/// `write by thread 2 at pipeline.c:52:5`
fn side(access: &Access) -> String {
    let place = words::place(access);
    // The folder is that of the first race.
    let file = place.rsplit('/').next().unwrap_or(&place);
    format!(
        "{} by {} at {file}",
        access.access.word(),
        words::thread_number(access.thread)
    )
}
