//! README.md and the guide in `docs` show what the commands print today: their sessions are run and compared.
//!
//! A session is a `console` block: `$ command`, then what it prints (both streams). It runs in a scratch folder that
//! looks like the checkout, with the binary under test as `verdict` and as `cargo verdict`.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect_file;

/// Tests, builds and installations: not run here, but by CI or not at all.
const NOT_RUN: [&str; 2] = ["cargo xtask ", "cargo install --path crates/cli"];

/// What a reader has beside them when they type the commands.
const VISIBLE: [&str; 2] = ["examples", "programs"];

#[test]
fn sessions_of_the_readme_are_up_to_date() {
    check(&checkout().join("README.md"));
}

#[test]
fn sessions_of_the_guide_are_up_to_date() {
    for page in pages() {
        check(&page);
    }
}

#[test]
fn guide_has_every_page_and_no_other() {
    let summary = std::fs::read_to_string(checkout().join("docs/SUMMARY.md")).unwrap();
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap();
        let link = format!("({name})");
        assert!(
            name == "SUMMARY.md" || summary.contains(&link),
            "{name} is not in the summary"
        );
    }
    for link in summary.split("](").skip(1) {
        let name = link.split(')').next().unwrap();
        assert!(
            checkout().join("docs").join(name).exists(),
            "there is no page {name}"
        );
    }
}

fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(checkout().join("docs")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|is| is == "md"))
        .collect();
    pages.sort();
    pages
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    for shell in ["```sh", "```bash", "```shell"] {
        assert!(
            !text.contains(shell),
            "{}: use `console`, so that the commands are tested",
            path.display()
        );
    }
    expect_file![path].assert_eq(&with_sessions_run(&text));
}

fn checkout() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap().to_owned()
}

/// The text with what its commands print put in place of what it says they print.
fn with_sessions_run(text: &str) -> String {
    let mut folder = Scratch::new();
    let mut result = String::new();
    let (mut inside_console, mut skipping) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside_console = line == "```console";
            skipping = false;
        }
        if skipping && !line.starts_with("$ ") {
            continue;
        }
        writeln!(result, "{line}").unwrap();
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside_console) else {
            continue;
        };
        skipping = !NOT_RUN.iter().any(|prefix| command.starts_with(prefix));
        if skipping {
            result.push_str(&folder.run(command));
        }
    }
    result
}

/// The folder in which a session takes place.
struct Scratch {
    folder: tempfile::TempDir,
    /// What `$?` is for the next command.
    status: i32,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in VISIBLE {
            symlink(checkout().join(name), folder.path().join(name)).unwrap();
        }
        Self { folder, status: 0 }
    }

    fn run(&mut self, command: &str) -> String {
        let binary = Path::new(env!("CARGO_BIN_EXE_verdict"));
        // Compilers are those of the machine; Rust's is beside the cargo that runs this test.
        let cargo = PathBuf::from(std::env::var_os("CARGO").expect("tests are run by cargo"));
        let folders = [binary, &cargo].map(|program| program.parent().unwrap().display());
        let path = format!("{}:{}:/usr/bin:/bin", folders[0], folders[1]);
        let command = command.replace("cargo verdict ", "verdict ");
        let script = format!("exec 2>&1; (exit {}); {command}", self.status);
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        self.status = output.status.code().expect("ended by a signal");
        String::from_utf8(output.stdout).unwrap()
    }
}
