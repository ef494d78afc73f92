//! `verdict cluster merge`: one report from the results of all tasks.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use verdict_blocks::Index;
use verdict_blocks::cluster::{Merge, merge_results};

use super::{cluster_problem, open};
use crate::commands::block_options::problem;
use crate::commands::detect::{FailOn, tell_blocks};
use crate::{CliError, Context, Exit, Format, FormatArgs};

const EXAMPLES: &str = "\
Examples:
  verdict cluster merge huge.blocks results
  verdict cluster merge huge.blocks results/*.json --format json";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The block trace that was analysed
    #[arg(value_name = "BLOCKS")]
    blocks: String,

    /// What workers wrote, in any order
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,

    /// When races make the command end with exit code 1
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    fail_on: FailOn,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let store = open(&args.blocks).map_err(problem)?;
    let index = Index::read(&*store).map_err(problem)?;
    let format = args.format.format;
    tell(&index, &args.results, format, args.fail_on, context)
}

/// Reports what is in results.
pub(super) fn tell(
    index: &Index,
    results: &[PathBuf],
    format: Format,
    fail_on: FailOn,
    context: &Context,
) -> Result<Exit, CliError> {
    let mut merge = Merge::default();
    for path in results {
        add(&mut merge, path)?;
    }
    let (findings, by) = merge_results(index, merge).map_err(cluster_problem)?;
    tell_blocks(findings, by, &index.names, format, fail_on, context)
}

fn add(merge: &mut Merge, path: &Path) -> Result<(), CliError> {
    let shown = path.display().to_string();
    let file = File::open(path)
        .map_err(|error| CliError::bad_input(format_args!("{shown}: cannot be read: {error}")))?;
    merge
        .add(&shown, &mut BufReader::new(file))
        .map_err(cluster_problem)
}
