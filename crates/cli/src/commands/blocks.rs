//! `verdict blocks`: block traces, in which the races of huge traces are found in parallel.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;
use verdict_blocks::{Folder, Index};
use verdict_events::{Names, ThreadId};

use super::block_options::{build_from, problem};
use crate::{CliError, Context, Exit, Format, FormatArgs};

const BUILD_EXAMPLES: &str = "\
Examples:
  verdict blocks build huge.vtrace huge.blocks
  verdict detect huge.blocks --algorithm blocks --workers 8";

const INFO_EXAMPLES: &str = "\
Examples:
  verdict blocks info huge.blocks
  verdict blocks info huge.blocks --format json";

/// What to do with block traces.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
#[command(disable_help_subcommand = true)]
enum Action {
    /// Build a block trace from a trace, in one pass
    Build(BuildArgs),
    /// Say what is in a block trace
    Info(InfoArgs),
}

#[derive(clap::Args, Debug)]
#[command(after_help = BUILD_EXAMPLES)]
struct BuildArgs {
    /// The trace: a file in any known format, compressed or not; `-` is standard input
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// The folder to make: one file for each thread, and an index
    #[arg(value_name = "BLOCKS")]
    blocks: PathBuf,
}

#[derive(clap::Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
struct InfoArgs {
    /// The block trace
    #[arg(value_name = "BLOCKS")]
    blocks: PathBuf,

    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    match &args.action {
        Action::Build(args) => build(args, context),
        Action::Info(args) => info(args, context),
    }
}

fn build(args: &BuildArgs, context: &Context) -> Result<Exit, CliError> {
    let folder = context.create_folder(&args.blocks)?;
    let mut store = Folder::new(folder.path());
    let built = build_from(&args.trace, &mut store, context)?;
    folder
        .finish()
        .map_err(|error| CliError::writing(args.blocks.display(), &error))?;
    context.note(format_args!(
        "{} events of {} threads are {} blocks with {} entries, in {:.1} MB",
        built.trace.events,
        built.trace.threads,
        built.blocks,
        built.entries,
        built.bytes as f64 / 1e6
    ));
    Ok(Exit::Clean)
}

fn info(args: &InfoArgs, context: &Context) -> Result<Exit, CliError> {
    let store = Folder::new(&args.blocks);
    let index = Index::read(&store).map_err(problem)?;
    index.check_files(&store).map_err(problem)?;
    context.report(|out, _| match args.format.format {
        Format::Text => text(&index, out),
        Format::Json => json(&index, out),
    })?;
    Ok(Exit::Clean)
}

fn text(index: &Index, out: &mut dyn Write) -> io::Result<()> {
    let facts = [
        ("events", index.trace.events),
        ("threads", index.trace.threads),
        ("segments", index.trace.segments),
        ("locations", index.trace.locations),
        ("blocks", u64::from(index.blocks)),
        ("entries", index.entries),
        ("places", index.place_count),
        ("units that can race", index.units().len() as u64),
        ("entries that can race", index.records()),
    ];
    for (name, value) in facts {
        writeln!(out, "{name:<22} {value:>12}")?;
    }
    writeln!(
        out,
        "\n{:<22} {:>12} {:>12} {:>12}",
        "thread", "blocks", "entries", "bytes"
    )?;
    for (id, thread) in index.threads.iter().enumerate() {
        let [blocks, entries] = sums(thread);
        let name = index.names.thread(ThreadId(id as u32));
        writeln!(
            out,
            "{name:<22} {blocks:>12} {entries:>12} {:>12}",
            thread.length
        )?;
    }
    Ok(())
}

fn sums(thread: &verdict_blocks::ThreadInfo) -> [u64; 2] {
    let frames = thread.frames.iter();
    frames.fold([0, 0], |[blocks, entries], frame| {
        [blocks + frame.blocks, entries + frame.entries]
    })
}

fn json(index: &Index, out: &mut dyn Write) -> io::Result<()> {
    let thread = |(id, thread): (usize, &verdict_blocks::ThreadInfo)| {
        let [blocks, entries] = sums(thread);
        serde_json::json!({
            "thread": index.names.thread(ThreadId(id as u32)),
            "blocks": blocks,
            "entries": entries,
            "bytes": thread.length,
        })
    };
    let threads: Vec<serde_json::Value> = index.threads.iter().enumerate().map(thread).collect();
    let report = serde_json::json!({
        "schema": "verdict.blocks/1",
        "trace": {
            "events": index.trace.events,
            "threads": index.trace.threads,
            "locations": index.trace.locations,
            "segments": index.trace.segments,
        },
        "blocks": index.blocks,
        "entries": index.entries,
        "places": index.place_count,
        "racing_units": index.units().len(),
        "racing_entries": index.records(),
        "threads": threads,
    });
    writeln!(out, "{report}")
}
