//! `verdict trace info`: what is in a trace, in numbers.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use verdict_events::native::NativeFile;
use verdict_events::{
    Event, EventKind, Format as TraceFormat, TraceError, TraceSource, open, recognise,
};

use super::progress::Progress;
use super::{InputArgs, cannot_read};
use crate::{CliError, Context, Exit, Format, FormatArgs, Paint};

const EXAMPLES: &str = "\
Examples:
  verdict trace info queue.std
  verdict trace info big.vtrace --format json";

/// Which trace, and how to report.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    format: FormatArgs,
}

/// What is counted.
#[derive(Default)]
struct Counts {
    events: u64,
    by_kind: [u64; EventKind::NAMES.len()],
    threads: HashSet<u32>,
    sites: HashSet<u32>,
    locations: HashSet<u64>,
    syncs: HashSet<u64>,
}

/// The file itself.
struct FileFacts {
    name: String,
    format: Option<TraceFormat>,
    bytes: Option<u64>,
    frames: Option<usize>,
    /// Whether the trace has its end.
    complete: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let path = &args.input.trace;
    let mut source = open(path, args.input.from).map_err(cannot_read)?;
    let mut counts = Counts::default();
    let complete = match count(&mut source, &mut counts, context) {
        Ok(()) => true,
        Err(error @ TraceError::Incomplete { .. }) => {
            context.note(error);
            false
        }
        Err(error) => return Err(CliError::bad_input(error)),
    };
    let file = FileFacts::new(path, args.input.from, complete);
    context.report(|out, paint| match args.format.format {
        Format::Text => write_text(out, paint, &file, &counts),
        Format::Json => writeln!(out, "{:#}", to_json(&file, &counts)),
    })?;
    Ok(Exit::Clean)
}

fn count(
    source: &mut dyn TraceSource,
    counts: &mut Counts,
    context: &Context,
) -> Result<(), TraceError> {
    let mut progress = Progress::new(context);
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        batch.iter().for_each(|event| counts.add(event));
        progress.add(batch.len());
    }
}

impl Counts {
    fn add(&mut self, event: &Event) {
        self.events += 1;
        self.by_kind[event.kind.number()] += 1;
        self.threads.insert(event.thread.0);
        self.sites.insert(event.site.0);
        match event.kind {
            EventKind::Read(access)
            | EventKind::Write(access)
            | EventKind::AtomicLoad(access, _)
            | EventKind::AtomicStore(access, _)
            | EventKind::AtomicRmw(access, _) => {
                self.locations.insert(access.addr.0);
            }
            EventKind::Acquire(id, _)
            | EventKind::Release(id, _)
            | EventKind::Wait(id)
            | EventKind::Notify(id)
            | EventKind::BarrierEnter(id)
            | EventKind::BarrierLeave(id)
            | EventKind::SemaphorePost(id)
            | EventKind::SemaphoreWait(id) => {
                self.syncs.insert(id.0);
            }
            EventKind::Fork(thread) | EventKind::Join(thread) => {
                self.threads.insert(thread.0);
            }
            _ => {}
        }
    }

    fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        EventKind::NAMES
            .into_iter()
            .zip(self.by_kind)
            .filter(|&(_, count)| count > 0)
    }
}

impl FileFacts {
    fn new(path: &Path, from: Option<TraceFormat>, complete: bool) -> Self {
        if path == Path::new("-") {
            return Self {
                name: "<stdin>".to_owned(),
                format: from,
                bytes: None,
                frames: None,
                complete,
            };
        }
        let format = from.or_else(|| recognise(path).ok());
        // A compressed native file cannot be entered, so nothing is known of its frames.
        let native = (format == Some(TraceFormat::Native))
            .then(|| NativeFile::open(path).ok())
            .flatten();
        let frames = native
            .map(|file| file.frames())
            .filter(|&frames| frames > 0);
        Self {
            name: path.display().to_string(),
            format,
            bytes: fs::metadata(path).ok().map(|metadata| metadata.len()),
            frames,
            complete,
        }
    }

    fn bytes_per_event(&self, counts: &Counts) -> Option<f64> {
        let bytes = self.bytes.filter(|_| counts.events > 0)?;
        Some(bytes as f64 / counts.events as f64)
    }
}

fn write_text(
    out: &mut dyn Write,
    paint: Paint,
    file: &FileFacts,
    counts: &Counts,
) -> io::Result<()> {
    let mut facts: Vec<String> = Vec::new();
    facts.extend(file.format.map(|format| format.to_string()));
    facts.extend(file.bytes.map(|bytes| format!("{} bytes", grouped(bytes))));
    facts.extend(
        file.bytes_per_event(counts)
            .map(|bytes| format!("{bytes:.2} an event")),
    );
    facts.extend(
        file.frames
            .map(|frames| format!("{} frames", grouped(frames as u64))),
    );
    if !file.complete {
        facts.push("without end".to_owned());
    }
    write!(out, "{}", paint.bold(&file.name))?;
    match facts.is_empty() {
        true => writeln!(out)?,
        false => writeln!(out, ": {}", facts.join(", "))?,
    }
    for (what, number) in [
        ("events", counts.events),
        ("threads", counts.threads.len() as u64),
        ("sites", counts.sites.len() as u64),
        ("locations", counts.locations.len() as u64),
        ("locks and other objects", counts.syncs.len() as u64),
    ] {
        writeln!(out, "{:>16}  {what}", grouped(number))?;
    }
    writeln!(out)?;
    for (kind, number) in counts.kinds() {
        writeln!(out, "{:>16}  {kind}", grouped(number))?;
    }
    Ok(())
}

fn to_json(file: &FileFacts, counts: &Counts) -> Value {
    let kinds: Map<String, Value> = counts
        .kinds()
        .map(|(kind, count)| (kind.to_owned(), json!(count)))
        .collect();
    json!({
        "schema": "verdict.trace-info/1",
        "file": file.name,
        "format": file.format.map(TraceFormat::name),
        "complete": file.complete,
        "bytes": file.bytes,
        "bytes_per_event": file.bytes_per_event(counts).map(|bytes| (bytes * 1000.0).round() / 1000.0),
        "frames": file.frames,
        "events": counts.events,
        "threads": counts.threads.len(),
        "sites": counts.sites.len(),
        "locations": counts.locations.len(),
        "syncs": counts.syncs.len(),
        "kinds": kinds,
    })
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
