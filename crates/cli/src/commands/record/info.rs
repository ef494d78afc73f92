//! `verdict record info`: what is inside a recording, in numbers.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use verdict_recording::{Ending, Info};

use crate::commands::exec::stats::grouped;
use crate::{CliError, Context, Exit, Format, FormatArgs, Paint};

const EXAMPLES: &str = "\
Examples:
  verdict record info queue.vrec
  verdict record info queue.vrec --format json";

/// Which recording, and how to report.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: PathBuf,

    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let (_, info) = open(&args.recording)?;
    context.report(|out, paint| match args.format.format {
        Format::Text => write_text(out, paint, &args.recording, &info),
        Format::Json => writeln!(out, "{:#}", to_json(&args.recording, &info)),
    })?;
    Ok(Exit::Clean)
}

/// Opens a recording and reads it to its end: after this, every byte of it has been checked.
pub(crate) fn open(path: &Path) -> Result<(File, Info), CliError> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::bad_input(format_args!("{} {error}", path.display()))
    };
    let cannot = |error: io::Error| {
        CliError::bad_input(format_args!("{}: cannot be read: {error}", path.display()))
    };
    let file = File::open(path).map_err(cannot)?;
    let copy = file.try_clone().map_err(cannot)?;
    let info = Info::of(BufReader::new(copy)).map_err(|error| failed(&error))?;
    Ok((file, info))
}

/// Words as a shell takes them.
pub(crate) fn quoted(words: &[Vec<u8>]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    let quote = |word: &Vec<u8>| {
        let text = String::from_utf8_lossy(word);
        if !word.is_empty() && word.iter().copied().all(plain) {
            return text.into_owned();
        }
        format!("'{}'", text.replace('\'', r"'\''"))
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn ended(info: &Info) -> String {
    match &info.ending {
        Ending::Complete(end) => end.to_string(),
        Ending::Cut { at, .. } => format!(
            "cut at instruction {at}: the writer was killed or the disk was full; it replays up to there"
        ),
    }
}

fn write_text(out: &mut dyn Write, paint: Paint, path: &Path, info: &Info) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} bytes, {:.4} bits per instruction",
        paint.bold(&path.display().to_string()),
        grouped(info.bytes),
        info.bits_per_instruction()
    )?;
    let header = &info.header;
    writeln!(out, "{:<14} {}", "command", quoted(&header.argv))?;
    for program in &info.replaced_by {
        let program = quoted(std::slice::from_ref(program));
        writeln!(out, "{:<14} {program}", "replaced by")?;
    }
    let cwd = quoted(std::slice::from_ref(&header.cwd));
    writeln!(out, "{:<14} {cwd}", "in")?;
    writeln!(out, "{:<14} {}", "on", header.cpu)?;
    writeln!(out, "{:<14} verdict {}", "by", header.writer)?;
    writeln!(
        out,
        "{:<14} {:?}, seed {}, quantum {}",
        "schedule", header.schedule, header.seed, header.quantum
    )?;
    writeln!(out, "{:<14} {}", "ended", ended(info))?;
    for (what, number) in [
        ("instructions", info.instructions),
        ("threads", u64::from(info.threads)),
        ("switches", info.switches()),
    ] {
        writeln!(out, "{:>16}  {what}", grouped(number))?;
    }
    section(out, "entries (and their bytes before compression)")?;
    for (kind, count) in &info.kinds {
        let (entries, bytes) = (grouped(count.entries), grouped(count.bytes));
        writeln!(out, "{entries:>16}  {kind} ({bytes})")?;
    }
    if !info.calls.is_empty() {
        section(out, "system calls that the outside answered")?;
    }
    for (name, count) in calls(info) {
        writeln!(out, "{:>16}  {name}", grouped(count))?;
    }
    if !info.signals.is_empty() {
        section(out, "signals from outside")?;
    }
    for (number, count) in &info.signals {
        writeln!(out, "{:>16}  signal {number}", grouped(*count))?;
    }
    section(out, "files")?;
    for file in &info.files {
        let attached = if file.attached { ", attached" } else { "" };
        let path = quoted(std::slice::from_ref(&file.identity.path));
        let size = grouped(file.identity.size);
        writeln!(out, "{size:>16}  {path}{attached}")?;
    }
    Ok(())
}

fn section(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "\n{title}")
}

/// By name, in the order of names.
fn calls(info: &Info) -> Vec<(String, u64)> {
    let named = |(&number, &count): (&u32, &u64)| {
        (verdict_executor::syscall_name(u64::from(number)), count)
    };
    let mut calls: Vec<(String, u64)> = info.calls.iter().map(named).collect();
    calls.sort();
    calls
}

fn to_json(path: &Path, info: &Info) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let header = &info.header;
    json!({
        "schema": "verdict.recording-info/1",
        "file": path.display().to_string(),
        "bytes": info.bytes,
        "bits_per_instruction": info.bits_per_instruction(),
        "writer": header.writer,
        "argv": header.argv.iter().map(|word| text(word)).collect::<Vec<_>>(),
        "replaced_by": info.replaced_by.iter().map(|word| text(word)).collect::<Vec<_>>(),
        "cwd": text(&header.cwd),
        "cpu": header.cpu.to_string(),
        "seed": header.seed,
        "quantum": header.quantum,
        "complete": matches!(info.ending, Ending::Complete(_)),
        "ended": ended(info),
        "instructions": info.instructions,
        "threads": info.threads,
        "switches": info.switches(),
        "entries": info.kinds.iter().map(|(kind, count)| {
            ((*kind).to_owned(), json!({ "entries": count.entries, "bytes": count.bytes }))
        }).collect::<serde_json::Map<_, _>>(),
        "calls": calls(info).into_iter().map(|(name, count)| (name, json!(count))).collect::<serde_json::Map<_, _>>(),
        "signals": info.signals.iter().map(|(number, count)| (number.to_string(), json!(count))).collect::<serde_json::Map<_, _>>(),
        "files": info.files.iter().map(|file| json!({
            "path": text(&file.identity.path),
            "size": file.identity.size,
            "attached": file.attached,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_can_be_pasted() {
        let words = ["./a", "", "it's", "a b", "--x=1"].map(|word| word.as_bytes().to_vec());
        assert_eq!(quoted(&words), r"./a '' 'it'\''s' 'a b' --x=1");
    }
}
