//! Opens a trace file of any supported format.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use crate::input::Input;
use crate::native::{MAGIC, NativeReader};
use crate::text::csv::{self, CsvReader};
use crate::text::roadrunner::RoadRunnerReader;
use crate::text::rv_predict::RvPredictReader;
use crate::text::std::StdReader;
use crate::{TraceError, TraceSource};

/// The trace formats that can be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// verdict's own binary format.
    Native,
    /// RAPID's STD text: `T0|w(V1)|13`.
    Std,
    /// verdict's comma-separated values, which hold every event.
    Csv,
    /// RoadRunner's event text: `@  Rd(0,x)  null  Test.java:12`.
    RoadRunner,
    /// The plain text that RV-Predict/C's rvpdump prints: `tid 1.0 pc 0x400b2a load 4 0x1 <- [0x602084]`.
    RvPredict,
}

impl Format {
    /// Every format, in the order in which they are tried on unknown content.
    pub const ALL: [Format; 5] = [
        Format::Native,
        Format::Std,
        Format::Csv,
        Format::RoadRunner,
        Format::RvPredict,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Native => "native",
            Format::Std => "std",
            Format::Csv => "csv",
            Format::RoadRunner => "roadrunner",
            Format::RvPredict => "rv-predict",
        }
    }

    /// Recognises a format by the first bytes of a file.
    fn of_content(start: &[u8]) -> Option<Self> {
        // A native trace that was cut within its signature is still one, and says so when read.
        let signature = &start[..start.len().min(MAGIC.len())];
        if !signature.is_empty() && MAGIC.starts_with(signature) {
            return Some(Format::Native);
        }
        let line = first_line(start)?;
        Self::ALL.into_iter().find(|format| match format {
            Format::Native => false,
            Format::Std => StdReader::recognises(line),
            Format::Csv => line == csv::HEADER.as_bytes(),
            Format::RoadRunner => RoadRunnerReader::recognises(line),
            Format::RvPredict => RvPredictReader::recognises(line),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Format::name).join(", ");
            format!("`{text}` is no trace format; known are {names}")
        })
    }
}

/// Opens a trace. `-` is standard input; gzip and zstd are decompressed; without `format` the format
/// is recognised by content.
pub fn open(
    path: &Path,
    format: Option<Format>,
) -> Result<Box<dyn TraceSource + Send>, TraceError> {
    read_input(Input::open(path)?, format)
}

/// As [`open()`], with the bytes of the file from any stream; errors call it `file`.
pub fn open_stream(
    file: String,
    bytes: Box<dyn Read + Send>,
    format: Option<Format>,
) -> Result<Box<dyn TraceSource + Send>, TraceError> {
    read_input(Input::new(file, bytes)?, format)
}

fn read_input(
    input: Input,
    format: Option<Format>,
) -> Result<Box<dyn TraceSource + Send>, TraceError> {
    let format = match format {
        Some(format) => format,
        None => recognise_input(&input)?,
    };
    read_as(format, input.file, input.bytes)
}

/// Reads a trace of a known format, not compressed, from any stream; errors call it `file`.
pub fn read_as(
    format: Format,
    file: String,
    bytes: Box<dyn Read + Send>,
) -> Result<Box<dyn TraceSource + Send>, TraceError> {
    Ok(match format {
        Format::Native => Box::new(NativeReader::new(file, bytes)?),
        Format::Std => Box::new(StdReader::new(file, bytes)),
        Format::Csv => Box::new(CsvReader::new(file, bytes)),
        Format::RoadRunner => Box::new(RoadRunnerReader::new(file, bytes)),
        Format::RvPredict => Box::new(RvPredictReader::new(file, bytes)),
    })
}

/// The format of a trace file, by its content.
pub fn recognise(path: &Path) -> Result<Format, TraceError> {
    recognise_input(&Input::open(path)?)
}

fn recognise_input(input: &Input) -> Result<Format, TraceError> {
    Format::of_content(&input.start).ok_or_else(|| TraceError::Format {
        file: input.file.clone(),
        problem: match first_line(&input.start) {
            None => "expected a trace, found nothing".to_owned(),
            Some(line) => format!(
                "expected a trace in one of the formats {}, found `{}`",
                Format::ALL.map(Format::name).join(", "),
                crate::text::shown(line)
            ),
        },
    })
}

/// The first line that is not empty, without its end.
fn first_line(start: &[u8]) -> Option<&[u8]> {
    start
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .find(|line| !line.trim_ascii().is_empty())
}
