//! Races that only show in the other order of another one.

use std::path::Path;

use serde_json::Value;

use super::evidence::replay;
use super::guests::{judged, judged_in, only};

const GUEST: &str = "judged_hidden.c";

fn line(race: &Value, access: usize) -> u64 {
    race["accesses"][access]["line"].as_u64().unwrap()
}

#[test]
fn a_race_behind_the_other_order_is_classified_from_there() {
    let (_folder, races) = judged_in(GUEST, &[], &[]);
    let [first, behind] = races.as_slice() else {
        panic!("two races: {races:?}");
    };
    assert_eq!(first["class"], "k-witness-harmless");
    assert_eq!(first["found_by"], serde_json::json!(["hb", "hybrid"]));
    assert_eq!(behind["found_by"], serde_json::json!(["hb", "exploration"]));
    assert_eq!([line(behind, 0), line(behind, 1)], [23, 11]);
    assert_eq!(behind["class"], "output-differs");
    let difference = &behind["output_difference"];
    assert_eq!(difference["primary"]["text"], "something\n");
    assert_eq!(difference["alternate"]["text"], "nothing\n");
    // Both orders are ordinary recordings.
    for (recording, output) in [(0, "nothing\n"), (1, "something\n")] {
        let recording = behind["evidence"][recording].as_str().unwrap();
        let shown = replay(Path::new(recording));
        assert_eq!((shown.0, shown.1.as_slice()), (Some(0), output.as_bytes()));
    }
    let again = judged(GUEST, &["--jobs", "1"], &[]);
    let same = |race: &Value| (race["id"].clone(), race["class"].clone(), race["k"].clone());
    let all = |races: &[Value]| races.iter().map(same).collect::<Vec<_>>();
    assert_eq!(all(&again), all(&races));
}

#[test]
fn who_asks_for_one_race_gets_one() {
    let id = judged(GUEST, &[], &[])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let race = only(judged(GUEST, &["--race", &id], &[]));
    assert_eq!(race["class"], "k-witness-harmless");
}
