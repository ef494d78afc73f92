//! `verdict cluster run`: plan, run on Apache Spark, merge.
//!
//! The folder beside the block trace holds the tasks, one result for each that is done, and what Spark said. It goes away with
//! the report; after a failure it stays, and the same command continues from it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use verdict_blocks::cluster::TaskLine;

use super::{merge, plan};
use crate::commands::block_options::BlockOptions;
use crate::commands::detect::FailOn;
use crate::progress::Progress;
use crate::{CliError, Context, Exit, FormatArgs};

/// What runs on the driver.
const PROGRAM: &str = include_str!("../../../../../cluster/spark/verdict_spark.py");

const EXAMPLES: &str = "\
Examples:
  verdict cluster run huge.blocks --master spark://head:7077 --workers 64
  verdict cluster run huge.blocks --master 'local-cluster[2,1,1024]' --spark-submit target/spark/venv/bin/spark-submit";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The block trace, on a path that all machines of the cluster have
    #[arg(value_name = "BLOCKS")]
    blocks: String,

    /// The cluster, as `spark-submit` takes it
    #[arg(long, value_name = "URL")]
    master: String,

    /// The program that hands work to Spark
    #[arg(long, value_name = "PATH", default_value = "spark-submit")]
    spark_submit: PathBuf,

    /// The `verdict` of the machines of the cluster [default: this one]
    #[arg(long, value_name = "PATH")]
    worker: Option<PathBuf>,

    /// Where tasks and results are kept until the report is there [default: BLOCKS with `.work` added]
    #[arg(long, value_name = "FOLDER")]
    work: Option<PathBuf>,

    /// Tell races of different threads apart, though their sites are the same
    #[arg(long)]
    per_thread: bool,

    /// When races make the command end with exit code 1
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    fail_on: FailOn,

    #[command(flatten)]
    options: BlockOptions,

    #[command(flatten)]
    format: FormatArgs,
}

/// The files of a run.
struct Work {
    folder: PathBuf,
    tasks: PathBuf,
    results: PathBuf,
    program: PathBuf,
    log: PathBuf,
}

impl Work {
    fn new(args: &Args) -> Work {
        let beside = || PathBuf::from(format!("{}.work", args.blocks.trim_end_matches('/')));
        let folder = args.work.clone().unwrap_or_else(beside);
        let file = |name: &str| folder.join(name);
        Work {
            tasks: file("tasks"),
            results: file("results"),
            program: file("verdict_spark.py"),
            log: file("spark.log"),
            folder,
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let (lines, index) = plan::make(&args.blocks, args.per_thread, &args.options)?;
    let work = Work::new(args);
    let writing = |error: std::io::Error| CliError::writing(work.folder.display(), &error);
    fs::create_dir_all(&work.folder).map_err(writing)?;
    fs::write(&work.program, PROGRAM).map_err(writing)?;
    plan::write(&lines, &work.tasks, context)?;
    submit(args, &work, context)?;
    let result = |line: &TaskLine| {
        let name = format!("task-{}.json", line.task.number);
        work.results.join(name)
    };
    let results: Vec<PathBuf> = lines.iter().map(result).collect();
    let format = args.format.format;
    let exit = merge::tell(&index, &results, format, args.fail_on, context)?;
    fs::remove_dir_all(&work.folder).map_err(writing)?;
    Ok(exit)
}

fn submit(args: &Args, work: &Work, context: &Context) -> Result<(), CliError> {
    let log =
        File::create(&work.log).map_err(|error| CliError::writing(work.log.display(), &error))?;
    let worker = match &args.worker {
        Some(worker) => worker.clone(),
        None => std::env::current_exe().map_err(|error| {
            CliError::cannot_run(format_args!(
                "where this program is cannot be told: {error}"
            ))
        })?,
    };
    let mut command = Command::new(&args.spark_submit);
    if let Some(python) = python_beside(&args.spark_submit) {
        command.env("PYSPARK_PYTHON", python);
    }
    command.arg("--master").arg(&args.master);
    command.args(["--conf", "spark.ui.enabled=false"]);
    if args.master.starts_with("local") {
        // A machine that cannot be reached by its own name can still work alone.
        command.args(["--conf", "spark.driver.host=127.0.0.1"]);
        command.args(["--conf", "spark.driver.bindAddress=127.0.0.1"]);
    }
    command.arg(&work.program);
    command.arg("--tasks").arg(&work.tasks);
    command.arg("--results").arg(&work.results);
    command.arg("--worker").arg(worker);
    command.args(["--max-memory", &args.options.memory_max().to_string()]);
    command.stdout(Stdio::piped()).stderr(log);
    let child = command.spawn().map_err(|error| {
        CliError::cannot_run(format_args!(
            "{}: cannot be run: {error}",
            args.spark_submit.display()
        ))
        .with_help(
            "`cluster/spark/prepare FOLDER` installs Spark; `--spark-submit` says where it is",
        )
    })?;
    follow(child, work, context)
}

/// The Python that Spark was installed into, unless the user has chosen one: any other may not have its modules.
fn python_beside(spark_submit: &Path) -> Option<PathBuf> {
    if std::env::var_os("PYSPARK_PYTHON").is_some() {
        return None;
    }
    let python = std::path::absolute(spark_submit)
        .ok()?
        .with_file_name("python3");
    python.is_file().then_some(python)
}

/// Shows how far Spark is, and waits for its end.
fn follow(mut child: Child, work: &Work, context: &Context) -> Result<(), CliError> {
    let mut progress = Progress::new(context);
    let mut problem = None;
    let output = child.stdout.take().expect("it is piped");
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["progress", done, total, fraction] => {
                if let (Ok(done), Ok(total), Ok(fraction)) =
                    (done.parse(), total.parse(), fraction.parse())
                {
                    progress.tasks(done, total, fraction);
                }
            }
            ["error", ..] => problem = Some(line["error ".len()..].to_owned()),
            _ => {}
        }
    }
    let ended = child.wait().map_err(|error| {
        CliError::cannot_run(format_args!("Spark cannot be waited for: {error}"))
    })?;
    if ended.success() {
        return Ok(());
    }
    let what = problem.unwrap_or_else(|| format!("Spark ended with {ended}"));
    Err(CliError::cannot_run(what).with_help(help(&work.log)))
}

fn help(log: &Path) -> String {
    format!(
        "{} has what Spark said; the same command continues with the tasks that are not done",
        log.display()
    )
}
