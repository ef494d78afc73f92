use std::fs::{self, OpenOptions};
use std::io::Write;
use std::thread;

use proptest::prelude::*;
use verdict_history::*;

fn entry(id: &str) -> Entry {
    Entry::Mark(Mark {
        day: "2026-11-15".parse().unwrap(),
        id: id.into(),
        opinion: Opinion::Benign,
        reason: "a reason\nof two lines".into(),
        until: None,
        severity: Severity::Unknown,
    })
}

fn ids(reading: &Reading) -> Vec<String> {
    let id = |entry: &Entry| match entry {
        Entry::Mark(mark) => mark.id.clone(),
        Entry::Run(run) => run.program.clone(),
    };
    reading.entries.iter().map(id).collect()
}

#[test]
fn folder_that_does_not_exist_is_an_empty_history() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::in_folder(&folder.path().join("project/.verdict"));
    assert_eq!(log.read().unwrap(), Reading::default());
    log.append(&entry("a")).unwrap();
    assert_eq!(log.read().unwrap().entries, [entry("a")]);
}

#[test]
fn many_writers_lose_nothing() {
    const WRITERS: usize = 8;
    const ENTRIES: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let log = Log::in_folder(folder.path());
            scope.spawn(move || {
                for number in 0..ENTRIES {
                    log.append(&entry(&format!("{writer}-{number}"))).unwrap();
                }
            });
        }
    });
    let reading = Log::in_folder(folder.path()).read().unwrap();
    assert_eq!(reading.damaged, 0);
    let mut found = ids(&reading);
    for writer in 0..WRITERS {
        let prefix = format!("{writer}-");
        let own: Vec<&String> = found.iter().filter(|id| id.starts_with(&prefix)).collect();
        let expected: Vec<String> = (0..ENTRIES)
            .map(|number| format!("{prefix}{number}"))
            .collect();
        assert_eq!(
            own,
            expected.iter().collect::<Vec<_>>(),
            "each writer's in its order"
        );
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), WRITERS * ENTRIES);
}

/// Read, decide, write: no two writers may decide on the same state.
#[test]
fn updates_take_turns() {
    const WRITERS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            let log = Log::in_folder(folder.path());
            scope.spawn(move || {
                let next =
                    |reading: &Reading| (Some(entry(&reading.entries.len().to_string())), ());
                log.update(next).unwrap();
            });
        }
    });
    let found = ids(&Log::in_folder(folder.path()).read().unwrap());
    let expected: Vec<String> = (0..WRITERS).map(|number| number.to_string()).collect();
    assert_eq!(found, expected);
}

/// Where a writer may be killed: after any byte of its line.
#[test]
fn crash_in_the_middle_costs_only_what_was_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::in_folder(folder.path());
    log.append(&entry("before")).unwrap();
    let before = fs::read(log.path()).unwrap();
    log.append(&entry("during")).unwrap();
    let after = fs::read(log.path()).unwrap();
    for length in before.len()..after.len() {
        fs::write(log.path(), &after[..length]).unwrap();
        let reading = log.read().unwrap();
        assert_eq!(
            (ids(&reading), reading.damaged),
            (vec!["before".to_owned()], 0),
            "{length} bytes"
        );
        log.append(&entry("next")).unwrap();
        let reading = log.read().unwrap();
        assert_eq!(
            (ids(&reading), reading.damaged),
            (vec!["before".to_owned(), "next".to_owned()], 0),
            "{length} bytes"
        );
    }
}

#[test]
fn damage_costs_only_the_line_it_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::in_folder(folder.path());
    for id in ["a", "b", "c"] {
        log.append(&entry(id)).unwrap();
    }
    let mut bytes = fs::read(log.path()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(log.path(), &bytes).unwrap();
    let reading = log.read().unwrap();
    assert_eq!(
        (ids(&reading), reading.damaged),
        (vec!["a".to_owned(), "c".to_owned()], 1)
    );
}

#[test]
fn what_cannot_be_written_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("file");
    fs::write(&blocked, "").unwrap();
    let error = Log::in_folder(&blocked)
        .append(&entry("a"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("file/history: cannot be written: "),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_can_be_read_and_appended_to(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::in_folder(folder.path());
        fs::write(log.path(), &bytes).unwrap();
        log.read().unwrap();
        log.append(&entry("after")).unwrap();
        let found = ids(&log.read().unwrap());
        prop_assert_eq!(found.last().map(String::as_str), Some("after"));
    }

    #[test]
    fn damaged_bytes_never_make_up_an_entry(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::in_folder(folder.path());
        let written = [entry("a"), entry("b")];
        written.iter().for_each(|entry| log.append(entry).unwrap());
        let mut bytes = fs::read(log.path()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        OpenOptions::new().write(true).truncate(true).open(log.path()).unwrap().write_all(&bytes).unwrap();
        let reading = log.read().unwrap();
        prop_assert!(reading.entries.iter().all(|entry| written.contains(entry)));
        prop_assert!(reading.entries.len() < 2, "every byte counts");
    }
}
