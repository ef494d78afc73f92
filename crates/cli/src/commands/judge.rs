//! `verdict classify`, and what it has in common with `verdict confirm`: what the races of a program can do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use verdict_detect::{Algorithm, PairBy};
use verdict_findings::{ProgramFindings, Race};
use verdict_launch::LaunchOptions;
use verdict_protocol::{ExecutorConfig, World};
use verdict_races::{DetectRequest, ProgramError, detect_program, look_closer, to_findings};
use verdict_report::{ReportOptions, findings_text};

use super::detect::colours;
use super::exec::{ending, stats};
use super::run_options::ScheduleArgs;
use super::shown::from_here;
use crate::progress::Progress;
use crate::{CliError, Context, Exit, Format, FormatArgs};

const CLASSIFY_EXAMPLES: &str = "\
Examples:
  verdict classify -- ./queue
  verdict classify --schedules 5 -- ./queue
  verdict classify --format json -o verdicts.json -- ./queue

Runs the program in a world of its own: what it writes, deletes or sends is only so inside.
Ends with 1 when a race can crash or hang the program or change its output, and with 0 when none can.";

/// What to run, and which races to look at.
#[derive(clap::Args, Debug)]
pub struct Common {
    #[command(flatten)]
    schedule: ScheduleArgs,

    /// Only the race with this id; may be given more than once
    #[arg(long, value_name = "ID")]
    pub(super) race: Vec<String>,

    /// Copies of the program that run at a time; the results are the same for any number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Seconds that one run may take, as a safety net: runs are limited by their instructions
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(super) time_limit: u64,

    /// What the program reads from standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Recordings of what was found go into this folder
    #[arg(long, value_name = "FOLDER", default_value = "verdict-evidence")]
    evidence: PathBuf,

    /// Write the report into this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,

    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

/// How to classify.
#[derive(clap::Args, Debug)]
#[command(after_help = CLASSIFY_EXAMPLES)]
pub struct ClassifyArgs {
    /// Schedules to try after the other order of each instance
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    schedules: u32,

    /// Instances of each race to try
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    instances: usize,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn classify(args: &ClassifyArgs, context: &Context) -> Result<Exit, CliError> {
    let setup = Setup::new(&args.common)?;
    let mut findings = setup.detect(context)?;
    let options = verdict_classify::Options {
        schedules: args.schedules,
        instances_max: args.instances.max(1),
        seed: setup.config.seed,
        jobs: args.common.jobs(),
        time_limit: Some(Duration::from_secs(args.common.time_limit)),
        ..verdict_classify::Options::default()
    };
    let mut progress = Progress::new(context);
    if !findings.races.is_empty() {
        verdict_verdicts::classify_findings(
            &mut findings,
            &setup.config,
            &setup.launch,
            &options,
            &setup.folder,
            &|race| args.common.wants(race),
            &mut |done, total| {
                let fraction = done as f64 / total.max(1) as f64;
                progress.tasks(done as u64, total as u64, fraction);
            },
        )
        .map_err(CliError::cannot_run)?;
    }
    drop(progress);
    setup.tell(&args.common, &findings, context)?;
    let harmful = |race: &Race| {
        let class = race.verdict.as_ref().and_then(|verdict| verdict.class);
        class.is_some_and(|class| class.is_harmful())
    };
    Ok(if findings.races.iter().any(harmful) {
        Exit::Races
    } else {
        Exit::Clean
    })
}

impl Common {
    pub(super) fn jobs(&self) -> usize {
        self.jobs.map_or_else(
            || std::thread::available_parallelism().map_or(1, usize::from),
            usize::from,
        )
    }

    pub(super) fn wants(&self, race: &Race) -> bool {
        self.race.is_empty() || self.race.contains(&race.id)
    }
}

/// The program in a world of its own, and a folder for what its runs leave.
pub(super) struct Setup {
    pub(super) config: ExecutorConfig,
    pub(super) launch: LaunchOptions,
    pub(super) folder: PathBuf,
}

impl Setup {
    pub(super) fn new(args: &Common) -> Result<Self, CliError> {
        let input = match &args.input {
            Some(path) => std::fs::read(path).map_err(|error| {
                CliError::bad_input(format_args!("{}: cannot be read: {error}", path.display()))
            })?,
            None => Vec::new(),
        };
        let config = ExecutorConfig {
            world: World::Private { input },
            ..args.schedule.config(&args.program)
        };
        let folder = args.evidence.clone();
        std::fs::create_dir_all(&folder)
            .map_err(|error| CliError::writing(folder.display(), &error))?;
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        Ok(Setup {
            config,
            launch: LaunchOptions::default(),
            folder,
        })
    }

    /// The races of the program, by happens-before and by prediction.
    pub(super) fn detect(&self, context: &Context) -> Result<ProgramFindings, CliError> {
        let request = DetectRequest {
            config: self.config.clone(),
            launch: self.launch.clone(),
            algorithms: &[Algorithm::Hb, Algorithm::Hybrid],
            by: PairBy::default(),
        };
        let mut progress = Progress::new(context);
        let detected = detect_program(&request, &mut |events| progress.done("events", events));
        drop(progress);
        let detected = detected.map_err(|error| match error {
            ProgramError::Launch(error) => CliError::cannot_run(error),
            ProgramError::Detect(error) => CliError::cannot_run(error),
        })?;
        // A run that was cut short says nothing about what comes after: no races would be no answer.
        if ending::is_failure(&detected.ending) {
            ending::to_exit(&detected.ending, &self.launch)?;
        }
        // A world of its own is the same every time. Without a closer look, there is still what the first one has shown.
        let look = look_closer(&self.config, &self.launch, &detected.findings);
        let look = look.unwrap_or_default();
        Ok(to_findings(&detected, &look, &self.config))
    }

    pub(super) fn tell(
        &self,
        args: &Common,
        findings: &ProgramFindings,
        context: &Context,
    ) -> Result<(), CliError> {
        let shown = ReportOptions {
            folder: "",
            since: None,
        };
        match (&args.output, args.format.format) {
            (Some(path), Format::Json) => stats::write(&findings.to_json(), path, context),
            (Some(path), Format::Text) => {
                let text = findings_text(&from_here(findings), shown, &|_, text| text.to_owned());
                stats::write(&text, path, context)
            }
            (None, format) => context.report(|out, paint| match format {
                Format::Json => out.write_all(findings.to_json().as_bytes()),
                Format::Text => out.write_all(
                    findings_text(&from_here(findings), shown, &colours(paint)).as_bytes(),
                ),
            }),
        }
    }
}
