//! Where a trace is written, and in which format.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use verdict_events::{Format, TraceError, TraceSource, TraceWriter, WriteError, create};

use super::format_parser;
use super::progress::Progress;
use crate::{CliError, Context};

/// The trace to write.
#[derive(clap::Args, Debug)]
pub(super) struct OutputArgs {
    /// Where to write; `-` is standard output
    #[arg(value_name = "OUT")]
    pub(super) out: PathBuf,

    /// The format to write, instead of finding out by the name: .vtrace, .std, .csv, .rr
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(super) to: Option<Format>,
}

const BUFFER_BYTES: usize = 1 << 20;

/// Why copying stopped.
enum Stopped {
    Reading(TraceError),
    Writing(WriteError),
}

impl OutputArgs {
    pub(super) fn format(&self) -> Result<Format, CliError> {
        if let Some(format) = self.to {
            return Ok(format);
        }
        let extension = self.out.extension().and_then(|name| name.to_str());
        match extension {
            Some("vtrace") => Ok(Format::Native),
            Some("std") => Ok(Format::Std),
            Some("csv") => Ok(Format::Csv),
            Some("rr") => Ok(Format::RoadRunner),
            _ => Err(CliError::bad_input(format_args!(
                "{}: the name does not say which format to write",
                self.out.display()
            ))
            .with_help("`--to native` (or std, csv, roadrunner) does")),
        }
    }

    /// Writes all that `source` delivers. A source that ends before its end mark is written as far as it goes.
    pub(super) fn write(
        &self,
        source: &mut dyn TraceSource,
        context: &Context,
    ) -> Result<(), CliError> {
        let format = self.format()?;
        let stopped = if self.out == Path::new("-") {
            let mut stopped = Ok(());
            context.report(|out, _| {
                stopped = copy(source, format, out, context);
                Ok(())
            })?;
            stopped
        } else {
            self.write_file(source, format, context)?
        };
        let shown = match self.out == Path::new("-") {
            true => "standard output".to_owned(),
            false => self.out.display().to_string(),
        };
        match stopped {
            Ok(()) => Ok(()),
            Err(Stopped::Reading(error)) => Err(reading_error(&error, &shown)),
            Err(Stopped::Writing(WriteError::Io(error))) => Err(CliError::writing(shown, &error)),
            Err(Stopped::Writing(error)) => {
                Err(CliError::bad_input(format_args!("{shown}: {error}")))
            }
        }
    }

    fn write_file(
        &self,
        source: &mut dyn TraceSource,
        format: Format,
        context: &Context,
    ) -> Result<Result<(), Stopped>, CliError> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, context.create_file(&self.out)?);
        let stopped = copy(source, format, &mut out, context);
        if let Ok(()) | Err(Stopped::Reading(TraceError::Incomplete { .. })) = stopped {
            let whole = out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error);
            whole
                .and_then(verdict_files::WholeFile::finish)
                .map_err(|error| CliError::writing(self.out.display(), &error))?;
        }
        Ok(stopped)
    }
}

fn copy<'a>(
    source: &mut dyn TraceSource,
    format: Format,
    out: impl std::io::Write + 'a,
    context: &Context,
) -> Result<(), Stopped> {
    let mut writer: Box<dyn TraceWriter + 'a> = create(format, out).map_err(Stopped::Writing)?;
    let mut progress = Progress::new(context);
    let mut batch = Vec::new();
    let end = loop {
        match source.next_batch(&mut batch) {
            Ok(()) if batch.is_empty() => break Ok(()),
            Ok(()) => {
                writer
                    .write(&batch, source.names())
                    .map_err(Stopped::Writing)?;
                progress.add(batch.len());
            }
            Err(error @ TraceError::Incomplete { .. }) => break Err(Stopped::Reading(error)),
            Err(error) => return Err(Stopped::Reading(error)),
        }
    };
    writer.finish(source.names()).map_err(Stopped::Writing)?;
    end
}

fn reading_error(error: &TraceError, shown: &str) -> CliError {
    let problem = CliError::bad_input(error);
    match error {
        TraceError::Incomplete { .. } => {
            problem.with_help(format_args!("the whole events were written to {shown}"))
        }
        _ => problem,
    }
}
