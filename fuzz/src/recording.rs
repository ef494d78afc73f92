//! Recordings of any bytes.

use std::io::Cursor;

use twox_hash::XxHash3_64;
use verdict_recording::{
    Entry, Info, Reader, Room, Stamped, Summary, Writer, WriterOptions, prefix,
};

const FRAME_HEADER: usize = 36;

/// Reads `bytes`, and checks that what is read survives being written.
pub fn check(bytes: &[u8]) {
    check_summary(bytes);
    let Ok(mut reader) = Reader::open(bytes) else {
        return;
    };
    let header = reader.header().clone();
    let options = WriterOptions::default();
    let mut writer = Writer::new(Vec::new(), &header, options).expect("memory has room");
    let mut entries: Vec<Stamped> = Vec::new();
    while let Ok(Some(stamped)) = reader.next() {
        if !matches!(stamped.entry, Entry::End { .. }) {
            let room = writer.append(stamped.at, &stamped.entry);
            assert_eq!(room.expect("memory has room"), Room::Left);
            entries.push(stamped);
        }
    }
    writer.flush().expect("memory has room");
    let bytes = writer.into_inner();
    let mut again = Reader::open(&bytes[..]).expect("just written");
    assert_eq!(*again.header(), header);
    for stamped in entries {
        assert_eq!(again.next().expect("just written"), Some(stamped));
    }
    assert_eq!(again.next().expect("just written"), None);
}

/// What is said of a recording of which little is read must be what is said of all of it.
fn check_summary(bytes: &[u8]) {
    let summary = Summary::of(Cursor::new(bytes));
    if let Ok(info) = Info::of(bytes) {
        let summary = summary.expect("it can be read");
        assert_eq!(summary.ending, info.ending);
        assert_eq!(summary.instructions, info.instructions);
        assert_eq!(summary.bytes, info.bytes);
    }
}

/// The bytes with every number and checksum of their frames made right.
pub fn resummed(bytes: &[u8]) -> Vec<u8> {
    let mut made = prefix().to_vec();
    made.extend_from_slice(bytes.get(made.len()..).unwrap_or_default());
    let (mut at, mut frame) = (prefix().len(), 0u32);
    while at + FRAME_HEADER <= made.len() {
        let stored = u32::from_le_bytes(made[at + 4..at + 8].try_into().expect("4 bytes"));
        let end = (at + FRAME_HEADER).saturating_add(stored as usize);
        if let Some(content) = made.get(at + FRAME_HEADER..end) {
            let sum = XxHash3_64::oneshot(content);
            made[at + 20..at + 28].copy_from_slice(&sum.to_le_bytes());
        }
        made[at..at + 4].copy_from_slice(&frame.to_le_bytes());
        sum_header(&mut made[at..at + FRAME_HEADER]);
        (at, frame) = (end, frame + 1);
    }
    made
}

/// A recording whose header frame and first frame of entries hold these bytes; the first byte says how many are the
/// header's.
pub fn framed(bytes: &[u8]) -> Vec<u8> {
    let Some((&split, rest)) = bytes.split_first() else {
        return Vec::new();
    };
    let (header, entries) = rest.split_at(usize::from(split).min(rest.len()));
    let mut made = prefix().to_vec();
    for (number, raw) in [header, entries].into_iter().enumerate() {
        let stored = zstd::bulk::compress(raw, 1).expect("memory has room");
        let mut frame = [0; FRAME_HEADER];
        frame[0..4].copy_from_slice(&(number as u32).to_le_bytes());
        frame[4..8].copy_from_slice(&(stored.len() as u32).to_le_bytes());
        frame[8..12].copy_from_slice(&(raw.len() as u32).to_le_bytes());
        frame[20..28].copy_from_slice(&XxHash3_64::oneshot(&stored).to_le_bytes());
        sum_header(&mut frame);
        made.extend_from_slice(&frame);
        made.extend_from_slice(&stored);
    }
    made
}

fn sum_header(header: &mut [u8]) {
    let (summed, sum) = header.split_at_mut(FRAME_HEADER - 8);
    sum.copy_from_slice(&XxHash3_64::oneshot(summed).to_le_bytes());
}
