//! Text of a program made fit to be printed: on one line, without what a terminal would obey, and not endless.

/// Names longer than this lose their middle. C++ has names of many kilobytes; their ends tell them apart.
const NAME_CHARS_MAX: usize = 120;

/// The text with line ends, control characters and what turns the direction of writing shown as escapes.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push(' '),
            '\n' => shown.push_str("\\n"),
            other if is_obeyed(other) => shown.extend(other.escape_default()),
            other => shown.push(other),
        }
    }
    shown
}

/// As [`one_line`], and of bounded length.
pub(crate) fn name(text: &str) -> String {
    shortened(&one_line(text), NAME_CHARS_MAX)
}

/// At most `chars_max` characters: the beginning, `...`, and the end.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    const GAP: &str = "...";
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let kept = chars_max.saturating_sub(GAP.len());
    let (front, back) = (kept - kept / 2, kept / 2);
    let beginning: String = text.chars().take(front).collect();
    let end: String = text.chars().skip(count - back).collect();
    format!("{beginning}{GAP}{end}")
}

/// A source line: tabs are as wide as in most editors, everything else as in [`one_line`].
pub(crate) fn source_line(text: &str) -> String {
    const TAB: usize = 4;
    let mut shown = String::new();
    for character in text.trim_end().chars() {
        if character == '\t' {
            let column = shown.chars().count();
            shown.extend(std::iter::repeat_n(' ', TAB - column % TAB));
        } else {
            shown.push_str(&one_line(&character.to_string()));
        }
    }
    shown
}

/// Whether a terminal, a browser or an editor would do something other than show it.
fn is_obeyed(character: char) -> bool {
    let turns_direction = matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
    );
    character.is_control() || turns_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        assert_eq!(
            one_line("a\nb\u{1b}[31m\u{202e}\t\0"),
            "a\\nb\\u{1b}[31m\\u{202e} \\u{0}"
        );
        assert_eq!(source_line("\tif (x)\t\n"), "    if (x)");
    }

    #[test]
    fn long_names_keep_their_ends() {
        let long = format!("begin{}end", "x".repeat(10_000));
        let shown = name(&long);
        assert_eq!(shown.chars().count(), NAME_CHARS_MAX);
        assert!(shown.starts_with("begin") && shown.ends_with("end"));
        assert_eq!(shortened("ä".repeat(9).as_str(), 7), "ää...ää");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
