//! `verdict detect --memory-orders`: what a relaxed operation orders is for the processor to say, or for the source.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tools::build_as;

/// How many races a program of `programs` has, by one kind of orders.
fn races(program: &str, compiler: &[&str], orders: &str) -> usize {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let source = source.join(program);
    let name = format!("orders-{}", source.file_stem().unwrap().display());
    let program = build_as(&name, source.to_str().unwrap(), compiler);
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("races.json");
    let output = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["detect", "--format", "json", "--fail-on", "never"])
        .args(["--memory-orders", orders, "--output"])
        .arg(&report)
        .arg("--")
        .arg(program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let written = std::fs::read(&report).unwrap_or_else(|error| panic!("{error}: {said}"));
    let document: Value = serde_json::from_slice(&written).unwrap();
    document["races"].as_array().unwrap().len()
}

const CPP: [&str; 4] = ["g++", "-O2", "-g", "-pthread"];

#[test]
fn what_is_published_by_relaxed_operations_races_by_the_source_alone() {
    let program = "effects/relaxed_publish.cpp";
    assert_eq!(races(program, &CPP, "machine"), 0);
    assert_eq!(races(program, &CPP, "source"), 1);
}

#[test]
fn what_is_published_by_release_and_acquire_does_not_race() {
    let program = "racefree/atomics_release_acquire.cpp";
    for orders in ["machine", "source"] {
        assert_eq!(races(program, &CPP, orders), 0, "{orders}");
    }
}

/// The processor needs no instruction for these fences, so that nobody sees them.
#[test]
fn fences_around_relaxed_operations_hold_by_the_processor_alone() {
    let program = "racefree/atomics_orders.cpp";
    assert_eq!(races(program, &CPP, "machine"), 0);
    assert!(races(program, &CPP, "source") > 0);
}
