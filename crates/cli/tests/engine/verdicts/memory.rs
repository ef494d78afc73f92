//! Memory errors that nothing comes of: they are seen in what the other order does, and there only.

use std::path::Path;

use serde_json::Value;

use super::evidence::{replay, replay_looking};
use super::guests::{judged, judged_in};

const GUEST: &str = "judged_heap.c";

/// The first race of a case of the guest must lead to a memory error; not so its harmless twin.
fn memory_error(which: &str) -> Value {
    let twin = judged(GUEST, &[], &[which, "safe"]).remove(0);
    assert_eq!(twin["class"], "k-witness-harmless", "{which} safe");
    assert_eq!(twin["consequence"], Value::Null, "{which} safe");
    let (_folder, races) = judged_in(GUEST, &[], &[which]);
    let race = &races[0];
    assert_eq!(race["class"], "spec-violated", "{which}");
    assert_eq!(race["consequence"]["kind"], "memory-error", "{which}");
    // Nothing comes of it: the evidence ends like any other run.
    let recording = race["evidence"][0].as_str().unwrap();
    let first = replay(Path::new(recording));
    assert_eq!(first.0, Some(0), "{which}: {}", first.2);
    assert_eq!(first.1, b"done\n", "{which}");
    assert!(replay(Path::new(recording)) == first, "{which}");
    // Who looks sees it, and where.
    let looked = replay_looking(Path::new(recording));
    assert_eq!((looked.0, &looked.1), (first.0, &first.1), "{which}");
    let place = race["consequence"]["stack"][0]["function"]
        .as_str()
        .unwrap();
    assert!(
        looked.2.starts_with("memory error: "),
        "{which}: {}",
        looked.2
    );
    assert!(looked.2.contains(place), "{which}: {}", looked.2);
    race["consequence"].clone()
}

fn functions(frames: &Value) -> Vec<&str> {
    let frames = frames.as_array().unwrap().iter();
    frames
        .filter_map(|frame| frame["function"].as_str())
        .collect()
}

#[test]
fn a_freed_block_that_is_read_by_a_race_on_a_pointer_elsewhere() {
    let consequence = memory_error("list");
    assert_eq!(
        consequence["detail"],
        "use after free: thread 1 reads from a block that thread 0 has freed"
    );
    assert_eq!(consequence["thread"], 1);
    assert_eq!(functions(&consequence["stack"])[0], "walk");
    let block = &consequence["block"];
    assert_eq!(block["size"], 24);
    assert_eq!(functions(&block["freed_at"])[..2], ["cut", "main"]);
    assert_eq!(functions(&block["allocated_at"])[0], "main");
}

#[test]
fn a_block_that_two_threads_free() {
    let consequence = memory_error("twice");
    assert_eq!(
        consequence["detail"],
        "double free: thread 1 frees a block that thread 0 has freed"
    );
    assert_eq!(
        functions(&consequence["stack"])[..2],
        ["release", "releaser"]
    );
    let freed_at = functions(&consequence["block"]["freed_at"]);
    assert_eq!(freed_at[..2], ["release", "main"]);
}

#[test]
fn an_array_whose_length_has_changed() {
    let consequence = memory_error("array");
    assert_eq!(
        consequence["detail"],
        "heap overflow: thread 1 writes right behind the end of a block of 80 bytes"
    );
    assert_eq!(functions(&consequence["stack"])[0], "fill");
    assert_eq!(consequence["block"]["freed_at"], Value::Null);
}

#[test]
fn a_copy_that_is_too_long_by_a_function_of_the_library() {
    let consequence = memory_error("copy");
    assert_eq!(
        consequence["detail"],
        "heap overflow: thread 1 writes right behind the end of a block of 80 bytes"
    );
    assert_eq!(functions(&consequence["stack"])[0], "copy");
}

#[test]
fn a_pointer_into_a_block_that_is_freed() {
    let consequence = memory_error("cursor");
    assert_eq!(
        consequence["detail"],
        "invalid free: thread 1 frees what is 16 bytes into a block of 64 bytes"
    );
    assert_eq!(functions(&consequence["stack"])[0], "release_cursor");
}

#[test]
fn a_freed_block_whose_memory_is_another_one_by_then() {
    let consequence = memory_error("reused");
    assert_eq!(
        consequence["detail"],
        "use after free: thread 1 reads from a block that thread 0 has freed (seen with freed memory withheld from the allocator)"
    );
    assert_eq!(functions(&consequence["stack"])[0], "look");
    let block = &consequence["block"];
    assert_eq!(functions(&block["freed_at"])[..2], ["replace", "main"]);
    assert_eq!(functions(&block["allocated_at"])[0], "main");
}

#[test]
fn a_freed_block_that_only_the_recorded_order_reads() {
    let consequence = memory_error("dangling");
    assert_eq!(
        consequence["detail"],
        "use after free: thread 1 reads from a block that thread 0 has freed"
    );
    assert_eq!(functions(&consequence["stack"])[0], "look_in_time");
    let (_folder, races) = judged_in(GUEST, &[], &["dangling"]);
    let shows = races[0]["evidence"][0].as_str().unwrap();
    assert!(shows.ends_with("primary.vrec"), "{shows}");
    let looked = replay_looking(Path::new(races[0]["evidence"][1].as_str().unwrap()));
    assert_eq!(looked.2, "no memory errors\n", "in the other order");
}
