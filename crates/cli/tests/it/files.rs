//! Output files: whole or not there.

use std::fs;

use expect_test::expect;

use crate::transcript::{check, check_in, verdict};

#[test]
fn folder_that_does_not_exist() {
    check(
        &["man", "--dir", "nowhere"],
        &expect![[r#"
        --- stderr
        error: nowhere/verdict.1: cannot be written: No such file or directory (os error 2)
        help: the folder must exist
        --- exit 2
    "#]],
    );
}

#[test]
fn name_that_is_taken_by_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("verdict.1")).unwrap();
    check_in(
        folder.path(),
        &["man", "--dir", "."],
        &expect![[r#"
        --- stderr
        error: ./verdict.1: cannot be written: is a directory
        --- exit 2
    "#]],
    );
}

#[test]
fn verbose_says_what_was_written_and_quiet_does_not() {
    let stderr = |flag| {
        let folder = tempfile::tempdir().unwrap();
        let output = verdict(folder.path(), &["man", flag, "--dir", "."])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(stderr("-v").starts_with("wrote ./verdict.1\n"));
    assert_eq!(stderr("-q"), "");
}
