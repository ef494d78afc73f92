//! One race.

use verdict_findings::{Access, Consequence, Frame, ProgramFindings, Race, Verdict};

use super::{ReportOptions, changes, cluster, excerpt, interleaving, steered, tone};
use crate::plain::{name, one_line, shortened};
use crate::ranking::Rank;
use crate::text::{COLUMNS, Paint, Tone, count};
use crate::words;
use crate::wrap::hanging;

/// More frames or lines than this are counted, not shown; HTML has them all.
const FRAMES_MAX: usize = 8;
const DIFFERENCES_MAX: usize = 6;

pub(super) fn block(
    race: &Race,
    others: &[&Race],
    findings: &ProgramFindings,
    options: ReportOptions,
    paint: Paint,
) -> String {
    let mut text = headline(race, paint);
    text.push_str(&facts(race, options, paint));
    text.push_str(&variable(race, findings));
    for access in &race.accesses {
        text.push_str(&side(access, findings, paint));
    }
    text.push_str(&origins(race, findings));
    if let Some(why) = &race.why_not_ordered {
        text.push_str(&paragraph("not ordered: ", why));
    }
    if let Some(verdict) = &race.verdict {
        text.push_str(&verdict.consequence.as_ref().map_or(String::new(), stacks));
        text.push_str(&differences(race, verdict));
        text.push_str(&interleaving::orders(race, verdict, paint));
        text.push_str(&steered::errors(verdict, options.folder));
        if let Some(why) = &verdict.why {
            text.push_str(&paragraph("why: ", why));
        }
    }
    text.push_str(&cluster::others(race, others, paint));
    text.push_str(&replays(race, options.folder));
    text
}

/// Where the threads of both accesses were created.
fn origins(race: &Race, findings: &ProgramFindings) -> String {
    let mut ids = vec![race.accesses[0].thread, race.accesses[1].thread];
    ids.dedup();
    let told = ids.iter().filter_map(|&id| {
        let thread = findings.thread(id)?;
        let created = words::telling(&thread.created_at)?;
        let by = thread.parent.map_or(String::new(), |parent| {
            format!(" by {}", words::thread(findings, parent))
        });
        let line = format!(
            "{} was created{by} in {}",
            words::thread(findings, id),
            words::frame(created)
        );
        Some(hanging("  ", "    ", &line, COLUMNS))
    });
    let told: String = told.collect();
    if told.is_empty() {
        return told;
    }
    format!("\n{told}")
}

fn headline(race: &Race, paint: Paint) -> String {
    let text = format!("{}  {}", Rank::of(race).word(), words::headline(race));
    let lines = hanging("", "  ", &text, COLUMNS);
    lines
        .lines()
        .map(|line| paint(tone(race), line) + "\n")
        .collect()
}

/// What identifies the race, and how sure it is.
fn facts(race: &Race, options: ReportOptions, paint: Paint) -> String {
    let mut parts = vec![
        format!("race {}", name(&race.id)),
        words::times(race.instances),
    ];
    if !race.found_by.is_empty() {
        let found_by: Vec<String> = race.found_by.iter().map(|by| name(by)).collect();
        parts.push(format!("found by {}", found_by.join(", ")));
    }
    parts.extend(race.verdict.as_ref().and_then(words::confirmation));
    parts.extend(race.verdict.as_ref().and_then(words::replay));
    if race
        .verdict
        .as_ref()
        .is_some_and(|verdict| verdict.states_differ == Some(true))
    {
        parts.push("states differ".to_owned());
    }
    if let Some(cluster) = race.cluster.as_ref().filter(|cluster| **cluster != race.id) {
        parts.push(format!("much like race {}", name(cluster)));
    }
    let lines = hanging("  ", "  ", &parts.join("; "), COLUMNS);
    let mut text: String = lines
        .lines()
        .map(|line| paint(Tone::Dim, line) + "\n")
        .collect();
    if let Some(change) = changes::of_race(&race.id, options.since) {
        let tone = if change.is_loud { Tone::Bad } else { Tone::Dim };
        text.push_str(&format!("{}\n", paint(tone, &format!("  {}", change.text))));
    }
    if let Some(suppression) = race
        .suppressed
        .as_ref()
        .filter(|suppression| suppression.expired)
    {
        text.push_str(&paragraph(
            "was suppressed until ",
            suppression.until.as_deref().unwrap_or("now"),
        ));
    }
    text
}

fn variable(race: &Race, findings: &ProgramFindings) -> String {
    let mut text = format!(
        "\n{}",
        hanging("  on ", "     ", &words::variable(race), COLUMNS)
    );
    if let (Some(thread), false) = (race.variable.thread, race.variable.allocated_at.is_empty()) {
        let by = format!("allocated by {}:", words::thread(findings, thread));
        text.push_str(&hanging("     ", "     ", &by, COLUMNS));
    }
    text.push_str(&stack(&race.variable.allocated_at));
    text
}

/// One access with its source, or with its stack where there is none.
fn side(access: &Access, findings: &ProgramFindings, paint: Paint) -> String {
    let mut heading = format!(
        "{} by {}",
        words::access(access),
        words::thread(findings, access.thread)
    );
    if let Some(function) = &access.function {
        heading.push_str(&format!(" in {}", name(function)));
    }
    heading.push_str(&format!(", {}", words::place(access)));
    if let Some(locks) = words::locks(&access.locks) {
        heading.push_str(&format!(", {locks}"));
    }
    let mut text = format!("\n{}", hanging("  ", "    ", &heading, COLUMNS));
    text.push_str(&excerpt::lines(access, paint));
    // A stack of one frame says nothing that the heading does not.
    if access.stack.len() > 1 {
        text.push_str(&stack(&access.stack));
    }
    text
}

fn stack(frames: &[Frame]) -> String {
    let mut text = String::new();
    for frame in frames.iter().take(FRAMES_MAX) {
        text.push_str(&hanging(
            "       ",
            "         ",
            &words::frame(frame),
            COLUMNS,
        ));
    }
    if let Some(more) = frames
        .len()
        .checked_sub(FRAMES_MAX)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!("       and {more} more\n"));
    }
    text
}

/// Where something goes wrong, and what it is about.
pub(super) fn stacks(consequence: &Consequence) -> String {
    let mut text = String::new();
    if !consequence.stack.is_empty() {
        let whose = consequence
            .thread
            .map_or(String::new(), |thread| format!(" of thread {thread}"));
        let what = words::consequence_words(consequence.kind);
        text.push_str(&format!("\n  stack{whose} at the {what}\n"));
        text.push_str(&stack(&consequence.stack));
    }
    for (what, frames) in words::block_stacks(consequence) {
        text.push_str(&format!("\n  {what}\n"));
        text.push_str(&stack(frames));
    }
    if !consequence.cycle.is_empty() {
        text.push_str("\n  who waits for whom\n");
        for line in &consequence.cycle {
            text.push_str(&hanging(
                "       ",
                "         ",
                &words::sentence(line),
                COLUMNS,
            ));
        }
    }
    text
}

fn differences(race: &Race, verdict: &Verdict) -> String {
    let mut text = String::new();
    if !verdict.state_differences.is_empty() {
        text.push_str("\n  left behind: as recorded, then in the other order\n");
        // What has no name is for a debugger, and JSON has it.
        let named = verdict.state_differences.iter();
        let named: Vec<_> = named.filter(|difference| difference.is_named()).collect();
        for difference in named.iter().take(DIFFERENCES_MAX) {
            let [variable, old, new] =
                [&difference.variable, &difference.old, &difference.new].map(|text| name(text));
            text.push_str(&hanging(
                "       ",
                "         ",
                &format!("{variable}: {old}, {new}"),
                COLUMNS,
            ));
        }
        let more = named.len().saturating_sub(DIFFERENCES_MAX);
        let unnamed = verdict.state_differences.len() - named.len();
        if more > 0 {
            text.push_str(&format!("       and {more} more variables\n"));
        }
        if unnamed > 0 {
            let words = count(unnamed as u64, "word");
            text.push_str(&format!("       {words} of memory without a name\n"));
        }
    }
    if let Some(difference) = &verdict.output_difference {
        let heading = format!(
            "{} after {} bytes",
            name(&difference.stream),
            difference.position
        );
        text.push_str(&format!("\n{}", hanging("  ", "    ", &heading, COLUMNS)));
        for (sign, piece) in [("-", &difference.primary), ("+", &difference.alternate)] {
            for line in piece.text.lines().take(DIFFERENCES_MAX) {
                let line = shortened(&one_line(line), COLUMNS - 9);
                text.push_str(&format!("       {sign} {line}\n"));
            }
        }
        let pieces = [&difference.primary, &difference.alternate];
        let writers = pieces.map(|piece| words::writer(race, piece));
        let writers = match writers {
            [Some(one), Some(other)] if one == other => vec![format!("written in {one}")],
            [one, other] => [("-", one), ("+", other)]
                .into_iter()
                .filter_map(|(sign, writer)| Some(format!("{sign} is written in {}", writer?)))
                .collect(),
        };
        for writer in writers {
            text.push_str(&hanging("       ", "         ", &writer, COLUMNS));
        }
    }
    text
}

fn replays(race: &Race, folder: &str) -> String {
    let commands = words::replay_commands(race, folder);
    if commands.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = commands.iter().map(|(_, what)| what.as_str()).collect();
    let shown = if shown.contains(&"") {
        String::new()
    } else {
        format!(": {}", shown.join("; then "))
    };
    let mut text = format!("\n{}", hanging("  see it happen", "    ", &shown, COLUMNS));
    for (command, _) in commands {
        // Commands are not wrapped: they are there to be copied.
        text.push_str(&format!("    {command}\n"));
    }
    text
}

fn paragraph(start: &str, text: &str) -> String {
    let text = format!("{start}{}", words::sentence(text));
    format!("\n{}", hanging("  ", "    ", &text, COLUMNS))
}
