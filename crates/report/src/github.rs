//! The report on a program as annotations that GitHub shows beside the lines of a change: one line of log for each race.

use verdict_findings::{Access, ProgramFindings, Race};

use crate::findings_text::ReportOptions;
use crate::plain::one_line;
use crate::ranking::{Rank, worst_first};
use crate::sarif::level;
use crate::words;

/// One line a race, the worst first.
pub fn findings_github(findings: &ProgramFindings, options: ReportOptions) -> String {
    let races = worst_first(findings).into_iter();
    races
        .map(|race| annotation(race, findings, options) + "\n")
        .collect()
}

fn annotation(race: &Race, findings: &ProgramFindings, options: ReportOptions) -> String {
    let rank = Rank::of(race);
    let command = match level(rank) {
        "error" => "error",
        "warning" => "warning",
        _ => "notice",
    };
    let mut properties = vec![format!(
        "title={}",
        property(&format!("data race: {}", rank.word()))
    )];
    // Shown beside the first access that has a line; the text names both.
    if let Some(access) = race
        .accesses
        .iter()
        .find(|access| access.file.is_some() && access.line.is_some())
    {
        properties.extend(place(access));
    }
    let [first, second] = race.accesses.each_ref().map(|access| {
        let thread = words::thread(findings, access.thread);
        format!(
            "{} by {thread} at {}",
            words::access(access),
            words::place(access)
        )
    });
    let mut lines = vec![
        words::headline(race),
        format!("on {}: {first}; {second}", words::variable_name(race)),
    ];
    lines.extend(
        words::replay_commands(race, options.folder)
            .into_iter()
            .map(|(command, _)| command),
    );
    let message: Vec<String> = lines.iter().map(|line| data(&one_line(line))).collect();
    // `%0A` is how a line end is written there.
    format!(
        "::{command} {}::{}",
        properties.join(","),
        message.join("%0A")
    )
}

fn place(access: &Access) -> Vec<String> {
    let file = access.file.as_deref().unwrap_or("");
    let file = file.strip_prefix("./").unwrap_or(file);
    let mut place = vec![format!("file={}", property(&one_line(file)))];
    place.extend(access.line.map(|line| format!("line={line}")));
    place.extend(access.column.map(|column| format!("col={column}")));
    place
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
