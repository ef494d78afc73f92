//! What text reports share: tones, numbers, plurals, and lines that fit a terminal.

/// Lines are made to fit this many columns where names allow it.
pub(crate) const COLUMNS: usize = 80;

/// What a piece of text is to the reader. Whoever prints decides on colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Headings and what matters most.
    Heading,
    /// Races.
    Bad,
    /// No races.
    Good,
    /// What matters least.
    Dim,
}

/// Gives a piece of text its colour, or none.
pub(crate) type Paint<'a> = &'a dyn Fn(Tone, &str) -> String;

/// `1,234,567`
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

/// `1 race`, `2 races`
pub(crate) fn count(value: u64, one: &str) -> String {
    let ending = if value == 1 { "" } else { "s" };
    format!("{} {one}{ending}", number(value))
}

/// `left` and `right` on one line, `right` at the right margin; on two lines where they do not fit.
pub(crate) fn spread(left: &str, right: &str, paint: Paint) -> String {
    let (left_width, right_width) = (left.chars().count(), right.chars().count());
    let dim = paint(Tone::Dim, right);
    match COLUMNS.checked_sub(left_width + right_width) {
        Some(gap @ 2..) => format!("{left}{:gap$}{dim}\n", ""),
        _ => format!(
            "{left}\n{:>1$}{dim}\n",
            "",
            COLUMNS.saturating_sub(right_width)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three() {
        let shown: Vec<String> = [0, 999, 1000, 12_345_678].map(number).to_vec();
        assert_eq!(shown, ["0", "999", "1,000", "12,345,678"]);
    }

    #[test]
    fn lines_fit_or_are_two() {
        let plain = |_: Tone, text: &str| text.to_owned();
        let line = spread("left", "right", &plain);
        assert_eq!(line.len(), COLUMNS + 1);
        let lines = spread(&"x".repeat(75), "right", &plain);
        assert_eq!(lines.lines().map(str::len).collect::<Vec<_>>(), [75, 80]);
    }
}
