//! What an exploration came to, told.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use verdict_protocol::LaterInput;

use super::super::exec::stats::grouped;
use super::outcomes::{Ending, Execution, Group, Outcomes};
use crate::{Format, Paint};

/// Everything there is to tell.
pub(super) struct Told<'a> {
    pub(super) recording: &'a Path,
    /// Instructions of all threads at which the recording was left.
    pub(super) instructions: u64,
    pub(super) quantum: u64,
    pub(super) input: LaterInput,
    pub(super) outcomes: &'a Outcomes,
    /// Recordings, one for each outcome; none where none were wanted.
    pub(super) kept: &'a [PathBuf],
}

impl Told<'_> {
    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        format: Format,
    ) -> io::Result<()> {
        match format {
            Format::Json => writeln!(out, "{:#}", self.to_json()),
            Format::Text => self.write_text(out, paint),
        }
    }

    fn write_text(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let executions = self.outcomes.executions();
        writeln!(
            out,
            "{}: {} executions from instruction {} on, each with a random schedule of its own",
            paint.bold(&self.recording.display().to_string()),
            grouped(executions.len() as u64),
            grouped(self.instructions)
        )?;
        for (index, group) in self.outcomes.groups().iter().enumerate() {
            writeln!(
                out,
                "{:>9}  {}, {}, for example with seed {}{}",
                grouped(group.executions),
                group.ending.words,
                output(group),
                group.seed,
                self.kept
                    .get(index)
                    .map_or_else(String::new, |path| format!(" ({})", path.display()))
            )?;
        }
        let missing = executions
            .iter()
            .filter(|execution| execution.input_missing > 0)
            .count();
        writeln!(
            out,
            "Input after that moment: {}; {} of the executions asked for input that is not there.",
            policy(self.input),
            grouped(missing as u64)
        )
    }

    fn to_json(&self) -> Value {
        let groups = self.outcomes.groups();
        let group = |(index, group): (usize, &Group)| {
            json!({
                "ending": ending(&group.ending),
                "output_bytes": group.output_bytes,
                "output_hash": hex(group.output_hash),
                "last_line": group.last_line,
                "executions": group.executions,
                "seed": group.seed,
                "recording": self.kept.get(index),
            })
        };
        let execution = |execution: &Execution| {
            json!({
                "seed": execution.seed,
                "ending": ending(&execution.ending),
                "instructions": execution.instructions,
                "switches": execution.switches,
                "switches_hash": hex(execution.switches_hash),
                "output_bytes": execution.output_bytes,
                "output_hash": hex(execution.output_hash),
                "input_missing": execution.input_missing,
            })
        };
        json!({
            "recording": self.recording,
            "left_at_instruction": self.instructions,
            "schedule": "random",
            "quantum": self.quantum,
            "input": self.input,
            "outcomes": groups.iter().enumerate().map(group).collect::<Vec<_>>(),
            "executions": self.outcomes.executions().iter().map(execution).collect::<Vec<_>>(),
        })
    }
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

fn ending(ending: &Ending) -> Value {
    json!({ "kind": ending.kind, "number": ending.number, "words": ending.words })
}

fn output(group: &Group) -> String {
    match group.output_bytes {
        0 => "without output".to_owned(),
        bytes if group.last_line.is_empty() => format!("{} bytes of output", grouped(bytes)),
        _ => format!("output \"{}\"", group.last_line),
    }
}

fn policy(input: LaterInput) -> &'static str {
    match input {
        LaterInput::Recorded => "what the recording has, in order, then the end of file",
        LaterInput::EndOfFile => "the end of file",
        LaterInput::Stop => "none, an execution that asks for some stops",
    }
}
