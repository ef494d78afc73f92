//! The two orders beside each other, the threads as lanes: a thread's steps start at a column of its own.

use verdict_findings::{Order, Race, Step, Verdict};

use crate::lanes::lanes;
use crate::plain::{name, shortened};
use crate::text::{COLUMNS, Paint, Tone};
use crate::words;
use crate::wrap::hanging;

const INDENT: &str = "  ";
const GAP: &str = "   ";
/// Steps in the middle of a longer order are left out; HTML has them all.
const STEPS_MAX: usize = 16;
const LANE_WIDTH: usize = 2;
/// Lanes further to the right would leave no room for text.
const LANES_MAX: usize = 4;

/// Nothing where no order was told.
pub(super) fn orders(race: &Race, verdict: &Verdict, paint: Paint) -> String {
    let orders = &verdict.orders;
    if orders.iter().all(|order| order.steps.is_empty()) {
        return String::new();
    }
    let lanes = lanes(race, orders);
    let mut text = "\n".to_owned();
    for pair in orders.chunks(2) {
        let gaps = GAP.len() * (pair.len() - 1);
        let width = (COLUMNS - INDENT.len() - gaps) / pair.len();
        let columns: Vec<Vec<String>> = pair
            .iter()
            .map(|order| column(order, &lanes, width))
            .collect();
        let headings = pair
            .iter()
            .map(|order| format!("{:width$}", words::order(order.order)));
        let headings = headings.collect::<Vec<_>>().join(GAP);
        text.push_str(&format!(
            "{INDENT}{}\n",
            paint(Tone::Heading, headings.trim_end())
        ));
        let height = columns.iter().map(Vec::len).max().unwrap_or(0);
        for row in 0..height {
            let cells = columns
                .iter()
                .map(|column| column.get(row).map_or("", String::as_str));
            let cells = cells
                .map(|cell| format!("{cell:width$}"))
                .collect::<Vec<_>>();
            text.push_str(&format!("{INDENT}{}\n", cells.join(GAP).trim_end()));
        }
    }
    text
}

fn column(order: &Order, lanes: &[u32], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let left_out = order.steps.len().saturating_sub(STEPS_MAX);
    let front = if left_out == 0 {
        order.steps.len()
    } else {
        STEPS_MAX / 2
    };
    for (index, step) in order.steps.iter().enumerate() {
        if index < front || index >= front + left_out {
            lines.extend(cell(step, lanes, width));
        } else if index == front {
            lines.push(format!("   ... {left_out} more steps"));
        }
    }
    if !order.ends.is_empty() {
        lines.extend(
            hanging("=> ", "   ", &words::sentence(&order.ends), width)
                .lines()
                .map(str::to_owned),
        );
    }
    lines
}

/// `T2 * locks queue->mutex (pipeline.c:52)`; the star marks the racing access.
fn cell(step: &Step, lanes: &[u32], width: usize) -> Vec<String> {
    let lane = lanes
        .iter()
        .position(|thread| *thread == step.thread)
        .unwrap_or(0);
    let mark = if step.racing { '*' } else { ' ' };
    let start = format!(
        "{:indent$}T{} {mark} ",
        "",
        step.thread,
        indent = lane.min(LANES_MAX) * LANE_WIDTH
    );
    let rest = " ".repeat(start.len());
    let mut text = words::sentence(&step.text);
    if let (Some(file), Some(line)) = (&step.file, step.line) {
        let base = file.rsplit('/').next().unwrap_or(file);
        text.push_str(&format!(" ({}:{line})", shortened(&name(base), 24)));
    }
    hanging(&start, &rest, &text, width)
        .lines()
        .map(str::to_owned)
        .collect()
}
