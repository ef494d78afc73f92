//! Text in columns.

/// Lines of at most `width` characters, broken between words where that is possible.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        } else if length > 0 || !line.is_empty() {
            line.push(' ');
            length += 1;
        }
        for character in word.chars() {
            if length == width {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            line.push(character);
            length += 1;
        }
    }
    lines.push(line);
    lines
}

/// The text with every line after the first indented, and all of them within the columns of a report.
pub(crate) fn hanging(first: &str, rest: &str, text: &str, columns: usize) -> String {
    let width = columns.saturating_sub(first.chars().count().max(rest.chars().count()));
    let mut result = String::new();
    for (index, line) in wrapped(text, width).iter().enumerate() {
        let indent = if index == 0 { first } else { rest };
        result.push_str(format!("{indent}{line}").trim_end());
        result.push('\n');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn breaks_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_wider(text in "[ a-cä]{0,60}", width in 1usize..20) {
            let lines = wrapped(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            let squeezed = |text: &str| text.replace(' ', "");
            prop_assert_eq!(squeezed(&lines.concat()), squeezed(&text));
        }
    }
}
