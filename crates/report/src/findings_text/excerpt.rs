//! The source around an access.

use verdict_findings::Access;

use super::underline;
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
        if number == own {
            text.push_str(&marked(source.line(own), access.column, width, paint));
        }
    }
    text
}

/// The line of marks below the line of the access.
fn marked(line: Option<&str>, column: Option<u32>, width: usize, paint: Paint) -> String {
    let marks = line
        .zip(column)
        .and_then(|(line, column)| underline::marks(line, column));
    let Some(marks) = marks else {
        return String::new();
    };
    let start = format!("    {:width$} | ", "");
    // A line that lost its middle has other columns.
    let room = COLUMNS - start.len();
    let whole = line.is_some_and(|line| source_line(line).chars().count() <= room);
    if !whole {
        return String::new();
    }
    format!("{start}{}\n", paint(Tone::Bad, &marks))
}
