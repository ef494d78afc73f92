//! Building small programs and asking other tools about them.
#![allow(
    dead_code,
    reason = "each test file uses a part, and each is a crate of its own"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A program in a folder of its own, which goes when this goes.
pub struct Built {
    pub folder: TempDir,
    pub program: PathBuf,
}

pub fn run(folder: &Path, command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The compiler goes by the ending of the file's name.
pub fn build(file: &str, text: &str, flags: &[&str]) -> Built {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(file), text).unwrap();
    let compiler = match file.rsplit('.').next().unwrap() {
        "c" => "gcc",
        "cc" => "g++",
        "rs" => "rustc",
        other => panic!("no compiler for {other}"),
    };
    run(
        folder.path(),
        compiler,
        &[&[file, "-g", "-o", "program"], flags].concat(),
    );
    let program = folder.path().join("program");
    Built { folder, program }
}

/// The instructions of a function: addresses and their text.
pub fn instructions(built: &Built, function: &str) -> Vec<(u64, String)> {
    let disassemble = format!("--disassemble={function}");
    let arguments = ["-d", "--no-show-raw-insn", &disassemble, "program"];
    let text = run(built.folder.path(), "objdump", &arguments);
    let parse = |line: &str| {
        let (address, text) = line.trim_start().split_once(":\t")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        Some((address, text.trim().to_owned()))
    };
    text.lines().filter_map(parse).collect()
}

/// The address of a symbol.
pub fn symbol(built: &Built, name: &str) -> u64 {
    let symbols = run(built.folder.path(), "nm", &["program"]);
    let line = symbols
        .lines()
        .find(|line| line.split(' ').next_back() == Some(name))
        .unwrap_or_else(|| panic!("no symbol {name} in\n{symbols}"));
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}
