//! A file that is not what was written: cut anywhere, or with any byte changed.

use std::io::Cursor;

use verdict_recording::*;

use crate::entries::{read, sample};

#[test]
fn cut_anywhere_it_is_good_up_to_its_last_whole_frame() {
    let (bytes, journal) = sample();
    let mut longest = 0;
    for len in 0..bytes.len() {
        let (entries, ending) = read(&bytes[..len]);
        assert!(journal.starts_with(&entries));
        match ending {
            Ok(Ending::Cut { at, byte }) => {
                assert_eq!(at, entries.last().map_or(0, |entry| entry.at));
                assert!(byte <= len as u64);
                assert!(entries.len() >= longest, "a longer file has no less in it");
                longest = entries.len();
            }
            Err(ReadError::NothingRecorded) => assert_eq!(longest, 0),
            other => panic!("cut at {len}: {other:?}"),
        }
    }
    // All but the last frame, which has the last switch and the end.
    assert_eq!(longest, journal.len() - 2);
}

#[test]
fn cut_anywhere_its_summary_says_what_all_of_it_says() {
    let (bytes, _) = sample();
    for len in 0..=bytes.len() {
        let summary = Summary::of(Cursor::new(&bytes[..len])).map_err(|error| error.to_string());
        let info = Info::of(&bytes[..len]).map(|info| Summary {
            ending: info.ending,
            instructions: info.instructions,
            bytes: info.bytes,
        });
        assert_eq!(
            summary,
            info.map_err(|error| error.to_string()),
            "cut at {len}"
        );
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let (bytes, journal) = sample();
    for place in 0..bytes.len() {
        for change in 1..=0xff {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            let (entries, ending) = read(&changed);
            assert!(journal.starts_with(&entries), "byte {place}");
            let expected = match place {
                0..8 => matches!(ending, Err(ReadError::NotARecording)),
                8..12 => matches!(ending, Err(ReadError::Version { .. })),
                _ => matches!(ending, Err(ReadError::Damaged { .. })),
            };
            assert!(expected, "byte {place}: {ending:?}");
        }
    }
}

#[test]
fn something_behind_the_end_is_damage() {
    let (mut bytes, _) = sample();
    bytes.push(0);
    let (_, ending) = read(&bytes);
    let said = ending.unwrap_err().to_string();
    assert!(said.contains("something follows the end"), "{said}");
}

/// Where frames begin, by the lengths in their headers.
fn frames(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut at = 12;
    let mut frames = Vec::new();
    while at < bytes.len() {
        let stored = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        let end = at + 36 + stored as usize;
        frames.push(at..end);
        at = end;
    }
    frames
}

#[test]
fn a_frame_that_is_missing_doubled_or_out_of_place_is_noticed() {
    let (bytes, journal) = sample();
    let frames = frames(&bytes);
    assert_eq!(frames.len(), 5);
    let with = |order: &[usize]| {
        let mut made = bytes[..12].to_vec();
        for &index in order {
            made.extend_from_slice(&bytes[frames[index].clone()]);
        }
        read(&made)
    };
    assert!(with(&[0, 1, 2, 3, 4]).1.is_ok());
    for order in [
        &[1, 2, 3, 4][..],
        &[0, 2, 3, 4],
        &[0, 1, 2, 4],
        &[0, 1, 1, 2, 3, 4],
        &[0, 2, 1, 3, 4],
        &[0, 0, 1, 2, 3, 4],
    ] {
        let (entries, ending) = with(order);
        assert!(journal.starts_with(&entries));
        assert!(
            matches!(ending, Err(ReadError::Damaged { .. })),
            "{order:?}: {ending:?}"
        );
    }
}

#[test]
fn other_files_are_told_apart() {
    let said = |bytes: &[u8]| read(bytes).1.unwrap_err().to_string();
    assert_eq!(said(b"\x7fELF and so on, longer"), "is not a recording");
    assert!(said(b"").contains("stopped before the program began"));
    assert_eq!(
        said(b"\x89VREC\r\n\x1a\x09\0\0\0"),
        "is a recording of format 9, and only format 2 is known"
    );
}
