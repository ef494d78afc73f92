//! Who ran when, as the recording has it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use verdict_recording::{Entry, ReadError, Reader};

use crate::CliError;
use crate::commands::exec::stats::grouped;

/// One turn a line, up to `instructions`: counted over all threads, and in the thread itself, as `--until` counts.
pub(crate) fn render(path: &Path, instructions: u64) -> Result<String, CliError> {
    let read = |source| turns(source, instructions);
    File::open(path)
        .map_err(ReadError::Io)
        .and_then(|file| read(BufReader::new(file)))
        .map_err(|error| CliError::bad_input(format_args!("{} {error}", path.display())))
}

fn turns(source: impl Read, instructions: u64) -> Result<String, ReadError> {
    let mut text = format!(
        "{:>18}  {:>6}  {:>18}\n",
        "instruction", "thread", "its own"
    );
    let mut retired: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut thread, mut from) = (0, 0);
    let mut reader = Reader::open(source)?;
    let mut turn = |thread: u32, from: u64, to: u64| {
        let own = retired.entry(thread).or_default();
        let _ = writeln!(
            text,
            "{:>18}  {thread:>6}  {:>18}",
            grouped(from),
            grouped(*own)
        );
        *own += to - from;
    };
    while let Some(stamped) = reader.next()? {
        match stamped.entry {
            Entry::Switch { thread: next, .. } if stamped.at <= instructions => {
                turn(thread, from, stamped.at);
                (thread, from) = (next, stamped.at);
            }
            _ => {}
        }
    }
    turn(thread, from, instructions);
    Ok(text)
}
