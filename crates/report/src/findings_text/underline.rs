//! The marks under a source line that point to what a column is about.

use crate::plain::source_line;

/// Spaces up to a column of a line, then a mark under each letter of the word or operator there. None where the line has
/// no such column. Columns are bytes from 1, as compilers count.
pub(super) fn marks(line: &str, column: u32) -> Option<String> {
    let at = usize::try_from(column).ok()?.checked_sub(1)?;
    let (before, after) = (line.get(..at)?, line.get(at..)?);
    let width = word(after).chars().count();
    if width == 0 {
        return None;
    }
    // The same line up to there, so that tabs and escapes are as wide as above.
    let indent = source_line(&format!("{before}|")).chars().count() - 1;
    Some(format!("{}{}", " ".repeat(indent), "^".repeat(width)))
}

/// The word at the start of a text; or the operator, or the single letter.
fn word(text: &str) -> &str {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_operator = |letter: char| "+-*/%&|^=<>!~".contains(letter);
    let first = text.chars().next();
    let end = match first {
        Some(letter) if is_word(letter) => text.find(|letter| !is_word(letter)),
        Some(letter) if is_operator(letter) => text.find(|letter| !is_operator(letter)),
        Some(letter) if !letter.is_whitespace() => Some(letter.len_utf8()),
        _ => Some(0),
    };
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_operators_are_marked() {
        let line = "\tcount += list[i];";
        assert_eq!(marks(line, 2).as_deref(), Some("    ^^^^^"));
        assert_eq!(marks(line, 8).as_deref(), Some("          ^^"));
        assert_eq!(marks(line, 15).as_deref(), Some("                 ^"));
    }

    #[test]
    fn columns_that_are_not_there_are_not_marked() {
        assert_eq!(marks("x = 1;", 0), None);
        assert_eq!(marks("x = 1;", 2), None);
        assert_eq!(marks("x = 1;", 70), None);
        assert_eq!(marks("é = 1;", 2), None, "in the middle of a letter");
    }
}
