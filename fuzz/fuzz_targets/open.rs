//! Any bytes as a file of unknown format, perhaps compressed. What can be read must read the same compressed.
#![no_main]

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use verdict_events::{TraceError, open_stream};
use verdict_fuzz::{Told, tell};

fuzz_target!(|bytes: &[u8]| {
    let Ok(told) = open(bytes.to_vec()) else {
        return;
    };
    // One layer of compression is taken off, not two.
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return;
    }
    assert_eq!(open(gzip(bytes)).expect("readable as it is"), told);
    let zstd = zstd::bulk::compress(bytes, 1).expect("compressed in memory");
    assert_eq!(open(zstd).expect("readable as it is"), told);
});

fn open(bytes: Vec<u8>) -> Result<Told, TraceError> {
    let mut source = open_stream("fuzz".to_owned(), Box::new(Cursor::new(bytes)), None)?;
    tell(&mut *source)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("compressed in memory");
    encoder.finish().expect("compressed in memory")
}
