//! Guest programs of tests, built where they are needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::transcript::{transcript, verdict};

/// A program in a folder of its own.
pub struct Guest {
    folder: TempDir,
    source: String,
}

impl Guest {
    /// Builds C with debug information.
    pub fn c(source: &str) -> Self {
        Self::build("guest.c", source, &["-pthread"])
    }

    /// Builds assembly without any library: every instruction of it is known.
    pub fn assembly(source: &str) -> Self {
        Self::build("guest.s", source, &["-static", "-nostdlib"])
    }

    /// Builds C that calls a shared library, which lies beside it.
    pub fn c_with_library(source: &str, library: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("library.c"), library).unwrap();
        let flags = ["-shared", "-fPIC", "-o", "libguest.so", "library.c"];
        gcc(folder.path(), &flags);
        let flags = ["-L.", "-lguest", "-Wl,-rpath,$ORIGIN"];
        Self::build_in(folder, "guest.c", source, &flags)
    }

    fn build(name: &str, source: &str, flags: &[&str]) -> Self {
        Self::build_in(TempDir::new().unwrap(), name, source, flags)
    }

    fn build_in(folder: TempDir, name: &str, source: &str, flags: &[&str]) -> Self {
        fs::write(folder.path().join(name), source).unwrap();
        gcc(
            folder.path(),
            &[&["-g", "-O0", "-o", "guest", name], flags].concat(),
        );
        let source = source.to_owned();
        Self { folder, source }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `verdict exec -- ./guest ARGUMENTS`, to be run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        verdict(
            self.folder(),
            &[&["exec", "--", "./guest"], arguments].concat(),
        )
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Everything printed, without the name of the folder.
    pub fn show(&self, output: &Output) -> String {
        let folder = self.folder().canonicalize().unwrap();
        transcript(output).replace(&format!("{}/", folder.display()), "")
    }

    /// `guest.c:LINE` of the line that holds `marker`.
    pub fn line_of(&self, marker: &str) -> String {
        let before = self.source.split_once(marker).expect(marker).0;
        format!("guest.c:{}", before.lines().count().max(1))
    }
}

fn gcc(folder: &Path, arguments: &[&str]) {
    let output = Command::new("gcc")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
