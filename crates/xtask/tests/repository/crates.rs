//! Every crate keeps the habits that a compiler does not check.

use crate::workspace::{Crate, crates, root, sources, text};

fn of_the_engine(ours: &Crate) -> bool {
    ours.folder.starts_with("crates/engine/")
}

#[test]
fn unsafe_code_is_forbidden_outside_the_engine() {
    for ours in crates().iter().filter(|ours| !of_the_engine(ours)) {
        for file in ["src/lib.rs", "src/main.rs"] {
            let path = format!("{}/{file}", ours.folder);
            if root().join(&path).exists() {
                assert!(
                    text(&path).contains("\n#![forbid(unsafe_code)]\n"),
                    "{path} does not forbid unsafe code"
                );
            }
        }
    }
}

#[test]
fn lints_of_the_workspace_hold_everywhere() {
    for ours in crates() {
        let manifest = text(&format!("{}/Cargo.toml", ours.folder));
        assert!(
            manifest.contains("[lints]\nworkspace = true\n"),
            "{} has lints of its own",
            ours.folder
        );
    }
}

#[test]
fn no_test_is_ignored() {
    // Written in two parts, or this file would find itself.
    let attribute = format!("#[{}", "ignore");
    for path in sources() {
        assert!(
            !text(&path).contains(&attribute),
            "{path} has an ignored test"
        );
    }
}
