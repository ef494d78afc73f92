//! Opens a trace file of any supported format.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::input::Input;
use crate::text::std::StdReader;
use crate::{TraceError, TraceSource};

/// The trace formats that can be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// RAPID's STD text: `T0|w(V1)|13`.
    Std,
}

impl Format {
    /// Every format, in the order in which they are tried on unknown content.
    pub const ALL: [Format; 1] = [Format::Std];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Std => "std",
        }
    }

    /// Recognises a format by the first bytes of a file.
    fn of_content(start: &[u8]) -> Option<Self> {
        let line = first_line(start)?;
        StdReader::recognises(line).then_some(Format::Std)
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
pub fn open(path: &Path, format: Option<Format>) -> Result<Box<dyn TraceSource>, TraceError> {
    let input = Input::open(path)?;
    let format = match format {
        Some(format) => format,
        None => recognise(&input)?,
    };
    Ok(match format {
        Format::Std => Box::new(StdReader::new(input.file, input.bytes)),
    })
}

fn recognise(input: &Input) -> Result<Format, TraceError> {
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
