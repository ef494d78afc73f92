//! What is new, worse or gone since earlier runs.

use verdict_history::{Change, Comparison};

use crate::plain::name;
use crate::text::{COLUMNS, Paint, Tone};
use crate::wrap::hanging;

/// What is said of a change.
pub(crate) struct ChangeWords {
    pub(crate) text: String,
    /// Whether nobody may overlook it.
    pub(crate) is_loud: bool,
}

/// Beside a race: that it is new, or, loudly, that it was thought to be harmless once.
pub(crate) fn of_race(id: &str, since: Option<&Comparison>) -> Option<ChangeWords> {
    let (text, is_loud) = match since?.changes.get(id)? {
        Change::New => ("new: not seen in earlier runs".to_owned(), false),
        Change::StillThere => ("seen in earlier runs, too".to_owned(), false),
        Change::Worse { before } => (
            format!("WORSE than before: it was {} until now", name(before)),
            true,
        ),
        Change::Better { before } => (format!("it was {} in an earlier run", name(before)), false),
    };
    Some(ChangeWords { text, is_loud })
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
