//! Disks and limits that are too small.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use verdict_recording::*;

use crate::entries::{end, read};

/// A disk with so much room. What it holds can be looked at after its writer is gone.
#[derive(Clone)]
struct Disk {
    bytes: Rc<RefCell<Vec<u8>>>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.bytes.borrow_mut();
        let count = bytes.len().min(self.room - held.len());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        held.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Entries that do not compress well.
fn entry(index: u64) -> Entry {
    let noise = (0..32).map(|part| digest(&(index * 32 + part).to_le_bytes()) as u8);
    Entry::Call {
        number: 0,
        args_digest: index as u32,
        result: 32,
        writes: vec![MemoryWrite {
            address: 4096,
            bytes: noise.collect(),
        }],
        output: None,
    }
}

fn record(disk: Disk, entries: u64) -> Result<(), WriteError> {
    let mut writer = Writer::new(disk, &Header::default(), WriterOptions::default())?;
    for index in 0..entries {
        assert_eq!(writer.append(index, &entry(index))?, Room::Left);
        if index % 10 == 9 {
            writer.flush()?;
        }
    }
    writer.finish(end(entries)).map(drop)
}

#[test]
fn a_full_disk_leaves_what_was_flushed() {
    let disk = |room| Disk {
        bytes: Rc::default(),
        room,
    };
    let whole = disk(usize::MAX);
    record(whole.clone(), 50).unwrap();
    let size = whole.bytes.borrow().len();
    for room in (0..size).step_by(7) {
        let disk = disk(room);
        let error = record(disk.clone(), 50).unwrap_err();
        let WriteError::DiskFull { at, bytes, .. } = error else {
            panic!("{error}");
        };
        match read(&disk.bytes.borrow()) {
            (_, Err(ReadError::NothingRecorded)) => assert_eq!(at, 0),
            (entries, Ok(Ending::Cut { at: cut, byte })) => {
                assert_eq!((cut, byte), (at, bytes));
                assert_eq!(entries.len() % 10, 0);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_recording_is_never_larger_than_it_may() {
    for max_size in (700..6000).step_by(97) {
        let options = WriterOptions {
            max_size: Some(max_size),
        };
        let mut writer = match Writer::new(Vec::new(), &Header::default(), options) {
            Ok(writer) => writer,
            Err(error) => {
                assert!(max_size < 800, "{error}");
                continue;
            }
        };
        let taken = (0..1000)
            .find(|&index| writer.append(index, &entry(index)).unwrap() == Room::None)
            .expect("1000 entries do not fit");
        let end = End {
            outcome: EndOutcome::SizeLimit { max_size },
            ..end(taken)
        };
        let bytes = writer.finish(end.clone()).unwrap();
        assert!(bytes.len() as u64 <= max_size);
        assert!(bytes.len() as u64 + 1000 > max_size, "room was left unused");
        let (entries, ending) = read(&bytes);
        assert_eq!(entries.len() as u64, taken + 1);
        assert_eq!(ending.unwrap(), Ending::Complete(Box::new(end)));
    }
}

#[test]
fn a_limit_below_the_header_is_refused() {
    let options = WriterOptions {
        max_size: Some(100),
    };
    let error = Writer::new(Vec::new(), &Header::default(), options).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("--max-size 100 is too small"), "{said}");
}

#[test]
fn an_entry_larger_than_a_frame_is_kept() {
    let bytes = vec![7; 5 << 20];
    let entry = Entry::Contents {
        file: FileId(0),
        offset: 0,
        bytes,
    };
    let mut writer = Writer::new(Vec::new(), &Header::default(), WriterOptions::default()).unwrap();
    assert_eq!(writer.append(0, &entry).unwrap(), Room::Left);
    let file = writer.finish(end(0)).unwrap();
    assert_eq!(read(&file).0[0].entry, entry);
}
