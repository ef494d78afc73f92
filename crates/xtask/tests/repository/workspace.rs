//! The workspace as cargo sees it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// One of our crates.
pub struct Crate {
    pub name: String,
    /// Relative to the root: `crates/cli`.
    pub folder: String,
    /// Our own crates that it needs to build (not those that only its tests need).
    pub builds_on: Vec<String>,
    /// Crates of others that it or its tests need.
    pub third_party: Vec<String>,
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap().to_owned()
}

/// The text of a file of the repository.
pub fn text(path: &str) -> String {
    let full = root().join(path);
    fs::read_to_string(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()))
}

/// All crates of the workspace.
pub fn crates() -> Vec<Crate> {
    let mut cargo = Command::new(env::var_os("CARGO").expect("tests are run by cargo"));
    cargo
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root());
    let output = cargo.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(read_crate)
        .collect()
}

fn read_crate(package: &Value) -> Crate {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let folder = manifest.parent().unwrap().strip_prefix(root()).unwrap();
    let (mut builds_on, mut third_party) = (Vec::new(), Vec::new());
    for dependency in package["dependencies"].as_array().unwrap() {
        let name = dependency["name"].as_str().unwrap().to_owned();
        if dependency["path"].is_null() {
            third_party.push(name);
        } else if dependency["kind"] != "dev" {
            builds_on.push(name);
        }
    }
    Crate {
        name: package["name"].as_str().unwrap().to_owned(),
        folder: folder.to_str().unwrap().to_owned(),
        builds_on,
        third_party,
    }
}

/// Every Rust source file of our crates, relative to the root.
pub fn sources() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root()).unwrap();
                found.push(relative.to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("crates"), &mut found);
    found.sort();
    found
}
