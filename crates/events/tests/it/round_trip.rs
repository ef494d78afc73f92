//! What is written in a format is read from it again, events and names.

use std::io::{Cursor, Write};

use proptest::prelude::*;
use verdict_events::generate::{Addressing, GenerateOptions, Generator};
use verdict_events::native::PartDecoder;
use verdict_events::{Digest, Event, EventKind, Format, NameTable, TraceSource, open, read_as};

use crate::traces::{Expressible, Told, drain, read, tell, trace, write};

fn told(events: &[Event], names: &NameTable) -> Told {
    let told = events.iter().map(|event| event.describe(names)).collect();
    (events.to_vec(), told)
}

fn check(format: Format, (events, names): (Vec<Event>, NameTable)) -> Result<(), TestCaseError> {
    let bytes = write(format, &events, &names).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let again = read(format, &bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(again, told(&events, &names));
    let events = without_values(events);
    prop_assert_eq!(&without_values(digested(format, &bytes)), &events);
    if format == Format::Native {
        prop_assert_eq!(without_values(digested_in_parts(&bytes)), events);
    }
    Ok(())
}

/// What digests of the parts of a native trace tell.
fn digested_in_parts(bytes: &[u8]) -> Vec<Event> {
    let bytes = Box::new(Cursor::new(bytes.to_vec()));
    let mut source = read_as(Format::Native, "test".to_owned(), bytes).expect("a known format");
    assert!(source.has_parts());
    let mut decoder = PartDecoder::new().expect("memory for a decompressor");
    let mut digest = Digest::new();
    while let Some(part) = source.next_part(None).expect("a sound trace") {
        decoder.digest(&part, &mut digest).expect("a sound trace");
    }
    digest.told().map(|(_, event)| event).collect()
}

/// What digests tell of a trace.
fn digested(format: Format, bytes: &[u8]) -> Vec<Event> {
    let bytes = Box::new(Cursor::new(bytes.to_vec()));
    let mut source = read_as(format, "test".to_owned(), bytes).expect("a known format");
    let (mut events, mut digest) = (Vec::new(), Digest::new());
    loop {
        digest.clear();
        source.next_digest(&mut digest).expect("a sound trace");
        if digest.events() == 0 {
            return events;
        }
        events.extend(digest.told().map(|(_, event)| event));
    }
}

/// Digests need not tell the values of plain accesses.
fn without_values(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let EventKind::Read(access) | EventKind::Write(access) = &mut event.kind {
            access.value = None;
        }
    }
    events
}

proptest! {
    #[test]
    fn native(trace in trace(Expressible::Everything, 300)) {
        check(Format::Native, trace)?;
    }

    #[test]
    fn csv(trace in trace(Expressible::Everything, 100)) {
        check(Format::Csv, trace)?;
    }

    #[test]
    fn std(trace in trace(Expressible::Std, 100)) {
        check(Format::Std, trace)?;
    }

    #[test]
    fn roadrunner(trace in trace(Expressible::RoadRunner, 100)) {
        check(Format::RoadRunner, trace)?;
    }

    /// Line ends and empty lines change nothing.
    #[test]
    fn line_ends_do_not_matter((events, names) in trace(Expressible::Std, 50)) {
        let text = write(Format::Std, &events, &names).unwrap();
        let text = String::from_utf8(text).unwrap();
        let dos = text.replace('\n', "\r\n\r\n  \r\n");
        prop_assert_eq!(read(Format::Std, dos.as_bytes()).unwrap(), told(&events, &names));
        prop_assert_eq!(read(Format::Std, text.trim_end().as_bytes()).unwrap(), told(&events, &names));
    }
}

/// Several full frames and names frames, both ways of naming.
#[test]
fn long_traces_through_every_format() {
    for addressing in [Addressing::Named, Addressing::Addresses] {
        let options = GenerateOptions {
            events: 200_000,
            locations: 70_000,
            addressing,
            ..GenerateOptions::default()
        };
        let expected = tell(&mut Generator::new(options.clone())).unwrap();
        let mut generator = Generator::new(options);
        let events = drain(&mut generator).unwrap();
        let mut bytes = Vec::new();
        let mut writer = verdict_events::create(Format::Native, &mut bytes).unwrap();
        writer.write(&events, generator.names()).unwrap();
        writer.finish(generator.names()).unwrap();
        assert!(read(Format::Native, &bytes).unwrap() == expected);
        for format in [Format::Csv, Format::Std] {
            if addressing == Addressing::Addresses && format == Format::Std {
                continue;
            }
            let mut text = Vec::new();
            let mut writer = verdict_events::create(format, &mut text).unwrap();
            writer.write(&events, generator.names()).unwrap();
            writer.finish(generator.names()).unwrap();
            let again = read(format, &text).unwrap();
            // Text readers number by first appearance, so only what is told is the same.
            assert!(again.1 == expected.1, "{format}");
        }
    }
}

#[test]
fn compressed_files_are_recognised_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let text = b"T0|w(V1)|13\nT1|r(V1)|27\n";
    let expected = read(Format::Std, text).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text[..12]).unwrap();
    let mut members = gzip.finish().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text[12..]).unwrap();
    members.extend(gzip.finish().unwrap());
    let zstd = zstd::encode_all(Cursor::new(text), 1).unwrap();
    for (name, bytes) in [
        ("plain", text.to_vec()),
        ("two-members", members),
        ("zstd", zstd),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(
            tell(&mut open(&path, None).unwrap()).unwrap(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn formats_are_recognised_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let samples: [(&str, &[u8], usize); 5] = [
        ("std", b"\r\nT0|w(V1)|13", 1),
        (
            "csv",
            b"thread,event,object,name,size,value,order,site\nT0,begin,,,,,,\n",
            1,
        ),
        (
            "rr",
            b"[main: ]\n@  main[tid = 0] started .\n@   Start(0,1)\n",
            1,
        ),
        (
            "rr-event",
            b"@    ARd(2,null.test/D.value_I)  Final  D.java:50:7\n",
            1,
        ),
        (
            "rv",
            b"tid 1.0 pc 0x400b2a load 4 0x00000001 <- [0x602084]\n",
            1,
        ),
    ];
    for (name, bytes, events) in samples {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let found = drain(&mut open(&path, None).unwrap()).unwrap();
        assert_eq!(found.len(), events, "{name}");
    }
}

#[test]
fn rv_predict_text() {
    let text = "\
tid 1.0 pc 0x0000000000400b2a begin thread generation 0
tid 1.0 pc 0x0000000000400b2a jump
tid 1.0 pc 0x0000000000400b2b enter function cfa 7ffd0010
tid 1.0 pc 0x0000000000400b2c store 4 0x00000001 -> [0x0000000000602084]
tid 1.0 pc 0x0000000000400b2d fork thread tid 2
tid 1.0 pc 0x0000000000400b2d switch thread tid 2
tid 2.0 pc 0x0000000000400c00 begin thread generation 1
tid 2.0 pc 0x0000000000400c01 acquire mutex [0x0000000000602100]
tid 2.0 pc 0x0000000000400c02 load 4 0x00000001 <- [0x0000000000602084]
tid 2.0 pc 0x0000000000400c03 atomic RMW 4 0x00000001 <- [0x0000000000602088] <- 0x00000002
tid 2.0 pc 0x0000000000400c04 release mutex [0x0000000000602100]
tid 2.0 pc 0x0000000000400c05 end thread
tid 1.0 pc 0x0000000000400b2e join thread tid 2
";
    let (_, told) = read(Format::RvPredict, text.as_bytes()).unwrap();
    expect_test::expect![[r#"
        1 begin at 0x0000000000400b2a
        1 write 0x602084 size 4 value 0x1 at 0x0000000000400b2c
        1 fork 2 at 0x0000000000400b2d
        2 begin at 0x0000000000400c00
        2 acquire 0x602100 at 0x0000000000400c01
        2 read 0x602084 size 4 value 0x1 at 0x0000000000400c02
        2 atomic-rmw 0x602088 size 4 value 0x2 (seq-cst) at 0x0000000000400c03
        2 release 0x602100 at 0x0000000000400c04
        2 end at 0x0000000000400c05
        1 join 2 at 0x0000000000400b2e"#]]
    .assert_eq(&told.join("\n"));
}
