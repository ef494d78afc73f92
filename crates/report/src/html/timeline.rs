//! The two orders beside each other as timelines: time goes down, every thread has a lane.

use verdict_findings::{Order, ProgramFindings, Race, Step, Verdict};

use super::markup::{Html, element, of_class, plain};
use crate::lanes::lanes;
use crate::plain::source_line;
use crate::words;

pub(super) fn orders(race: &Race, verdict: &Verdict, findings: &ProgramFindings) -> Html {
    let told = verdict
        .orders
        .iter()
        .filter(|order| !order.steps.is_empty());
    let lanes = lanes(race, &verdict.orders);
    let timelines: Html = told
        .map(|order| timeline(order, &lanes, findings))
        .collect();
    if timelines.is_empty() {
        return Html::default();
    }
    plain("h3", Html::text("The two orders")).and(of_class("div", "orders", timelines))
}

fn timeline(order: &Order, lanes: &[u32], findings: &ProgramFindings) -> Html {
    let heading = plain("h4", Html::text(words::order(order.order)));
    let names: Html = lanes
        .iter()
        .enumerate()
        .map(|(lane, thread)| {
            let place = format!("grid-column:{};grid-row:1", lane + 1);
            element(
                "div",
                &[("class", "lane"), ("style", &place)],
                Html::text(&words::thread(findings, *thread)),
            )
        })
        .collect();
    let rails: Html = (1..=lanes.len())
        .map(|lane| {
            let place = format!("grid-column:{lane};grid-row:2/span {}", order.steps.len());
            element(
                "div",
                &[("class", "rail"), ("style", &place)],
                Html::default(),
            )
        })
        .collect();
    let steps: Html = order
        .steps
        .iter()
        .enumerate()
        .map(|(row, step)| box_of(step, row, lanes))
        .collect();
    let columns = format!(
        "grid-template-columns:repeat({},minmax(0,1fr))",
        lanes.len()
    );
    let grid = element(
        "div",
        &[("class", "lanes"), ("style", &columns)],
        names.and(rails).and(steps),
    );
    let mut content = heading.and(grid);
    if !order.ends.is_empty() {
        content.push(of_class(
            "p",
            "ends",
            Html::text(&words::sentence(&order.ends)),
        ));
    }
    of_class("div", "timeline", content)
}

/// A step in its lane. Its source line appears under the pointer or when it has the focus.
fn box_of(step: &Step, row: usize, lanes: &[u32]) -> Html {
    let lane = lanes
        .iter()
        .position(|thread| *thread == step.thread)
        .unwrap_or(0);
    let place = format!("grid-column:{};grid-row:{}", lane + 1, row + 2);
    let class = if step.racing { "step racing" } else { "step" };
    let mut content = Html::text(&words::sentence(&step.text));
    if let Some(at) = words::source_place(step.file.as_deref(), step.line, None) {
        content.push(of_class("span", "at", Html::text(&at)));
    }
    let source = step
        .source
        .as_deref()
        .map(|source| source_line(source).trim().to_owned());
    let tip = [step.function.as_deref().map(words::sentence), source];
    let tip: Vec<String> = tip.into_iter().flatten().collect();
    if !tip.is_empty() {
        let lines = tip.iter().map(String::as_str);
        content.push(element(
            "span",
            &[("class", "tip"), ("role", "tooltip")],
            Html::lines(lines),
        ));
    }
    element(
        "div",
        &[("class", class), ("style", &place), ("tabindex", "0")],
        content,
    )
}
