//! Where output goes, in which colours, and what happens when it cannot go there.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use expect_test::expect;

use crate::transcript::{check, transcript, verdict};

#[test]
fn version() {
    check(
        &["--version"],
        &expect![[r#"
        --- stdout
        verdict 0.1.0
        --- exit 0
    "#]],
    );
}

#[test]
fn colour_is_used_when_asked_for_and_not_in_pipes() {
    check(
        &["man", "nothing"],
        &expect![[r#"
        --- stderr
        error: `verdict` has no command `nothing`
        help: `verdict --help` lists the commands
        --- exit 2
    "#]],
    );
    check(
        &["man", "nothing", "--color", "always"],
        &expect![[r#"
            --- stderr
            ^[[1;31merror:^[[0m `verdict` has no command `nothing`
            ^[[36mhelp:^[[0m `verdict --help` lists the commands
            --- exit 2
        "#]],
    );
    check(
        &["man", "nothing", "--color", "never"],
        &expect![[r#"
        --- stderr
        error: `verdict` has no command `nothing`
        help: `verdict --help` lists the commands
        --- exit 2
    "#]],
    );
}

/// The pipe has no reader from the start, so that writing must fail.
#[test]
fn reader_that_goes_away_ends_the_command_quietly() {
    for arguments in [&["completions", "bash"][..], &["man"], &["--help"]] {
        let mut command = verdict(Path::new("/"), arguments);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = command
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        expect![[r#"
            --- signal 13
        "#]]
        .assert_eq(&transcript(&output));
    }
}

#[test]
fn full_disk_is_reported() {
    for arguments in [&["completions", "bash"][..], &["--help"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = verdict(Path::new("/"), arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        expect![[r#"
            --- stderr
            error: standard output: cannot be written: No space left on device (os error 28)
            --- exit 2
        "#]]
        .assert_eq(&transcript(&output));
    }
}

#[test]
fn closed_standard_error_does_not_hide_the_exit_code() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut child = verdict(Path::new("/"), &["man", "nothing"])
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = verdict(Path::new("/"), &["man", "nothing"])
        .stderr(writer)
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
