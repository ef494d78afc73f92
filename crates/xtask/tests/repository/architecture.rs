//! ARCHITECTURE.md names what exists, all of it, and in the order in which crates build on each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown::{first_column, quoted, section};
use crate::workspace::{crates, root, text};

#[test]
fn names_only_what_exists() {
    let architecture = text("ARCHITECTURE.md");
    let packages: BTreeSet<String> = crates().into_iter().map(|ours| ours.name).collect();
    for name in quoted(&architecture) {
        if looks_like_a_path(name) {
            assert!(
                root().join(name).exists(),
                "ARCHITECTURE.md: there is no `{name}`"
            );
        }
        if name.starts_with("verdict-") {
            assert!(
                packages.contains(name),
                "ARCHITECTURE.md: there is no crate `{name}`"
            );
        }
    }
}

/// `crates/cli`, `packages.txt`; not `a | b`, `T0|w(V1)`, `/proc/self/exe`, `#![forbid(unsafe_code)]`.
fn looks_like_a_path(name: &str) -> bool {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let extension = [".rs", ".md", ".toml", ".txt"]
        .iter()
        .any(|suffix| name.ends_with(suffix));
    plain && !name.starts_with('/') && (name.contains('/') || extension)
}

#[test]
fn names_every_crate_in_building_order() {
    let architecture = text("ARCHITECTURE.md");
    let listed = first_column(section(&architecture, "## Crates"));
    let place: BTreeMap<&str, usize> = listed
        .iter()
        .enumerate()
        .map(|(at, name)| (*name, at))
        .collect();
    let crates = crates();
    let folders: BTreeMap<&str, &str> = crates
        .iter()
        .map(|ours| (ours.name.as_str(), ours.folder.as_str()))
        .collect();
    for ours in &crates {
        let own_place = place.get(ours.folder.as_str());
        let own_place =
            own_place.unwrap_or_else(|| panic!("ARCHITECTURE.md: `{}` is missing", ours.folder));
        for needed in &ours.builds_on {
            let needed = folders[needed.as_str()];
            assert!(
                place[needed] < *own_place,
                "`{}` builds on `{needed}`, which is listed below it",
                ours.folder
            );
        }
    }
    assert_eq!(
        listed.len(),
        crates.len(),
        "ARCHITECTURE.md: each crate once"
    );
}

#[test]
fn gives_the_reason_for_every_dependency() {
    let architecture = text("ARCHITECTURE.md");
    let explained: BTreeSet<&str> = first_column(section(&architecture, "## Dependencies"))
        .into_iter()
        .collect();
    let crates = crates();
    let used: BTreeSet<&str> = crates
        .iter()
        .flat_map(|ours| &ours.third_party)
        .map(String::as_str)
        .collect();
    assert_eq!(
        explained, used,
        "left: in ARCHITECTURE.md, right: in the manifests"
    );
}
