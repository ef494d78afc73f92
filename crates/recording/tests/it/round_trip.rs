//! What is written is read.

use proptest::prelude::*;
use verdict_recording::*;

use crate::entries::{end, header, journal, read, sample};

proptest! {
    #[test]
    fn what_is_written_is_read(
        header in header(),
        journal in journal(),
        flush_every in 1..10usize,
    ) {
        let mut writer = Writer::new(Vec::new(), &header, WriterOptions::default()).unwrap();
        let mut at = 0;
        let mut stamped = Vec::new();
        for (index, (passed, entry)) in journal.into_iter().enumerate() {
            at += passed;
            prop_assert_eq!(writer.append(at, &entry).unwrap(), Room::Left);
            if index % flush_every == 0 {
                writer.flush().unwrap();
            }
            stamped.push(Stamped { at, entry });
        }
        stamped.push(Stamped { at, entry: Entry::End { end: Box::new(end(at)) } });
        let bytes = writer.finish(end(at)).unwrap();
        let mut reader = Reader::open(&bytes[..]).unwrap();
        prop_assert_eq!(reader.header(), &header);
        for expected in stamped {
            prop_assert_eq!(reader.peek().unwrap(), Some(&expected));
            prop_assert_eq!(reader.next().unwrap(), Some(expected));
        }
        prop_assert_eq!(reader.next().unwrap(), None);
        prop_assert_eq!(reader.ending(), Some(&Ending::Complete(Box::new(end(at)))));
        prop_assert_eq!(reader.bytes_read(), bytes.len() as u64);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (sample, _) = sample();
        // Behind a good beginning, too.
        let _ = read(&bytes);
        let _ = read(&[&sample[..200], &bytes].concat());
    }
}

#[test]
fn another_writer_and_another_reader_go_on() {
    let header = Header::default();
    let switch = |thread| Entry::Switch {
        thread,
        preempted: false,
    };
    let mut first = Writer::new(Vec::new(), &header, WriterOptions::default()).unwrap();
    assert_eq!(first.append(5, &switch(1)).unwrap(), Room::Left);
    let exec = Entry::Exec {
        header: Box::new(header.clone()),
    };
    assert_eq!(first.append(9, &exec).unwrap(), Room::Left);
    assert!(first.is_flushed(), "an exec ends its frame");
    let position = first.position().unwrap();
    assert_eq!(position.byte, first.bytes_written());
    let bytes = first.into_inner();
    assert_eq!(position.byte, bytes.len() as u64);
    let mut second = Writer::resume(bytes, position, WriterOptions::default()).unwrap();
    assert_eq!(second.append(11, &switch(2)).unwrap(), Room::Left);
    let bytes = second.finish(end(12)).unwrap();

    let (entries, ending) = read(&bytes);
    assert_eq!(ending.unwrap(), Ending::Complete(Box::new(end(12))));
    assert_eq!(entries.len(), 4);
    let mut reader = Reader::open(&bytes[..]).unwrap();
    reader.next().unwrap();
    assert_eq!(reader.position(), None, "in the middle of a frame");
    reader.next().unwrap();
    let position = reader.position().unwrap();
    let rest = &bytes[position.byte as usize..];
    let mut reader = Reader::resume(rest, header, position);
    assert_eq!(
        reader.next().unwrap(),
        Some(Stamped {
            at: 11,
            entry: switch(2)
        })
    );
}

#[test]
fn info_counts() {
    let (bytes, journal) = sample();
    let info = Info::of(&bytes[..]).unwrap();
    assert_eq!(info.instructions, 20_000);
    assert_eq!(info.switches(), 2);
    assert_eq!(info.threads, 2);
    assert_eq!(info.calls, [(0, 1)].into());
    assert_eq!(info.signals, [(15, 1)].into());
    assert_eq!(info.bytes, bytes.len() as u64);
    assert_eq!(info.replaced_by, [b"./queue".to_vec()]);
    // One of the first header, one of its own, one of the header after the exec.
    assert_eq!(info.files.len(), 3);
    let attached = info.files.iter().filter(|file| file.attached);
    let attached: Vec<(usize, FileId)> = attached.map(|file| (file.program, file.id)).collect();
    assert_eq!(attached, [(0, FileId(1))]);
    let entries: u64 = info.kinds.values().map(|kind| kind.entries).sum();
    assert_eq!(entries, journal.len() as u64);
    assert_eq!(info.bits_per_instruction(), bytes.len() as f64 / 2500.0);
}

/// The fuzz target starts from it; regenerate with `UPDATE_SEED=1` when the format changes.
#[test]
fn the_fuzz_targets_seed_is_a_recording() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/seeds/recording/every-entry.vrec"
    );
    let (bytes, journal) = sample();
    if std::env::var_os("UPDATE_SEED").is_some() {
        std::fs::write(path, &bytes).unwrap();
    }
    let (entries, ending) = read(&std::fs::read(path).unwrap());
    assert!(ending.is_ok());
    assert_eq!(entries, journal);
}
