//! The native format under every kind of damage, while it grows, and entered in the middle.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

use proptest::prelude::*;
use verdict_events::generate::{Addressing, GenerateOptions, Generator};
use verdict_events::native::{Compression, NativeFile, NativeReader, NativeWriter};
use verdict_events::{
    Event, Format, NameTable, Names, Position, ThreadId, TraceError, TraceSource,
};

use crate::traces::{Expressible, Told, drain, read, tell, trace};

/// A few frames of a few events each, with their names.
fn small_trace(frames: usize) -> (Vec<u8>, Vec<usize>, Told) {
    let options = GenerateOptions {
        events: 16 * frames as u64,
        threads: 3,
        locations: 48,
        sites: 64,
        run_length: 2,
        ..GenerateOptions::default()
    };
    let mut generator = Generator::new(options);
    let events = drain(&mut generator).unwrap();
    let names = generator.names();
    let mut bytes = Vec::new();
    // Where events are whole: after how many bytes how many can be read.
    let mut whole = Vec::new();
    let mut writer = NativeWriter::new(&mut bytes).unwrap();
    for chunk in events.chunks(16) {
        writer.write(chunk, names).unwrap();
        writer.flush(names).unwrap();
    }
    writer.finish(names).unwrap();
    let reader = NativeReader::new("trace".to_owned(), Cursor::new(&bytes)).unwrap();
    whole.extend(frame_ends(reader, &bytes));
    let told = read(Format::Native, &bytes).unwrap();
    assert_eq!(told.0, events);
    (bytes, whole, told)
}

/// For each number of whole frames, the length of the file that ends with them.
fn frame_ends<R: Read>(_reader: NativeReader<R>, bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 16;
    while at < bytes.len() {
        let header = &bytes[at..at + 36];
        let payload = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
        at += 36 + payload;
        if header[0] == 2 {
            ends.push(at);
        }
    }
    ends
}

/// Reads what can be read, and why no more.
fn read_all(source: &mut dyn TraceSource) -> (Told, Option<TraceError>) {
    let (mut events, mut batch) = (Vec::new(), Vec::new());
    let error = loop {
        match source.next_batch(&mut batch) {
            Ok(()) if batch.is_empty() => break None,
            Ok(()) => events.append(&mut batch),
            Err(error) => break Some(error),
        }
    };
    let told = events.iter().map(|event| event.describe(source.names()));
    let told = told.collect();
    ((events, told), error)
}

#[test]
fn cut_anywhere_yields_every_whole_frame_and_one_error() {
    let (bytes, ends, (events, told)) = small_trace(5);
    for length in 0..bytes.len() {
        let frames = ends.iter().filter(|&&end| end <= length).count();
        let mut reader =
            NativeReader::new("cut".to_owned(), Cursor::new(&bytes[..length])).unwrap();
        let (found, error) = read_all(&mut reader);
        assert_eq!(found.0, events[..16 * frames], "cut at {length}");
        assert_eq!(found.1, told[..16 * frames], "cut at {length}");
        match error {
            Some(TraceError::Incomplete { offset, events, .. }) => {
                assert_eq!(events, 16 * frames as u64);
                assert!(offset <= length as u64);
            }
            other => panic!("cut at {length}: {other:?}"),
        }
    }
}

#[test]
fn cut_files_can_be_entered_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.vtrace");
    let (bytes, ends, (events, _)) = small_trace(3);
    for length in 16..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let frames = ends.iter().filter(|&&end| end <= length).count();
        let mut file = NativeFile::open(&path).unwrap();
        assert!(!file.is_finished());
        assert_eq!(file.events(), 16 * frames as u64, "cut at {length}");
        if frames == 3 {
            file.seek(Position(20)).unwrap();
            let (found, error) = read_all(&mut file);
            assert_eq!(found.0, events[20..]);
            assert!(matches!(error, Some(TraceError::Incomplete { .. })));
        }
    }
}

#[test]
fn flipped_bytes_yield_an_error_or_the_same_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.vtrace");
    let (bytes, _, told) = small_trace(3);
    let mut errors = 0;
    for at in 0..bytes.len() {
        for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
            let mut flipped = bytes.clone();
            flipped[at] ^= flip;
            match read(Format::Native, &flipped) {
                Ok(same) => assert_eq!(same, told, "byte {at} ^ {flip:#x}"),
                Err(TraceError::Binary { .. } | TraceError::Incomplete { .. }) => errors += 1,
                Err(other) => panic!("byte {at} ^ {flip:#x}: {other}"),
            }
            if flip == 0xff {
                check_flipped_file(&path, &flipped, &told, at);
            }
        }
    }
    assert_eq!(
        errors,
        9 * bytes.len(),
        "every byte is covered by some checksum"
    );
}

/// The same by way of the index.
fn check_flipped_file(path: &Path, flipped: &[u8], told: &Told, at: usize) {
    std::fs::write(path, flipped).unwrap();
    let Ok(mut file) = NativeFile::open(path) else {
        return;
    };
    match tell(&mut file) {
        Ok(same) => assert_eq!(same, *told, "byte {at}"),
        Err(_) => return,
    }
    for position in [0, 17, 40] {
        if file.seek(Position(position)).is_ok()
            && let Ok(rest) = tell(&mut file)
        {
            assert_eq!(rest.1, told.1[position as usize..], "byte {at}");
        }
    }
}

/// Bytes that are whole as far as checksums go, but make no sense.
#[test]
fn well_summed_nonsense_is_refused() {
    let (bytes, ends, told) = small_trace(2);
    for at in 52..ends[0] {
        let mut changed = bytes.clone();
        changed[at] = changed[at].wrapping_add(1);
        resum(&mut changed);
        match read(Format::Native, &changed) {
            Ok(other) => assert_eq!(other.0.len(), told.0.len(), "byte {at}"),
            Err(TraceError::Binary { .. } | TraceError::Incomplete { .. }) => {}
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

/// Makes the checksums of all frames match again.
fn resum(bytes: &mut [u8]) {
    let mut at = 16;
    while at + 36 <= bytes.len() {
        let payload = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        let Some(body) = bytes.get(at + 36..at + 36 + payload) else {
            return;
        };
        let sum = crc32fast::hash(body);
        bytes[at + 28..at + 32].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32fast::hash(&bytes[at..at + 32]);
        bytes[at + 32..at + 36].copy_from_slice(&sum.to_le_bytes());
        at += 36 + payload;
    }
}

#[test]
fn a_growing_file_is_read_as_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.vtrace");
    let (bytes, ends, (events, _)) = small_trace(4);
    let mut growing = File::create(&path).unwrap();
    let mut reader = NativeReader::new("growing".to_owned(), File::open(&path).unwrap()).unwrap();
    let mut found: Vec<Event> = Vec::new();
    // In pieces that end anywhere, mostly in the middle of frames.
    for (number, piece) in bytes.chunks(37).enumerate() {
        growing.write_all(piece).unwrap();
        let length = (37 * number + piece.len()).min(bytes.len());
        let (more, error) = read_all(&mut reader);
        found.extend(more.0);
        let frames = ends.iter().filter(|&&end| end <= length).count();
        assert_eq!(found, events[..16 * frames]);
        let incomplete = matches!(error, Some(TraceError::Incomplete { .. }));
        assert_eq!(incomplete, length < bytes.len());
    }
}

#[test]
fn every_position_can_be_entered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.vtrace");
    let (bytes, _, told) = small_trace(4);
    std::fs::write(&path, bytes).unwrap();
    let mut file = NativeFile::open(&path).unwrap();
    assert!(file.is_finished());
    assert_eq!(file.events(), 64);
    assert_eq!(file.frames(), 4);
    // Forwards and backwards, so that names frames are met again.
    for position in (0..=70).chain((0..64).rev()) {
        file.seek(Position(position)).unwrap();
        let rest = tell(&mut file).unwrap();
        let from = (position as usize).min(64);
        assert_eq!(rest.0, told.0[from..], "from {position}");
        assert_eq!(rest.1, told.1[from..], "from {position}");
    }
}

#[test]
fn the_events_of_a_thread_are_found_without_reading_other_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.vtrace");
    let options = GenerateOptions {
        events: 400_000,
        run_length: 60_000,
        threads: 6,
        ..GenerateOptions::default()
    };
    let mut generator = Generator::new(options);
    let events = drain(&mut generator).unwrap();
    let mut writer = NativeWriter::new(File::create(&path).unwrap()).unwrap();
    writer.write(&events, generator.names()).unwrap();
    writer.finish(generator.names()).unwrap();
    let mut file = NativeFile::open(&path).unwrap();
    let mut skipped = 0;
    for thread in (0..7).map(ThreadId) {
        skipped += file.frames() - file.frames_of(thread);
        let expected: Vec<(Position, Event)> = (0..)
            .map(Position)
            .zip(events.iter().copied())
            .filter(|(_, event)| event.thread == thread)
            .collect();
        let (mut found, mut batch) = (Vec::new(), Vec::new());
        let mut events_of = file.events_of(thread);
        loop {
            events_of.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            found.append(&mut batch);
        }
        assert!(found == expected, "{thread}");
    }
    assert!(skipped > 10, "{skipped} frames were not read");
}

#[test]
fn a_damaged_index_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.vtrace");
    let (mut bytes, ends, told) = small_trace(3);
    // The index frame follows the last event frame.
    bytes[ends[2] + 36] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let mut file = NativeFile::open(&path).unwrap();
    assert!(!file.is_finished());
    file.seek(Position(20)).unwrap();
    let mut batch = Vec::new();
    file.next_batch(&mut batch).unwrap();
    assert_eq!(batch, told.0[20..32]);
}

#[test]
fn an_empty_trace_is_a_trace() {
    let mut bytes = Vec::new();
    let names = NameTable::new();
    NativeWriter::new(&mut bytes)
        .unwrap()
        .finish(&names)
        .unwrap();
    assert_eq!(read(Format::Native, &bytes).unwrap().0, []);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.vtrace");
    std::fs::write(&path, &bytes).unwrap();
    let mut file = NativeFile::open(&path).unwrap();
    assert!(file.is_finished());
    assert_eq!(drain(&mut file).unwrap(), []);
    file.seek(Position(7)).unwrap();
    assert_eq!(drain(&mut file).unwrap(), []);
}

#[test]
fn sparse_ids_are_refused() {
    let event = Event {
        thread: ThreadId(u32::MAX),
        site: Default::default(),
        kind: verdict_events::EventKind::Begin,
    };
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    let names = NameTable::new();
    writer.write(&[event], &names).unwrap();
    let error = writer.finish(&names).unwrap_err();
    expect_test::expect![
        "cannot be written: thread 4294967295 follows 0 known ones, but ids must be dense"
    ]
    .assert_eq(&error.to_string());
}

#[test]
fn realistic_traces_are_small() {
    for (addressing, run_length) in [
        (Addressing::Named, 4),
        (Addressing::Named, 32),
        (Addressing::Addresses, 4),
        (Addressing::Addresses, 1000),
    ] {
        let per_event = bytes_per_event(addressing, run_length);
        assert!(
            per_event <= 4.0,
            "{addressing:?}, runs of {run_length}: {per_event:.2} bytes an event"
        );
    }
}

/// Not realistic, and above the 4 bytes of those that are: another thread at nearly every event, and a name for every
/// fifth. It must not become worse unnoticed.
#[test]
fn traces_that_switch_all_the_time_are_hardly_larger() {
    for addressing in [Addressing::Named, Addressing::Addresses] {
        let per_event = bytes_per_event(addressing, 1);
        assert!(
            per_event <= 4.25,
            "{addressing:?}: {per_event:.2} bytes an event"
        );
    }
}

fn bytes_per_event(addressing: Addressing, run_length: u32) -> f64 {
    let options = GenerateOptions {
        events: 500_000,
        addressing,
        run_length,
        ..GenerateOptions::default()
    };
    let mut generator = Generator::new(options);
    let mut bytes = Vec::new();
    let mut writer = NativeWriter::new(&mut bytes).unwrap();
    let mut batch = Vec::new();
    loop {
        generator.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            break;
        }
        writer.write(&batch, generator.names()).unwrap();
    }
    writer.finish(generator.names()).unwrap();
    bytes.len() as f64 / 500_000.0
}

proptest! {
    #[test]
    fn every_compression_reads_the_same((events, names) in trace(Expressible::Everything, 200)) {
        let mut read_back = Vec::new();
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let mut writer = NativeWriter::with_compression(Vec::new(), compression).unwrap();
            writer.write(&events, &names).unwrap();
            let bytes = writer.finish(&names).unwrap();
            read_back.push(read(Format::Native, &bytes).unwrap());
        }
        prop_assert_eq!(&read_back[0].0, &events);
        prop_assert!(read_back.iter().all(|told| *told == read_back[0]));
    }

    /// Whatever the bytes after a sound file header are, reading them ends.
    #[test]
    fn any_bytes_are_read_or_refused(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let (bytes, _, _) = small_trace(1);
        let mut bytes = Cursor::new(bytes[..16].to_vec());
        bytes.seek(SeekFrom::End(0)).unwrap();
        bytes.write_all(&tail).unwrap();
        prop_assert!(read(Format::Native, bytes.get_ref()).is_err());
    }
}

#[test]
fn names_are_there_for_what_has_been_delivered() {
    let (bytes, _, (events, told)) = small_trace(4);
    let mut reader = NativeReader::new("trace".to_owned(), Cursor::new(bytes)).unwrap();
    let (mut batch, mut at) = (Vec::new(), 0);
    loop {
        reader.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            break;
        }
        let names: &dyn Names = reader.names();
        for event in &batch {
            assert_eq!(event.describe(names), told[at]);
            at += 1;
        }
    }
    assert_eq!(at, events.len());
}
