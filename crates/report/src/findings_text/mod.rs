//! The report on a program, for people at a terminal: the worst race first, then how many there are of each class, then
//! what could race in another run, and what was not looked at.

mod changes;
mod cluster;
mod excerpt;
mod interleaving;
mod predictions;
mod race;
mod steered;
mod underline;

pub(crate) use changes::of_race as change_of;
use verdict_findings::{Consequence, CoverageNote, ProgramFindings, Race};
use verdict_history::Comparison;

use crate::ranking::{Rank, counts, worst_first};
use crate::text::{COLUMNS, Paint, Tone, count, number};
use crate::words;
use crate::wrap::hanging;

/// What a report on a program needs to know besides the findings.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReportOptions<'a> {
    /// The result folder as the user would name it, for the commands that replay. Empty or `.`: where the user is.
    pub folder: &'a str,
    /// What has changed since earlier runs, if they are known.
    pub since: Option<&'a Comparison>,
}

/// A memory error that was looked for: what, and the stacks of the access and of the block.
pub fn memory_error_text(error: &Consequence) -> String {
    let what = format!("memory error: {}", words::sentence(&error.detail));
    format!(
        "{}{}\n",
        hanging("", "  ", &what, COLUMNS),
        race::stacks(error)
    )
}

/// Several lines. `paint` gives each piece of text the colour of its tone, or leaves it as it is.
pub fn findings_text(findings: &ProgramFindings, options: ReportOptions, paint: Paint) -> String {
    let mut text = summary(findings, paint);
    for (race, others) in cluster::told(findings, options) {
        text.push('\n');
        text.push_str(&race::block(race, &others, findings, options, paint));
    }
    text.push_str(&table(findings, paint));
    text.push_str(&predictions::predictions(findings, paint));
    text.push_str(&changes::gone(options.since, paint));
    text.push_str(&not_covered(&findings.coverage, paint));
    text
}

/// `5 races in ./pipeline --workers 2`
fn summary(findings: &ProgramFindings, paint: Paint) -> String {
    let races = worst_first(findings);
    let (tone, what) = match races.len() as u64 {
        0 => (Tone::Good, "no races".to_owned()),
        races => (Tone::Bad, count(races, "race")),
    };
    let line = format!("{what} in {}{}", words::program(findings), ending(findings));
    let lines = hanging("", "  ", &line, COLUMNS);
    // The first line is always long enough to hold the count.
    match lines.strip_prefix(&what) {
        Some(rest) => paint(tone, &what) + rest,
        None => lines,
    }
}

fn ending(findings: &ProgramFindings) -> String {
    let program = &findings.program;
    match (&program.ending, program.signal, program.exit) {
        (Some(ending), _, _) => format!(", which ended so: {}", words::sentence(ending)),
        (None, Some(signal), _) => format!(", which was ended by signal {signal}"),
        (None, None, Some(0) | None) => String::new(),
        (None, None, Some(code)) => format!(", which ended with {code}"),
    }
}

fn table(findings: &ProgramFindings, paint: Paint) -> String {
    let mut rows: Vec<(&str, u64, &str)> = counts(findings)
        .into_iter()
        .map(|(rank, races)| (rank.word(), races, rank.meaning()))
        .collect();
    let suppressed = findings.races.iter().filter(|race| race.is_suppressed());
    let suppressed = suppressed.count() as u64;
    if suppressed > 0 {
        rows.push(("suppressed", suppressed, "not reported, as you asked"));
    }
    if rows.is_empty() {
        return String::new();
    }
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let heading = format!("{:width$}  races", "class");
    let mut text = format!("\n{}\n", paint(Tone::Heading, &heading));
    for (class, races, meaning) in rows {
        text.push_str(&format!(
            "{class:width$}  {:>5}  {meaning}\n",
            number(races)
        ));
    }
    text
}

fn not_covered(notes: &[CoverageNote], paint: Paint) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint(Tone::Heading, "not covered"));
    for note in notes {
        let mut sentence = words::sentence(&note.what);
        if !note.stage.is_empty() {
            sentence = format!("{}: {sentence}", words::sentence(&note.stage));
        }
        if let Some(help) = &note.help {
            sentence.push_str(&format!("; {}", words::sentence(help)));
        }
        text.push_str(&hanging("  ", "    ", &sentence, COLUMNS));
    }
    text
}

/// The colour of a race.
fn tone(race: &Race) -> Tone {
    match Rank::of(race) {
        Rank::SpecViolated | Rank::OutputDiffers | Rank::Unclassified => Tone::Bad,
        Rank::SingleOrdering | Rank::KWitnessHarmless | Rank::NotReproduced => Tone::Heading,
    }
}
