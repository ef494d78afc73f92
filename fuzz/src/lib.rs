//! What the fuzz targets share.
//!
//! Besides not panicking, a reader must be honest: what it accepts can be written in the native format and reads the
//! same from there, and, where its own format can be written, from its own format too.
#![forbid(unsafe_code)]

pub mod recording;

use std::io::Cursor;

use verdict_events::native::PartDecoder;
use verdict_events::{
    Digest, Event, EventKind, Format, Names, TraceError, TraceSource, WriteError, create, read_as,
};

/// Events, and how each reads with its names.
pub type Told = (Vec<Event>, Vec<String>);

/// Everything a source delivers.
pub fn tell(source: &mut dyn TraceSource) -> Result<Told, TraceError> {
    let (mut events, mut batch) = (Vec::new(), Vec::new());
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        events.append(&mut batch);
    }
    let told = events.iter().map(|event| event.describe(source.names()));
    let told = told.collect();
    Ok((events, told))
}

fn source(format: Format, bytes: &[u8]) -> Box<dyn TraceSource> {
    let bytes = Box::new(Cursor::new(bytes.to_vec()));
    read_as(format, "fuzz".to_owned(), bytes).expect("opening a known format reads nothing")
}

fn write(format: Format, events: &[Event], names: &dyn Names) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    let mut writer = create(format, &mut bytes)?;
    writer.write(events, names)?;
    writer.finish(names)?;
    Ok(bytes)
}

/// The events that digests tell of, or none if the trace is not sound.
fn digested(format: Format, bytes: &[u8]) -> Option<Vec<Event>> {
    let mut source = source(format, bytes);
    let (mut events, mut digest) = (Vec::new(), Digest::new());
    loop {
        digest.clear();
        source.next_digest(&mut digest).ok()?;
        if digest.events() == 0 {
            return Some(events);
        }
        events.extend(digest.told().map(|(_, event)| without_value(event)));
    }
}

/// The same, if the trace can be had in parts.
fn digested_in_parts(format: Format, bytes: &[u8]) -> Option<Vec<Event>> {
    let mut source = source(format, bytes);
    if !source.has_parts() {
        return digested(format, bytes);
    }
    let mut decoder = PartDecoder::new().expect("memory for a decompressor");
    let (mut events, mut digest) = (Vec::new(), Digest::new());
    while let Some(part) = source.next_part(None).ok()? {
        digest.clear();
        decoder.digest(&part, &mut digest).ok()?;
        events.extend(digest.told().map(|(_, event)| without_value(event)));
    }
    Some(events)
}

/// What digests tell of an event: not always the value of a plain access.
fn without_value(mut event: Event) -> Event {
    if let EventKind::Read(access) | EventKind::Write(access) = &mut event.kind {
        access.value = None;
    }
    event
}

/// Reads `bytes`, and if they are a trace, checks that it survives being written.
pub fn check(format: Format, bytes: &[u8]) {
    let mut source = source(format, bytes);
    let told = tell(&mut *source).ok();
    let events = told
        .as_ref()
        .map(|(events, _)| events.iter().copied().map(without_value).collect());
    assert_eq!(digested(format, bytes), events);
    assert_eq!(digested_in_parts(format, bytes), events);
    let Some(told) = told else { return };
    let native = write(Format::Native, &told.0, source.names()).expect("native holds everything");
    assert_eq!(
        tell(&mut *self::source(Format::Native, &native)).expect("just written"),
        told
    );
    // Names that cannot be told apart or have line ends in them may be refused.
    if let Ok(text) = write(format, &told.0, source.names()) {
        let again = tell(&mut *self::source(format, &text)).expect("just written");
        assert_eq!(again.1, told.1);
    }
}

/// Makes all checksums match, so that the fuzzer gets past them.
pub fn resum(bytes: &mut [u8]) {
    if bytes.len() < 16 {
        return;
    }
    bytes[..8].copy_from_slice(b"\x89VTRC\r\n\x1a");
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let mut at = 16;
    while at + 36 <= bytes.len() {
        let payload = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("4 bytes"));
        let end = (at + 36).saturating_add(payload as usize);
        if let Some(payload) = bytes.get(at + 36..end) {
            let sum = crc32fast::hash(payload);
            bytes[at + 28..at + 32].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[at..at + 32]);
        bytes[at + 32..at + 36].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
}
