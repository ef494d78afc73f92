//! No, wrong and contradictory arguments: a helpful message, exit code 2.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use expect_test::expect;

use crate::transcript::{check, transcript, verdict};

#[test]
fn no_arguments_print_the_help_as_a_complaint() {
    let run = |arguments| verdict(Path::new("/"), arguments).output().unwrap();
    let (nothing, help) = (run(&[]), run(&["--help"]));
    assert_eq!(
        (nothing.status.code(), help.status.code()),
        (Some(2), Some(0))
    );
    assert!(nothing.stdout.is_empty() && help.stderr.is_empty());
    assert_eq!(nothing.stderr, help.stdout);
}

#[test]
fn misspelt_command() {
    check(
        &["completion"],
        &expect![[r#"
        --- stderr
        error: unrecognized subcommand 'completion'

          tip: a similar subcommand exists: 'completions'

        Usage: verdict [OPTIONS] <COMMAND>

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
}

#[test]
fn unknown_flag() {
    check(
        &["man", "--verbos"],
        &expect![[r#"
        --- stderr
        error: unexpected argument '--verbos' found

          tip: a similar argument exists: '--verbose'

        Usage: verdict man --verbose [COMMAND]...

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
}

/// What comes after the program is the program's; what comes before it is ours, and no program.
#[test]
fn a_misspelt_flag_is_not_taken_for_the_program() {
    for command in ["run", "exec", "record", "confirm", "classify", "detect"] {
        let arguments = [command, "--sede", "1", "--", "/bin/true"];
        let output = verdict(Path::new("/"), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with("error: unexpected argument '--sede' found\n"),
            "{command}: {said}"
        );
    }
}

#[test]
fn missing_argument() {
    check(
        &["completions"],
        &expect![[r#"
        --- stderr
        error: the following required arguments were not provided:
          <SHELL>

        Usage: verdict completions <SHELL>

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
}

#[test]
fn wrong_value() {
    check(
        &["completions", "csh"],
        &expect![[r#"
        --- stderr
        error: invalid value 'csh' for '<SHELL>'
          [possible values: bash, elvish, fish, powershell, zsh]

          tip: a similar value exists: 'zsh'

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
    check(
        &["man", "--color", "sometimes"],
        &expect![[r#"
        --- stderr
        error: invalid value 'sometimes' for '--color <WHEN>'
          [possible values: auto, always, never]

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
}

#[test]
fn contradictory_flags() {
    check(
        &["man", "-v", "-q"],
        &expect![[r#"
        --- stderr
        error: the argument '--verbose' cannot be used with '--quiet'

        Usage: verdict man --verbose [COMMAND]...

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
    check(
        &["man", "--dir", ".", "completions"],
        &expect![[r#"
        --- stderr
        error: the argument '--dir <FOLDER>' cannot be used with '[COMMAND]...'

        Usage: verdict man --dir <FOLDER> [COMMAND]...

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
}

#[test]
fn page_of_unknown_command() {
    check(
        &["man", "completions", "bash"],
        &expect![[r#"
        --- stderr
        error: `verdict completions` has no command `bash`
        help: `verdict --help` lists the commands
        --- exit 2
    "#]],
    );
}

#[test]
fn arguments_that_are_not_text() {
    let mut command = verdict(Path::new("/"), &["man"]);
    let output = command.arg(OsStr::from_bytes(b"\xff")).output().unwrap();
    expect![[r#"
        --- stderr
        error: invalid UTF-8 was detected in one or more arguments

        Usage: verdict man [OPTIONS] [COMMAND]...

        For more information, try '--help'.
        --- exit 2
    "#]]
    .assert_eq(&transcript(&output));
}
