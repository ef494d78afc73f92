//! Patterns for names: `*` stands for any letters, `?` for one. Everything else stands for itself, also in names like
//! `operator[]`.

use std::fmt;

/// A pattern for a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(String);

impl Pattern {
    /// Any text is a pattern.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether the whole name is like this.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        glob(&pattern, &name)
    }

    /// Whether a path is like this, or ends so at a `/`: `list.c` matches `src/list.c`.
    #[must_use]
    pub fn matches_path(&self, path: &str) -> bool {
        if self.matches(path) {
            return true;
        }
        let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
        ends.into_iter().any(|end| self.matches(end))
    }

    /// Whether a function is like this, with or without its parameters: `shop::sell` matches `shop::sell(int)`.
    #[must_use]
    pub fn matches_function(&self, function: &str) -> bool {
        let bare = function.split('(').next().unwrap_or(function);
        self.matches(function) || (!bare.is_empty() && self.matches(bare))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Goes back to the last star only, so that no pattern takes longer than the product of both lengths.
fn glob(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&letter) if letter == '?' || letter == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&letter| letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_question_marks() {
        let matches = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(matches("stats.*", "stats.hits"));
        assert!(matches("*", ""));
        assert!(matches("a*b*c", "a-b-b-c"));
        assert!(matches("head[?]", "head[3]"));
        assert!(!matches("head[?]", "head[13]"));
        assert!(!matches("stats", "stats.hits"));
        assert!(!matches("", "x"));
    }

    #[test]
    fn paths_match_by_their_end() {
        let pattern = Pattern::new("src/*.c");
        assert!(pattern.matches_path("/home/me/src/list.c"));
        assert!(!pattern.matches_path("/home/me/mysrc/list.c"));
        assert!(Pattern::new("libz.so*").matches_path("/usr/lib/libz.so.1.2"));
    }

    #[test]
    fn functions_match_without_parameters() {
        let pattern = Pattern::new("shop::sell");
        assert!(pattern.matches_function("shop::sell(int)"));
        assert!(!pattern.matches_function("shop::sell_all(int)"));
        assert!(Pattern::new("shop::sell(int)").matches_function("shop::sell(int)"));
    }

    /// The obvious definition.
    fn slow_twin(pattern: &[char], name: &[char]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                slow_twin(&pattern[1..], name)
                    || (!name.is_empty() && slow_twin(pattern, &name[1..]))
            }
            (Some(p), Some(n)) if *p == '?' || p == n => slow_twin(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn the_fast_way_is_the_obvious_one(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(glob(&pattern, &name), slow_twin(&pattern, &name));
        }
    }
}
