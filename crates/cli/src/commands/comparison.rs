//! `verdict classify --compare`: two ways to judge the same races, side by side (Portend+, table V).
//!
//! Replay analysis (replay-classification, section 4.3) takes a race for potentially harmful as soon as one instance leaves
//! another state behind or cannot be turned round; consequence analysis asks what becomes of the program.

use verdict_findings::{Access, Class, ProgramFindings, Race, ReplayOutcome};

/// One line for each race that was classified, and how often the two agree.
pub(super) fn text(findings: &ProgramFindings) -> String {
    let rows: Vec<[String; 4]> = findings.races.iter().filter_map(row).collect();
    let titles = ["race", "where", "replay analysis", "consequence analysis"];
    let width = |column: usize| {
        let longest = rows.iter().map(|row| row[column].chars().count()).max();
        longest.unwrap_or(0).max(titles[column].len())
    };
    let widths = [width(0), width(1), width(2), 0];
    let line = |row: [&str; 4]| {
        let padded: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(text, width)| format!("{text:<width$}"))
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let mut text = line(titles);
    for row in &rows {
        text.push_str(&line([&row[0], &row[1], &row[2], &row[3]]));
    }
    text.push_str(&summary(findings));
    text
}

fn row(race: &Race) -> Option<[String; 4]> {
    let verdict = race.verdict.as_ref()?;
    let replay = match verdict.replay.as_ref().map(|replay| replay.outcome) {
        Some(outcome) if is_benign(outcome) => format!("potentially benign ({})", outcome.word()),
        Some(outcome) => format!("potentially harmful ({})", outcome.word()),
        None => "not known".to_owned(),
    };
    let class = match (verdict.class, &verdict.consequence) {
        (None, _) => "not known".to_owned(),
        (Some(Class::SpecViolated), Some(consequence)) => {
            format!("spec-violated ({})", consequence.kind.word())
        }
        (Some(Class::KWitnessHarmless), _) => {
            let states = match verdict.states_differ {
                Some(true) => ", states differ",
                Some(false) => ", states same",
                None => "",
            };
            format!(
                "k-witness-harmless (k = {}{states})",
                verdict.k.unwrap_or(0)
            )
        }
        (Some(class), _) => class.word().to_owned(),
    };
    let [first, second] = &race.accesses;
    let place = format!("{}, {}", place(first), place(second));
    Some([race.id.clone(), place, replay, class])
}

fn place(access: &Access) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (&access.file, access.line) {
        (Some(file), Some(line)) => format!("{}:{line}", name(file)),
        _ => format!("{}+{:#x}", name(&access.module), access.offset),
    }
}

fn is_benign(outcome: ReplayOutcome) -> bool {
    outcome == ReplayOutcome::NoStateChange
}

/// How many races each takes for harmful, and where they disagree.
fn summary(findings: &ProgramFindings) -> String {
    let mut counts = [[0; 2]; 2];
    for race in &findings.races {
        let Some(verdict) = &race.verdict else {
            continue;
        };
        let (Some(replay), Some(class)) = (&verdict.replay, verdict.class) else {
            continue;
        };
        counts[usize::from(!is_benign(replay.outcome))][usize::from(class.is_harmful())] += 1;
    }
    let [[agree_benign, missed], [alarms, agree_harmful]] = counts;
    format!(
        "\nharmful to both: {agree_harmful}; to neither: {agree_benign}; to replay analysis alone: {alarms}; \
         to consequence analysis alone: {missed}\n"
    )
}
