//! The report of one detector, for people: what was found in a sentence, then the races by location.

use verdict_detect::{Answer, Findings, PairBy, Race, Side};
use verdict_events::{Addr, Names};

use crate::text::{Paint, Tone, count, number, spread};

/// Several lines. `paint` gives each piece of text the colour of its tone, or leaves it as it is.
pub fn detect_text(findings: &Findings, by: PairBy, names: &dyn Names, paint: Paint) -> String {
    let mut text = summary(findings, paint);
    for (location, races) in groups(&findings.races) {
        text.push('\n');
        text.push_str(&group(location, &races, by, names, paint));
    }
    text.push_str(&open_answers(findings, names, paint));
    text.push('\n');
    text.push_str(&footer(findings, paint));
    text
}

fn summary(findings: &Findings, paint: Paint) -> String {
    let races = findings.races.len() as u64;
    if races == 0 {
        return format!("{}\n", paint(Tone::Good, "no races"));
    }
    let racy = findings
        .locations
        .iter()
        .filter(|(_, answer)| *answer == Answer::Race)
        .count();
    let of = format!(
        " in {} of {}",
        number(racy as u64),
        count(findings.trace.locations, "location")
    );
    format!("{}{of}\n", paint(Tone::Bad, &count(races, "race")))
}

/// Races under the first location of each, locations by address, races by their first instances.
fn groups(races: &[Race]) -> Vec<(Addr, Vec<&Race>)> {
    let mut sorted: Vec<&Race> = races.iter().collect();
    sorted.sort_by_key(|race| race.locations[0]);
    let chunks = sorted.chunk_by(|a, b| a.locations[0] == b.locations[0]);
    chunks
        .map(|chunk| (chunk[0].locations[0], chunk.to_vec()))
        .collect()
}

fn group(location: Addr, races: &[&Race], by: PairBy, names: &dyn Names, paint: Paint) -> String {
    let instances: u64 = races.iter().map(|race| race.instances).sum();
    let mut text = format!(
        "{}: {}, {}\n",
        paint(Tone::Heading, &names.location(location)),
        count(races.len() as u64, "race"),
        count(instances, "instance"),
    );
    let sides: Vec<[String; 2]> = races
        .iter()
        .map(|race| race.accesses.map(|access| side(access, by, names)))
        .collect();
    let width = sides
        .iter()
        .map(|[first, _]| first.chars().count())
        .max()
        .unwrap_or(0);
    for (race, [first, second]) in races.iter().zip(&sides) {
        let left = format!(
            "  {:6}  {first:width$}  {second}",
            race.conflict.to_string()
        );
        text.push_str(&spread(&left, &details(race), paint));
    }
    text
}

fn side(side: Side, by: PairBy, names: &dyn Names) -> String {
    let access = format!("{} {}", side.kind, names.site(side.site));
    match by {
        PairBy::Site => access,
        PairBy::ThreadAndSite => format!("{} {access}", names.thread(side.thread)),
    }
}

fn details(race: &Race) -> String {
    let [first, second] = race.accesses.map(|side| side.position.0);
    let mut text = String::new();
    if race.locations.len() > 1 {
        text.push_str(&format!(
            "+{}, ",
            count(race.locations.len() as u64 - 1, "location")
        ));
    }
    if race.instances > 1 {
        text.push_str(&format!("{} times, ", number(race.instances)));
    }
    text + &format!("events {first}, {second}")
}

/// Locations of which the detector cannot tell, since it kept too little.
fn open_answers(findings: &Findings, names: &dyn Names, paint: Paint) -> String {
    const SHOWN_MAX: usize = 8;
    let open = findings
        .locations
        .iter()
        .filter(|(_, answer)| *answer == Answer::Inconclusive);
    let open: Vec<String> = open.map(|&(addr, _)| names.location(addr)).collect();
    if open.is_empty() {
        return String::new();
    }
    let more = match open.len().checked_sub(SHOWN_MAX) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {} more", number(more as u64)),
    };
    let shown = open[..open.len().min(SHOWN_MAX)].join(", ");
    let heading = paint(
        Tone::Heading,
        &format!("{} inconclusive", count(open.len() as u64, "location")),
    );
    format!("\n{heading}\n  {shown}{more}\n")
}

fn footer(findings: &Findings, paint: Paint) -> String {
    let trace = findings.trace;
    let mut text = format!(
        "{}: {}, {}, {}, {}",
        findings.algorithm,
        count(trace.events, "event"),
        count(trace.threads, "thread"),
        count(trace.locations, "location"),
        count(trace.segments, "segment"),
    );
    if let Some(history) = findings.history {
        text.push_str(&format!(
            "\n{}: kept at most {} for a location, {} in all",
            findings.algorithm,
            count(history.segments_max, "segment"),
            number(history.segments_total),
        ));
    }
    text.lines()
        .map(|line| paint(Tone::Dim, line) + "\n")
        .collect()
}
