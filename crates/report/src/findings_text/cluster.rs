//! Races of one mistake are told together: the first in full, the others in a line each. Once it is known what races can do,
//! each is told for itself, since they may do different things.

use verdict_findings::{Access, ProgramFindings, Race};

use crate::plain::name;
use crate::text::{COLUMNS, Paint, Tone};
use crate::words;
use crate::wrap::hanging;

/// More than these are counted, not shown.
const SHOWN_MAX: usize = 8;

/// Whether a race is one of the lines under the first one of its cluster.
pub(super) fn is_told_with_another(race: &Race, findings: &ProgramFindings) -> bool {
    let first = findings
        .races
        .iter()
        .find(|first| race.cluster.as_ref() == Some(&first.id));
    first.is_some_and(|first| first.id != race.id && is_plain(first) && is_plain(race))
}

/// Told, and nothing is known but the race itself.
fn is_plain(race: &Race) -> bool {
    race.verdict.is_none() && !race.is_suppressed()
}

/// The other races of the cluster that a race is the first of.
pub(super) fn others(race: &Race, findings: &ProgramFindings, paint: Paint) -> String {
    let others: Vec<&Race> = findings
        .races
        .iter()
        .filter(|other| {
            other.cluster.as_ref() == Some(&race.id) && is_told_with_another(other, findings)
        })
        .collect();
    if others.is_empty() {
        return String::new();
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
