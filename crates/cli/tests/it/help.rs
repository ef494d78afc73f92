//! The help of every command, found by walking the table of commands: none can be forgotten.

use std::path::Path;

use expect_test::expect_file;

use crate::transcript::verdict;

/// Calls `visit` with the words of every command: `[]`, `["man"]`, `["trace", "info"]`, ...
fn for_every_command(visit: &mut dyn FnMut(&[&str], &clap::Command)) {
    fn walk<'a>(
        command: &'a clap::Command,
        words: &mut Vec<&'a str>,
        visit: &mut dyn FnMut(&[&str], &clap::Command),
    ) {
        visit(words, command);
        for child in command
            .get_subcommands()
            .filter(|child| !child.is_hide_set())
        {
            words.push(child.get_name());
            walk(child, words, visit);
            words.pop();
        }
    }
    walk(&verdict_cli::command(), &mut Vec::new(), visit);
}

#[test]
fn help_of_every_command_is_as_recorded() {
    for_every_command(&mut |words, _| {
        let arguments = [words, &["--help"]].concat();
        let output = verdict(Path::new("/"), &arguments).output().unwrap();
        assert!(output.status.success());
        let name = [&["verdict"], words].concat().join("-");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/help");
        expect_file![folder.join(name + ".txt")]
            .assert_eq(&String::from_utf8(output.stdout).unwrap());
    });
}

#[test]
fn help_of_every_command_that_runs_has_examples() {
    for_every_command(&mut |words, command| {
        if command.has_subcommands() {
            return;
        }
        let text = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let example = format!("  verdict {}", words.join(" "));
        assert!(
            text.starts_with("Examples:\n") && text.contains(&example),
            "{words:?} has no examples"
        );
    });
}

#[test]
fn every_flag_of_every_command_is_explained() {
    for_every_command(&mut |words, command| {
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{words:?} {} has no help",
                argument.get_id()
            );
        }
    });
}

/// `verdict man | man -l -` -> `verdict man`.
fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
    let stages = lines.flat_map(|line| line.split(['|', '>'])).map(str::trim);
    let own = stages.filter(|stage| stage.starts_with("verdict "));
    own.map(ToOwned::to_owned).collect()
}

#[test]
fn every_example_is_a_valid_command() {
    for_every_command(&mut |_, command| {
        for example in examples(command) {
            let parsed = verdict_cli::command().try_get_matches_from(example.split_whitespace());
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    });
}

#[test]
fn table_of_flags_is_consistent() {
    verdict_cli::command().debug_assert();
}
