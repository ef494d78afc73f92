//! What the detectors of limited history give for what they keep (Banerjee et al., sections 3 and 4).

use serde::Serialize;
use verdict_detect::{Answer, Findings};

use crate::detect_json::{History, TraceSize};
use crate::text::{Paint, Tone, count, number};

const HEADINGS: [&str; 6] = [
    "algorithm",
    "race",
    "no-race",
    "inconclusive",
    "kept/location",
    "kept in all",
];

/// A table for people.
pub fn compare_text(all: &[Findings], paint: Paint) -> String {
    let rows: Vec<[String; 6]> = all.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.max().unwrap_or(0).max(HEADINGS[column].len())
    };
    let line = |cells: [&str; 6]| {
        let mut text = format!("{:<1$}", cells[0], width(0));
        for (column, cell) in cells.iter().enumerate().skip(1) {
            text.push_str(&format!("  {cell:>0$}", width(column)));
        }
        text
    };
    let mut text = paint(Tone::Heading, &line(HEADINGS)) + "\n";
    for row in &rows {
        text.push_str(&line(row.each_ref().map(String::as_str)));
        text.push('\n');
    }
    if let Some(findings) = all.first() {
        let trace = findings.trace;
        let size = format!(
            "{}, {}, {}; kept are segments",
            count(trace.events, "event"),
            count(trace.threads, "thread"),
            count(trace.locations, "location"),
        );
        text.push_str(&format!("\n{}\n", paint(Tone::Dim, &size)));
    }
    text
}

/// One line of JSON: schema `verdict.detect-compare/1`.
pub fn compare_json(all: &[Findings]) -> String {
    let report = Report {
        schema: "verdict.detect-compare/1",
        trace: all.first().map(TraceSize::of),
        algorithms: all.iter().map(Row::of).collect(),
    };
    let mut json = serde_json::to_string(&report).expect("a report is always valid JSON");
    json.push('\n');
    json
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    trace: Option<TraceSize>,
    algorithms: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    algorithm: &'static str,
    race: u64,
    #[serde(rename = "no-race")]
    no_race: u64,
    inconclusive: u64,
    history: Option<History>,
}

impl Row {
    fn of(findings: &Findings) -> Row {
        Row {
            algorithm: findings.algorithm.name(),
            race: answers(findings, Answer::Race),
            no_race: answers(findings, Answer::NoRace),
            inconclusive: answers(findings, Answer::Inconclusive),
            history: History::of(findings),
        }
    }
}

fn answers(findings: &Findings, wanted: Answer) -> u64 {
    findings
        .locations
        .iter()
        .filter(|(_, answer)| *answer == wanted)
        .count() as u64
}

fn row(findings: &Findings) -> [String; 6] {
    let history = findings.history.unwrap_or_default();
    [
        findings.algorithm.name().to_owned(),
        number(answers(findings, Answer::Race)),
        number(answers(findings, Answer::NoRace)),
        number(answers(findings, Answer::Inconclusive)),
        number(history.segments_max),
        number(history.segments_total),
    ]
}
