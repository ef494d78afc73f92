//! The source around an access.

use verdict_findings::Access;

use crate::plain::{shortened, source_line};
use crate::text::{COLUMNS, Paint, Tone};

/// How many lines are shown on either side.
const CONTEXT: u32 = 2;

/// The lines with their numbers; the line of the access is marked, and its column if it is known.
pub(super) fn lines(access: &Access, paint: Paint) -> String {
    let (Some(source), Some(own)) = (&access.source, access.line) else {
        return String::new();
    };
    let numbers = own.saturating_sub(CONTEXT)..=own.saturating_add(CONTEXT);
    let shown: Vec<(u32, &str)> = numbers
        .filter_map(|number| Some((number, source.line(number)?)))
        .collect();
    let width = shown
        .last()
        .map_or(1, |(number, _)| number.to_string().len());
    let mut text = String::new();
    for (number, line) in shown {
        let mark = if number == own { '>' } else { ' ' };
        let start = format!("  {mark} {number:>width$} | ");
        let room = COLUMNS - start.len();
        let line = format!("{start}{}", shortened(&source_line(line), room));
        let tone = if number == own {
            Tone::Heading
        } else {
            Tone::Dim
        };
        text.push_str(&paint(tone, line.trim_end()));
        text.push('\n');
    }
    text
}
