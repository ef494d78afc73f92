//! Where events go: the seam between whatever makes traces and the formats that hold them.

use std::io::Write;

use crate::native::NativeWriter;
use crate::text::{csv::CsvWriter, roadrunner::RoadRunnerWriter, std::StdWriter};
use crate::{Event, Format, Names, WriteError};

/// Writes a trace in some format.
pub trait TraceWriter {
    /// Appends events, whose ids `names` names. An event that the format cannot express is an error.
    fn write(&mut self, events: &[Event], names: &dyn Names) -> Result<(), WriteError>;

    /// Writes what is still waiting and what ends a trace.
    fn finish(self: Box<Self>, names: &dyn Names) -> Result<(), WriteError>;
}

impl<W: Write> TraceWriter for NativeWriter<W> {
    fn write(&mut self, events: &[Event], names: &dyn Names) -> Result<(), WriteError> {
        NativeWriter::write(self, events, names)
    }

    fn finish(self: Box<Self>, names: &dyn Names) -> Result<(), WriteError> {
        NativeWriter::finish(*self, names).map(|_| ())
    }
}

/// Starts a trace of the given format. `out` should be buffered.
pub fn create<'a>(
    format: Format,
    out: impl Write + 'a,
) -> Result<Box<dyn TraceWriter + 'a>, WriteError> {
    Ok(match format {
        Format::Native => Box::new(NativeWriter::new(out)?),
        Format::Std => Box::new(StdWriter::new(out)),
        Format::Csv => Box::new(CsvWriter::new(out)?),
        Format::RoadRunner => Box::new(RoadRunnerWriter::new(out)),
        Format::RvPredict => {
            return Err(WriteError::ReadOnly {
                format: "rv-predict",
            });
        }
    })
}
