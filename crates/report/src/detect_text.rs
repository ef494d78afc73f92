//! The report of one detector, for people: what was found in a sentence, then the races by location.

use verdict_detect::{Answer, Findings, PairBy, Race, Side};
use verdict_events::{Addr, Names};

use crate::text::{COLUMNS, Paint, Tone, count, number};

/// Several lines. `paint` gives each piece of text the colour of its tone, or leaves it as it is.
pub fn detect_text(findings: &Findings, by: PairBy, names: &dyn Names, paint: Paint) -> String {
    let mut text = summary(findings, paint);
    let widths = Widths::of(&findings.races, by, names);
    for (location, races) in groups(&findings.races) {
        text.push('\n');
        text.push_str(&heading(location, &races, names, paint));
        for race in races {
            text.push_str(&line(race, by, names, &widths, paint));
        }
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

fn heading(location: Addr, races: &[&Race], names: &dyn Names, paint: Paint) -> String {
    let instances: u64 = races.iter().map(|race| race.instances).sum();
    format!(
        "{}: {}, {}\n",
        paint(Tone::Heading, &names.location(location)),
        count(races.len() as u64, "race"),
        count(instances, "instance"),
    )
}

/// How wide the columns are: one layout for the whole report, so that the eye can run down it.
struct Widths {
    sides: [usize; 2],
    times: usize,
}

impl Widths {
    /// Names longer than this push the rest of their own line aside, not that of all others.
    const SIDE_MAX: usize = 40;

    fn of(races: &[Race], by: PairBy, names: &dyn Names) -> Self {
        let mut widths = Self {
            sides: [0; 2],
            times: 0,
        };
        for race in races {
            for (width, access) in widths.sides.iter_mut().zip(race.accesses) {
                let own = side(access, by, names).chars().count();
                *width = (*width).max(own.min(Self::SIDE_MAX));
            }
            widths.times = widths.times.max(times(race).len());
        }
        widths
    }
}

fn line(race: &Race, by: PairBy, names: &dyn Names, widths: &Widths, paint: Paint) -> String {
    let [first, second] = race.accesses.map(|access| side(access, by, names));
    let ([first_width, second_width], times_width) = (widths.sides, widths.times);
    let conflict = race.conflict.to_string();
    let left = format!("  {conflict:6}  {first:first_width$}  {second:second_width$}");
    let [first, second] = race.accesses.map(|side| side.position.0);
    let right = format!("{:>times_width$}  events {first}, {second}", times(race));
    let mut text = if left.chars().count() + 2 + right.len() <= COLUMNS {
        format!("{left}  {}\n", paint(Tone::Dim, &right))
    } else {
        format!("{}\n{}", left.trim_end(), remark(right.trim_start(), paint))
    };
    if race.locations.len() > 1 {
        let more = count(race.locations.len() as u64 - 1, "more location");
        text.push_str(&remark(&format!("also in {more}"), paint));
    }
    text
}

/// A line that continues the one above, under its accesses.
fn remark(text: &str, paint: Paint) -> String {
    format!("{:10}{}\n", "", paint(Tone::Dim, text))
}

fn side(side: Side, by: PairBy, names: &dyn Names) -> String {
    let access = format!("{} {}", side.kind, names.site(side.site));
    match by {
        PairBy::Site => access,
        PairBy::ThreadAndSite => format!("{} {access}", names.thread(side.thread)),
    }
}

fn times(race: &Race) -> String {
    match race.instances {
        1 => "once".to_owned(),
        more => format!("{} times", number(more)),
    }
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
