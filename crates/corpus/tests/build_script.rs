//! The build script stops the build at a malformed truth comment, with file and line.

#[allow(dead_code)]
#[path = "../build.rs"]
mod build_script;

use std::fs;
use std::path::{Path, PathBuf};

use build_script::mistakes;

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (file, text) in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("has a folder")).expect("can be made");
        fs::write(path, text).expect("can be written");
    }
    folder
}

const GOOD: &str = "//~ verdict: race-free\n//~ topic: t\n//~ source: s\nint main(void) {}\n";

#[test]
fn the_programs_have_no_mistakes() {
    assert_eq!(
        mistakes(verdict_corpus::programs_dir()),
        Vec::<String>::new()
    );
}

#[test]
fn a_mistake_is_named_with_file_and_line() {
    let bad = GOOD.replace("topic: t", "tropic: t");
    let folder = folder(
        "mistakes",
        &[("a/good.c", GOOD), ("b/bad.rs", &bad), ("notes.txt", "//~")],
    );
    let expected = [
        "programs/b/bad.rs:1: `topic` is missing",
        "programs/b/bad.rs:2: `tropic` is not a key of a program; its keys are verdict, topic, \
         figure, args, exit, flags, twin, source",
    ];
    assert_eq!(mistakes(&folder), expected);
}

#[test]
fn a_missing_folder_is_a_mistake() {
    let found = mistakes(Path::new("no/such/folder"));
    assert!(
        found[0].starts_with("cannot list no/such/folder: "),
        "{found:?}"
    );
}
