//! What is generated from the table of flags: manual pages and completions.

use std::fs;
use std::path::Path;

use crate::transcript::verdict;

fn stdout(arguments: &[&str]) -> String {
    let output = verdict(Path::new("/"), arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        for command in verdict_cli::command().get_subcommands() {
            assert!(
                script.contains(command.get_name()),
                "{shell}: {}",
                command.get_name()
            );
        }
        assert!(script.contains("color"), "{shell}");
    }
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    stdout(&["man", "--dir", dir]);
    let mut pages = vec!["verdict.1".to_owned()];
    fn walk(command: &clap::Command, name: &str, pages: &mut Vec<String>) {
        for child in command.get_subcommands() {
            let name = format!("{name}-{}", child.get_name());
            pages.push(format!("{name}.1"));
            walk(child, &name, pages);
        }
    }
    walk(&verdict_cli::command(), "verdict", &mut pages);
    for page in &pages {
        let text = fs::read_to_string(folder.path().join(page)).expect(page);
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    let written = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(written, pages.len(), "nothing but the pages");
    assert_eq!(
        stdout(&["man"]),
        fs::read_to_string(folder.path().join("verdict.1")).unwrap()
    );
    assert!(stdout(&["man"]).contains(".SH EXIT STATUS\n"));
    assert!(stdout(&["man", "man"]).contains(".SH EXAMPLES\n"));
}
