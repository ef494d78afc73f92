//! The instructions of README.md and CONTRIBUTING.md can be followed. (What `verdict` commands print is
//! compared by the tests of the command line.)

use std::process::Command;

use crate::markdown::typed_commands;
use crate::workspace::text;

#[test]
fn every_xtask_command_exists() {
    for file in ["README.md", "CONTRIBUTING.md"] {
        for command in typed_commands(&text(file)) {
            let Some(task) = command.strip_prefix("cargo xtask ") else {
                continue;
            };
            let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
            // With `--help` the arguments before it are checked and nothing is run.
            let output = xtask
                .args(task.split_whitespace())
                .arg("--help")
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{file}: `{command}` does not exist"
            );
        }
    }
}

#[test]
fn continuous_integration_runs_the_command_of_the_readme() {
    let test_command = "cargo xtask ci";
    assert!(typed_commands(&text("README.md")).contains(&test_command));
    assert_eq!(text(".ci/run").lines().last(), Some(test_command));
}

#[test]
fn every_package_is_stated_once() {
    let packages = text("packages.txt");
    let mut names: Vec<&str> = packages
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let stated = names.len();
    assert!(
        names
            .iter()
            .all(|name| !name.is_empty() && !name.contains(char::is_whitespace))
    );
    names.sort();
    names.dedup();
    assert_eq!(names.len(), stated, "a package is stated twice");
}
