//! What stands around the races: how many there are, the list of them, what is gone, what was not looked at.

use verdict_findings::{ProgramFindings, Race};
use verdict_history::Comparison;

use super::markup::{Html, element, of_class, plain, void};
use crate::findings_text::{ReportOptions, change_of};
use crate::plain::name;
use crate::ranking::{Rank, counts};
use crate::text::{count, number};
use crate::words;

pub(super) fn header(findings: &ProgramFindings) -> Html {
    let counts = counts(findings);
    let all: u64 = counts.iter().map(|(_, races)| races).sum();
    let found = match all {
        0 => "no races".to_owned(),
        races => count(races, "race"),
    };
    let title = Html::text(&format!("{found} in "))
        .and(plain("code", Html::text(&words::program(findings))));
    let chips: Html = counts
        .into_iter()
        .map(|(rank, races)| chip(rank, races))
        .collect();
    let search = void(
        "input",
        &[
            ("id", "search"),
            ("type", "search"),
            ("placeholder", "search (press /)"),
            ("aria-label", "search races"),
            ("autocomplete", "off"),
        ],
    );
    let theme = element(
        "button",
        &[
            ("id", "theme"),
            ("type", "button"),
            ("title", "light or dark (press t)"),
        ],
        Html::text("light/dark"),
    );
    let controls = of_class("div", "controls", chips.and(search).and(theme));
    let ending = match &findings.program.ending {
        Some(ending) => of_class(
            "p",
            "ending",
            Html::text(&format!(
                "The program ended so: {}",
                words::sentence(ending)
            )),
        ),
        None => Html::default(),
    };
    plain("header", plain("h1", title).and(ending).and(controls))
}

/// A button that shows or hides the races of a rank.
fn chip(rank: Rank, races: u64) -> Html {
    let content =
        plain("b", Html::text(&number(races))).and(Html::text(&format!(" {}", rank.word())));
    element(
        "button",
        &[
            ("type", "button"),
            ("class", &format!("chip {}", rank.word())),
            ("data-rank", rank.word()),
            ("aria-pressed", "true"),
            ("title", rank.meaning()),
        ],
        content,
    )
}

/// One line a race, leading to it.
pub(super) fn table(races: &[&Race], options: ReportOptions) -> Html {
    if races.is_empty() {
        return Html::default();
    }
    let headings = ["", "class", "what happens", "variable", "where", "seen"];
    let head: Html = headings
        .iter()
        .map(|heading| plain("th", Html::text(heading)))
        .collect();
    let rows: Html = races
        .iter()
        .enumerate()
        .map(|(index, race)| row(index + 1, race, options))
        .collect();
    let table = plain("thead", plain("tr", head)).and(plain("tbody", rows));
    element("table", &[("id", "overview")], table)
}

fn row(place: usize, race: &Race, options: ReportOptions) -> Html {
    let link = format!("#race-{place}");
    let [first, second] = race.accesses.each_ref().map(words::place);
    let wheres = plain("div", Html::text(&first)).and(plain("div", Html::text(&second)));
    let mut headline = element("a", &[("href", &link)], Html::text(&words::headline(race)));
    headline.push(badge(race, options));
    let variable = race
        .variable
        .name
        .as_deref()
        .map_or_else(|| words::memory(&race.variable, race.address), name);
    let cells = [
        plain("td", Html::text(&place.to_string())),
        plain("td", tag(Rank::of(race))),
        plain("td", headline),
        of_class("td", "code", Html::text(&variable)),
        of_class("td", "code", wheres),
        plain("td", Html::text(&words::times(race.instances))),
    ];
    element(
        "tr",
        &[
            ("data-race", &place.to_string()),
            ("data-rank", Rank::of(race).word()),
        ],
        cells.into_iter().collect(),
    )
}

/// The class as a coloured word.
pub(super) fn tag(rank: Rank) -> Html {
    let class = format!("tag {}", rank.word());
    element(
        "span",
        &[("class", &class), ("title", rank.meaning())],
        Html::text(rank.word()),
    )
}

/// What has changed about a race since earlier runs.
pub(super) fn badge(race: &Race, options: ReportOptions) -> Html {
    match change_of(&race.id, options.since) {
        Some(change) => {
            let class = if change.is_loud {
                "badge loud"
            } else {
                "badge"
            };
            Html::text(" ").and(of_class("span", class, Html::text(&change.text)))
        }
        None => Html::default(),
    }
}

pub(super) fn gone(since: Option<&Comparison>) -> Html {
    let gone = since.map_or(&[][..], |since| &since.gone);
    let items = gone.iter().map(|race| {
        let line = format!(" {}", words::sentence(&race.headline));
        plain(
            "li",
            plain("code", Html::text(&name(&race.id))).and(Html::text(&line)),
        )
    });
    section("Gone since earlier runs", items.collect())
}

pub(super) fn suppressed(findings: &ProgramFindings) -> Html {
    let races = findings.races.iter().filter(|race| race.is_suppressed());
    let items = races.map(|race| {
        let suppression = race.suppressed.clone().unwrap_or_default();
        let until = suppression
            .until
            .map_or(String::new(), |until| format!(" until {}", name(&until)));
        let line = format!(
            " {}: {}{until}: {}",
            words::headline(race),
            words::sentence(&suppression.by),
            words::sentence(&suppression.reason)
        );
        plain(
            "li",
            plain("code", Html::text(&name(&race.id))).and(Html::text(&line)),
        )
    });
    section("Suppressed", items.collect())
}

pub(super) fn not_covered(findings: &ProgramFindings) -> Html {
    let items = findings.coverage.iter().map(|note| {
        let help = note
            .help
            .as_ref()
            .map_or(String::new(), |help| format!("; {}", words::sentence(help)));
        let line = format!(" {}{help}", words::sentence(&note.what));
        plain(
            "li",
            plain("b", Html::text(&name(&note.stage))).and(Html::text(&line)),
        )
    });
    section("Not covered", items.collect())
}

pub(super) fn stages(findings: &ProgramFindings) -> Html {
    let items = findings.stages.iter().map(|stage| {
        let counts = stage
            .counts
            .iter()
            .map(|(what, value)| format!("{} {}", number(*value), name(what)));
        let line = format!(" {}", counts.collect::<Vec<_>>().join(", "));
        plain(
            "li",
            plain("b", Html::text(&name(&stage.stage))).and(Html::text(&line)),
        )
    });
    section("What was done", items.collect())
}

/// A list with a heading, or nothing.
fn section(heading: &str, items: Html) -> Html {
    if items.is_empty() {
        return Html::default();
    }
    of_class(
        "section",
        "notes",
        plain("h2", Html::text(heading)).and(plain("ul", items)),
    )
}

pub(super) fn keys() -> Html {
    const KEYS: [(&str, &str); 6] = [
        ("j, k", "next and previous race"),
        ("/", "search"),
        ("1 to 6", "show or hide a class"),
        ("c", "copy the first command of this race"),
        ("t", "light or dark"),
        ("Esc", "show everything"),
    ];
    let items = KEYS.iter().map(|(key, what)| {
        plain(
            "span",
            plain("kbd", Html::text(key)).and(Html::text(&format!(" {what}"))),
        )
    });
    of_class("footer", "keys", items.collect())
}
