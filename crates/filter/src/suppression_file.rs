//! The text of a suppression file, a rule a line:
//!
//! ```text
//! variable stats.hits  until 2027-06-30  because the counter is approximate
//! ```

use std::fmt;

use crate::subject::Subject;
use crate::{Pattern, Rule};

/// Lines of a suppression file that make no sense, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuppressionError {
    /// The file.
    pub file: String,
    /// Each with its line, from 1. Never empty.
    pub problems: Vec<(usize, SuppressionProblem)>,
}

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum SuppressionProblem {
    /// Not a word that can stand there.
    #[error("`{0}` is not known here; a rule is made of {known}, `until` and `because`", known = Subject::WORDS.map(|word| format!("`{word}`")).join(", "))]
    UnknownWord(String),
    /// A word without its pattern.
    #[error("`{0}` needs a pattern after it")]
    NoPattern(String),
    /// A rule that would match every race.
    #[error("the rule does not say which races it is about")]
    NoCriterion,
    /// Not a day.
    #[error("`{0}` is not a day; days are written like 2027-01-31")]
    NotADay(String),
    /// Two days.
    #[error("`until` is there twice")]
    UntilTwice,
    /// Nobody will know why.
    #[error("the rule does not end with `because` and a reason")]
    NoReason,
    /// A quote that does not end.
    #[error("the quote does not end")]
    OpenQuote,
}

impl fmt::Display for SuppressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, problem)) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{line}: {problem}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for SuppressionError {}

pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Rule>, SuppressionError> {
    let mut rules = Vec::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_rule(index + 1, line) {
            Ok(rule) => rules.push(rule),
            Err(problem) => problems.push((index + 1, problem)),
        }
    }
    if problems.is_empty() {
        Ok(rules)
    } else {
        let file = file.to_owned();
        Err(SuppressionError { file, problems })
    }
}

fn parse_rule(number: usize, line: &str) -> Result<Rule, SuppressionProblem> {
    let mut rule = Rule {
        line: number,
        until: None,
        reason: String::new(),
        criteria: Vec::new(),
    };
    let mut rest = line;
    loop {
        let (word, after) = next_word(rest)?.ok_or(SuppressionProblem::NoReason)?;
        rest = after;
        match word.as_str() {
            "because" => break,
            "until" => {
                if rule.until.is_some() {
                    return Err(SuppressionProblem::UntilTwice);
                }
                let (day, after) = next_word(rest)?.ok_or(SuppressionProblem::NoPattern(word))?;
                rest = after;
                let parsed = day.parse();
                rule.until = Some(parsed.map_err(|()| SuppressionProblem::NotADay(day))?);
            }
            _ => {
                let subject: Subject = word
                    .parse()
                    .map_err(|()| SuppressionProblem::UnknownWord(word.clone()))?;
                let (pattern, after) =
                    next_word(rest)?.ok_or(SuppressionProblem::NoPattern(word))?;
                rest = after;
                rule.criteria.push((subject, Pattern::new(pattern)));
            }
        }
    }
    rule.reason = rest.trim().to_owned();
    if rule.reason.is_empty() {
        return Err(SuppressionProblem::NoReason);
    }
    if rule.criteria.is_empty() {
        return Err(SuppressionProblem::NoCriterion);
    }
    Ok(rule)
}

/// A word and what follows it. Words with spaces in them are in double quotes.
fn next_word(text: &str) -> Result<Option<(String, &str)>, SuppressionProblem> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let (word, rest) = quoted
            .split_once('"')
            .ok_or(SuppressionProblem::OpenQuote)?;
        return Ok(Some((word.to_owned(), rest)));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    Ok((!word.is_empty()).then(|| (word.to_owned(), rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rule_has_patterns_a_day_and_a_reason() {
        let rules = parse(
            "f",
            "function \"shop::sell(int, int)\" variable a* until 2027-01-31 because of \"this\"",
        )
        .unwrap();
        let rule = &rules[0];
        let criteria: Vec<String> = rule
            .criteria
            .iter()
            .map(|(_, pattern)| pattern.to_string())
            .collect();
        assert_eq!(criteria, ["shop::sell(int, int)", "a*"]);
        assert_eq!(rule.until.unwrap().to_string(), "2027-01-31");
        assert_eq!(rule.reason, "of \"this\"");
    }

    #[test]
    fn all_mistakes_are_told_with_their_lines() {
        let text = "\
# fine
variable x because fine
variabel x because
function
race 1a until tomorrow because
because why not
module libz.so
file \"a.c because
race 1 until 2027-01-01 until 2027-01-02 because
file a.c because
variable until
";
        let error = parse("known.txt", text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\
known.txt:3: `variabel` is not known here; a rule is made of `race`, `function`, `file`, `module`, `variable`, `until` and `because`
known.txt:4: `function` needs a pattern after it
known.txt:5: `tomorrow` is not a day; days are written like 2027-01-31
known.txt:6: the rule does not say which races it is about
known.txt:7: the rule does not end with `because` and a reason
known.txt:8: the quote does not end
known.txt:9: `until` is there twice
known.txt:10: the rule does not end with `because` and a reason
known.txt:11: the rule does not end with `because` and a reason"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(race|variable|until|because|\"|#|[a-z*]| |\n|2027-01-31){0,40}") {
            match parse("f", &text) {
                Ok(rules) => prop_assert!(rules.iter().all(|rule| !rule.reason.is_empty())),
                Err(error) => prop_assert!(!error.problems.is_empty()),
            }
        }
    }
}
