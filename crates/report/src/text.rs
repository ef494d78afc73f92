//! What text reports share: tones, numbers and plurals.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three() {
        let shown: Vec<String> = [0, 999, 1000, 12_345_678].map(number).to_vec();
        assert_eq!(shown, ["0", "999", "1,000", "12,345,678"]);
    }
}
