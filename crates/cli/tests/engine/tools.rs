//! Programs that the tests need: found, or a failure that says what to install.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program called `name`; the Debian package `package` has it.
pub fn tool(name: &str, package: &str) -> String {
    let stated = include_str!("../../../../packages.txt");
    assert!(
        stated.lines().any(|line| line == package),
        "packages.txt does not state {package}, which has `{name}`"
    );
    let search = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&search)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    let found = found.unwrap_or_else(|| {
        panic!("`{name}` is missing: install the Debian package {package} (packages.txt lists all)")
    });
    text(&found)
}

/// A path as an argument.
pub fn text(path: &Path) -> String {
    path.to_str()
        .expect("paths of the tests are UTF-8")
        .to_owned()
}

/// Builds `guests/SOURCE` with a compiler and its options.
pub fn build(source: &str, compiler: &[&str]) -> PathBuf {
    let name = Path::new(source).file_stem().unwrap().to_str().unwrap();
    build_as(name, source, compiler)
}

/// The same under another name: of a guest that several tests build, each in its own way, everyone needs one to themselves.
pub fn build_as(name: &str, source: &str, compiler: &[&str]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("engine-guests");
    fs::create_dir_all(&folder).unwrap();
    // Tests run at the same time: nobody may see half a file.
    let partial = tempfile::Builder::new()
        .prefix(name)
        .tempfile_in(&folder)
        .unwrap()
        .into_temp_path();
    let output = Command::new(compiler[0])
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/engine/guests")
                .join(source),
        )
        .arg("-o")
        .arg(&partial)
        .args(&compiler[1..])
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", compiler[0]));
    assert!(
        output.status.success(),
        "{source}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let built = folder.join(name);
    partial.persist(&built).unwrap();
    built
}

/// Builds a C guest.
pub fn build_c(source: &str) -> PathBuf {
    let gcc = tool("gcc", "gcc");
    build(source, &[&gcc, "-O1", "-g", "-pthread", "-w", "-lm"])
}
