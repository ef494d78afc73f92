//! Real threaded programs without races: nobody hears of one.
//!
//! GNU `sort --parallel` is not among them. Its threads merge the nodes of a tree, each under the lock of its node alone
//! (`mergelines_node` of coreutils 9.1), and a child stores how far it is in its parent (`*node->dest = dest`) while another
//! thread reads just that and the lines behind it: races by the language's rules, harmless on x86-64.

use std::fs;
use std::process::Command;

use crate::tools::{build, text, tool};

/// Looks for races in a program, run where `input` is a file, and fails if there are any.
fn is_quiet(input: &str, program: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input"), input).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["detect", "--output", "report", "--"])
        .args(program)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let report = fs::read_to_string(folder.path().join("report")).unwrap_or_default();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{report}{said}");
    assert!(report.starts_with("no races in "), "{report}");
}

/// Lines in no order.
fn lines(count: u32) -> String {
    let mixed = (0..count).map(|line| line.wrapping_mul(2_654_435_761) % 1_000_003);
    mixed.map(|number| format!("line {number}\n")).collect()
}

#[test]
fn pigz() {
    is_quiet(
        &lines(30_000),
        &[&tool("pigz", "pigz"), "-p4", "-b", "128", "-k", "input"],
    );
}

#[test]
fn xz_with_threads() {
    is_quiet(
        &lines(10_000),
        &[
            &tool("xz", "xz-utils"),
            "-T2",
            "--block-size=50000",
            "-k",
            "input",
        ],
    );
}

#[test]
fn a_matrix_product_in_openmp() {
    let gcc = tool("gcc", "gcc");
    let program = build("matrix_openmp.c", &[&gcc, "-O2", "-g", "-fopenmp"]);
    is_quiet("", &[&text(&program)]);
}

#[test]
fn sqlite_in_serialised_mode() {
    let gcc = tool("gcc", "gcc");
    let _headers = tool("gcc", "libsqlite3-dev");
    let options = ["-O2", "-g", "-pthread", "-DROWS=400", "-lsqlite3"];
    let source = "../../../../../benches/detect/database.c";
    let program = build(source, &[&[gcc.as_str()][..], &options[..]].concat());
    is_quiet("", &[&text(&program)]);
}
