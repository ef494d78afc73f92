//! What is said of pairs of accesses that no lock keeps apart, by every command that looks for them.

use verdict_findings::Race;
use verdict_observe::is_system_source;

/// True if nothing of the program's own had a part in it: a thread of Rust's begins and ends with such accesses, and the locks that
/// protect them have no names.
pub(super) fn is_in_language(race: &Race) -> bool {
    race.accesses.iter().all(|access| {
        let file = access.file.as_deref();
        file.is_some_and(is_system_source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_findings::Access;

    #[test]
    fn what_a_language_does_by_itself_is_told_from_what_the_program_has_it_do() {
        let by = |file: &str| Access {
            file: Some(file.to_owned()),
            ..Access::default()
        };
        let own = || by("/home/me/shop.rs");
        let language = || by("/rustc/59807616/library/core/src/ptr/mod.rs");
        let is_in_language = |accesses| is_in_language(&Race::new("", accesses));
        assert!(!is_in_language([language(), own()]));
        assert!(is_in_language([language(), language()]));
        assert!(
            !is_in_language([language(), Access::default()]),
            "nobody knows"
        );
    }
}
