//! What is new, worse or gone since earlier runs.

use verdict_history::{Change, Comparison};

use crate::plain::name;
use crate::text::{COLUMNS, Paint, Tone};
use crate::wrap::hanging;

/// Beside a race: `new`, or, loudly, that it was thought to be harmless once.
pub(super) fn of_race(id: &str, since: Option<&Comparison>) -> Option<(Tone, String)> {
    Some(match since?.changes.get(id)? {
        Change::New => (Tone::Heading, "new: not seen in earlier runs".to_owned()),
        Change::StillThere => (Tone::Dim, "seen in earlier runs, too".to_owned()),
        Change::Worse { before } => (
            Tone::Bad,
            format!("WORSE than before: it was {before} until now"),
        ),
        Change::Better { before } => (Tone::Dim, format!("it was {before} in an earlier run")),
    })
}

pub(super) fn gone(since: Option<&Comparison>, paint: Paint) -> String {
    let gone = since.map_or(&[][..], |since| &since.gone);
    if gone.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint(Tone::Heading, "gone since earlier runs"));
    for race in gone {
        let line = format!(
            "{}: {}",
            name(&race.id),
            crate::words::sentence(&race.headline)
        );
        text.push_str(&hanging("  ", "    ", &line, COLUMNS));
    }
    text
}
