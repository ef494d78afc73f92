//! What could race in another run: apart from the races, and short, since much of it may turn out to be none.

use std::collections::HashSet;

use verdict_findings::{Access, ProgramFindings, Race};

use crate::plain::name;
use crate::text::{COLUMNS, Paint, Tone, count};
use crate::words;
use crate::wrap::hanging;

/// More than these are counted, not shown; JSON has them all.
const SHOWN_MAX: usize = 10;

/// A line for each pair of lines, and what to do about them.
pub(super) fn predictions(findings: &ProgramFindings, paint: Paint) -> String {
    let told = told(findings);
    if told.is_empty() {
        return String::new();
    }
    let heading = paint(Tone::Heading, "could race in another run");
    let pairs = count(told.len() as u64, "pair");
    let mut text = format!("\n{heading}: {pairs} of lines that no lock keeps apart\n");
    for line in told.iter().take(SHOWN_MAX) {
        text.push_str(&hanging("  ", "    ", line, COLUMNS));
    }
    if let Some(more) = told.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("  and {more} more\n"));
    }
    let next = format!(
        "`verdict confirm -- {}` steers runs to them: those that meet are races",
        words::program(findings)
    );
    text.push_str(&hanging("  ", "    ", &next, COLUMNS));
    text
}

/// Each pair of lines once: a compiler makes several instructions of one.
fn told(findings: &ProgramFindings) -> Vec<String> {
    let pairs = findings.predictions.iter();
    let pairs = pairs.filter(|pair| !pair.is_suppressed());
    let mut known = HashSet::new();
    pairs
        .map(line)
        .filter(|line| known.insert(line.clone()))
        .collect()
}

/// `pipeline.c:52 (produce) writes, pipeline.c:66 (consume) reads`
fn line(pair: &Race) -> String {
    let [first, second] = &pair.accesses;
    format!("{}, {}", side(first), side(second))
}

fn side(access: &Access) -> String {
    let place = words::source_place(access.file.as_deref(), access.line, None);
    let place = place.unwrap_or_else(|| words::place(access));
    let function = access.function.as_deref();
    let function = function.map_or_else(String::new, |function| format!(" ({})", name(function)));
    format!("{place}{function} {}", words::verb(access.access))
}
