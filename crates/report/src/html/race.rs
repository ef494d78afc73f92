//! One race.

use verdict_findings::{Access, Frame, ProgramFindings, Race, Verdict};

use super::markup::{Html, element, of_class, plain};
use super::{difference, overview, timeline};
use crate::findings_text::ReportOptions;
use crate::plain::{name, source_line};
use crate::ranking::Rank;
use crate::words;

pub(super) fn article(
    place: usize,
    race: &Race,
    findings: &ProgramFindings,
    options: ReportOptions,
) -> Html {
    let mut content = heading(place, race, options);
    content.push(of_class("p", "facts", Html::text(&facts(race))));
    if let Some(why) = &race.why_not_ordered {
        content.push(remark("Not ordered: ", why));
    }
    content.push(variable(race, findings));
    let sides: Html = race
        .accesses
        .iter()
        .map(|access| side(access, findings))
        .collect();
    content.push(of_class("div", "sides", sides));
    if let Some(verdict) = &race.verdict {
        content.push(consequence(verdict, findings));
        content.push(timeline::orders(race, verdict, findings));
        content.push(difference::output(verdict));
        content.push(difference::state(verdict));
        for why in [&verdict.why, &verdict.ordered_by].into_iter().flatten() {
            content.push(remark("Why: ", why));
        }
    }
    content.push(commands(race, options.folder));
    let rank = Rank::of(race).word();
    element(
        "article",
        &[
            ("id", &format!("race-{place}")),
            ("class", rank),
            ("data-race", &place.to_string()),
            ("data-rank", rank),
            ("tabindex", "-1"),
        ],
        content,
    )
}

fn heading(place: usize, race: &Race, options: ReportOptions) -> Html {
    let number = of_class("span", "number", Html::text(&place.to_string()));
    let line = number
        .and(overview::tag(Rank::of(race)))
        .and(Html::text(&format!(" {}", words::headline(race))));
    plain("h2", line.and(overview::badge(race, options)))
}

fn facts(race: &Race) -> String {
    let mut facts = vec![
        format!("race {}", name(&race.id)),
        format!("{} conflict", race.conflict.word()),
    ];
    facts.push(words::times(race.instances));
    if !race.found_by.is_empty() {
        let found_by: Vec<String> = race.found_by.iter().map(|by| name(by)).collect();
        facts.push(format!("found by {}", found_by.join(", ")));
    }
    if let Some(verdict) = &race.verdict {
        facts.extend(words::confirmation(verdict));
        facts.extend(words::replay(verdict));
        facts.extend(
            verdict
                .label
                .map(|label| words::label_words(label).to_owned()),
        );
        match verdict.states_differ {
            Some(true) => facts.push("states differ".to_owned()),
            Some(false) => facts.push("states are the same".to_owned()),
            None => {}
        }
    }
    if let Some(cluster) = race.cluster.as_ref().filter(|cluster| **cluster != race.id) {
        facts.push(format!("much like race {}", name(cluster)));
    }
    facts.join(" · ")
}

fn variable(race: &Race, findings: &ProgramFindings) -> Html {
    let mut content =
        plain("b", Html::text("On ")).and(plain("code", Html::text(&words::variable(race))));
    if !race.variable.allocated_at.is_empty() {
        let by = race.variable.thread.map_or_else(
            || "Allocated at".to_owned(),
            |thread| format!("Allocated by {}", words::thread(findings, thread)),
        );
        content.push(folded(&by, stack(&race.variable.allocated_at)));
    }
    of_class("div", "variable", content)
}

fn side(access: &Access, findings: &ProgramFindings) -> Html {
    let what = format!(
        "{} by {}",
        words::access(access),
        words::thread(findings, access.thread)
    );
    let mut place = words::place(access);
    if let Some(function) = &access.function {
        place = format!("{} at {place}", name(function));
    }
    let mut content = plain("h3", Html::text(&what)).and(of_class("p", "code", Html::text(&place)));
    if let Some(locks) = words::locks(&access.locks) {
        content.push(plain("p", Html::text(&locks)));
    }
    content.push(excerpt(access));
    if !access.stack.is_empty() {
        content.push(folded("Stack", stack(&access.stack)));
    }
    let created = findings
        .thread(access.thread)
        .map_or(&[][..], |thread| &thread.created_at);
    if !created.is_empty() {
        content.push(folded(
            &format!("Thread {} was created at", access.thread),
            stack(created),
        ));
    }
    of_class("section", "side", content)
}

/// The source with line numbers; the line of the access is marked.
fn excerpt(access: &Access) -> Html {
    let Some(source) = &access.source else {
        return Html::default();
    };
    let lines = source.lines.iter().enumerate().map(|(index, line)| {
        let number = u64::from(source.first_line) + index as u64;
        let own = access.line.is_some_and(|own| u64::from(own) == number);
        let class = if own { "line own" } else { "line" };
        let number = of_class("span", "line-number", Html::text(&number.to_string()));
        of_class("span", class, number.and(Html::text(&source_line(line))))
    });
    of_class("pre", "excerpt", lines.collect())
}

/// A call stack, the innermost frame first.
pub(super) fn stack(frames: &[Frame]) -> Html {
    let items = frames.iter().map(|frame| {
        let class = if frame.inlined { "inlined" } else { "frame" };
        of_class("li", class, Html::text(&words::frame(frame)))
    });
    of_class("ol", "stack", items.collect())
}

/// Something to be opened by whoever wants to know.
pub(super) fn folded(heading: &str, content: Html) -> Html {
    plain(
        "details",
        plain("summary", Html::text(heading)).and(content),
    )
}

fn consequence(verdict: &Verdict, findings: &ProgramFindings) -> Html {
    let Some(consequence) = &verdict.consequence else {
        return Html::default();
    };
    let mut content = Html::default();
    if !consequence.stack.is_empty() {
        let whose = consequence.thread.map_or(String::new(), |thread| {
            format!(" of {}", words::thread(findings, thread))
        });
        let heading = format!(
            "Stack{whose} at the {}",
            words::consequence_words(consequence.kind)
        );
        content.push(folded(&heading, stack(&consequence.stack)));
    }
    for (what, frames) in words::block_stacks(consequence) {
        content.push(folded(&words::sentence(what), stack(frames)));
    }
    if !consequence.cycle.is_empty() {
        let waits = consequence
            .cycle
            .iter()
            .map(|line| plain("li", Html::text(&words::sentence(line))));
        content
            .push(plain("p", Html::text("Who waits for whom:")).and(plain("ol", waits.collect())));
    }
    content
}

fn commands(race: &Race, folder: &str) -> Html {
    let commands = words::replay_commands(race, folder);
    if commands.is_empty() {
        return Html::default();
    }
    let items: Html = commands
        .into_iter()
        .map(|(command, what)| {
            let copy = element(
                "button",
                &[("type", "button"), ("class", "copy")],
                Html::text("copy"),
            );
            let shown = plain("code", Html::text(&command));
            of_class(
                "div",
                "command",
                copy.and(shown)
                    .and(of_class("span", "what", Html::text(&what))),
            )
        })
        .collect();
    plain("h3", Html::text("See it happen")).and(items)
}

fn remark(start: &'static str, text: &str) -> Html {
    of_class(
        "p",
        "remark",
        plain("b", Html::text(start)).and(Html::text(&words::sentence(text))),
    )
}
