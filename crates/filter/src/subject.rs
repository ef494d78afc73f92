//! What of a race a pattern can be about.

use std::str::FromStr;

use verdict_findings::{Access, Race};

use crate::Pattern;

/// What a pattern is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// The race's id.
    Race,
    /// The functions of both accesses and all their callers.
    Function,
    /// The source files of both accesses.
    File,
    /// The binaries of both accesses.
    Module,
    /// What was hit.
    Variable,
}

impl Subject {
    pub(crate) const WORDS: [&str; 5] = ["race", "function", "file", "module", "variable"];

    pub(crate) fn matches(self, pattern: &Pattern, race: &Race) -> bool {
        let any = |matches: &dyn Fn(&Access) -> bool| race.accesses.iter().any(matches);
        match self {
            Self::Race => pattern.matches(&race.id),
            Self::Function => any(&|access| function_matches(pattern, access)),
            Self::File => any(&|access| {
                let file = access.file.as_deref();
                file.is_some_and(|file| pattern.matches_path(file))
            }),
            Self::Module => any(&|access| pattern.matches_path(&access.module)),
            Self::Variable => {
                let name = race.variable.name.as_deref();
                name.is_some_and(|name| variable_matches(pattern, name))
            }
        }
    }
}

impl FromStr for Subject {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "race" => Ok(Self::Race),
            "function" => Ok(Self::Function),
            "file" => Ok(Self::File),
            "module" => Ok(Self::Module),
            "variable" => Ok(Self::Variable),
            _ => Err(()),
        }
    }
}

/// The function of the access or of any caller.
pub(crate) fn function_matches(pattern: &Pattern, access: &Access) -> bool {
    let own = access.function.iter();
    let callers = access
        .stack
        .iter()
        .filter_map(|frame| frame.function.as_ref());
    own.chain(callers)
        .any(|function| pattern.matches_function(function))
}

/// `stats` is also all of its fields and elements.
fn variable_matches(pattern: &Pattern, name: &str) -> bool {
    let prefixes = name
        .char_indices()
        .filter(|(_, letter)| matches!(letter, '.' | '['))
        .map(|(at, _)| &name[..at]);
    pattern.matches(name) || prefixes.into_iter().any(|prefix| pattern.matches(prefix))
}
