//! `verdict cluster plan`: the tasks of a detection.

use std::io::Write;
use std::path::{Path, PathBuf};

use verdict_blocks::cluster::{TaskLine, task_lines};
use verdict_blocks::{Cuts, Index, PlanOptions, Workers, plan, read_order};
use verdict_detect::PairBy;

use super::open;
use crate::commands::block_options::{BlockOptions, problem};
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict cluster plan huge.blocks -o tasks --workers 64
  verdict cluster plan huge.blocks -o tasks --strategy pairs --threads main,3";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The block trace, where workers will find it
    #[arg(value_name = "BLOCKS")]
    blocks: String,

    /// The file to write, one task a line
    #[arg(short, long, value_name = "TASKS")]
    output: PathBuf,

    /// Tell races of different threads apart, though their sites are the same
    #[arg(long)]
    per_thread: bool,

    #[command(flatten)]
    options: BlockOptions,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let (lines, _) = make(&args.blocks, args.per_thread, &args.options)?;
    write(&lines, &args.output, context)?;
    context.note(format_args!("{} tasks", lines.len()));
    Ok(Exit::Clean)
}

/// The tasks for a block trace, and its index.
pub(super) fn make(
    blocks: &str,
    per_thread: bool,
    options: &BlockOptions,
) -> Result<(Vec<TaskLine>, Index), CliError> {
    let blocks = absolute(blocks)?;
    let store = open(&blocks).map_err(problem)?;
    let index = Index::read(&*store).map_err(problem)?;
    index.check_files(&*store).map_err(problem)?;
    let threads = options.thread_numbers(&index)?;
    let all: Vec<u32> = match threads[..] {
        [] => (0..index.threads.len() as u32).collect(),
        _ => threads.clone(),
    };
    let order =
        read_order(&*store, &index, &all, &Workers::new(options.workers())).map_err(problem)?;
    let plan_options = PlanOptions {
        workers: options.workers(),
        strategy: options.strategy(),
        threads,
        cuts: Cuts::Balanced,
    };
    let tasks = plan(&index, &order, &plan_options);
    let by = match per_thread {
        true => PairBy::ThreadAndSite,
        false => PairBy::Site,
    };
    Ok((task_lines(&index, &blocks, by, &tasks), index))
}

pub(super) fn write(lines: &[TaskLine], output: &Path, context: &Context) -> Result<(), CliError> {
    let file = context.create_file(output)?;
    let mut buffer = std::io::BufWriter::new(file);
    let mut all = lines.iter();
    let written = all.try_for_each(|line| {
        serde_json::to_writer(&mut buffer, line)?;
        buffer.write_all(b"\n")
    });
    let finished = written
        .and_then(|()| {
            buffer
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)
        })
        .and_then(verdict_files::WholeFile::finish);
    finished.map_err(|error| CliError::writing(output.display(), &error))
}

/// Workers run elsewhere: a path must mean the same there.
fn absolute(blocks: &str) -> Result<String, CliError> {
    let path = std::path::absolute(blocks)
        .map_err(|error| CliError::bad_input(format_args!("{blocks}: {error}")))?;
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(CliError::bad_input(format_args!(
            "{}: the path is not text in UTF-8",
            path.display()
        ))),
    }
}
