//! `verdict classify`, and what it has in common with `verdict confirm`: what the races of a program can do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use verdict_classify::ClassifyError;
use verdict_detect::{Algorithm, PairBy};
use verdict_findings::{ProgramFindings, Race};
use verdict_launch::{GuestOutput, LaunchOptions};
use verdict_observe::Orders;
use verdict_protocol::{ExecutorConfig, Mode, World};
use verdict_races::{
    DetectRequest, FirstLook, Locks, ProgramError, Run, detect_program, look_closer, to_findings,
};
use verdict_report::{ReportOptions, findings_text};

use super::detect::colours;
use super::exec::{ending, stats};
use super::run_options::{ScheduleArgs, jobs};
use super::shown::from_here;
use crate::progress::Progress;
use crate::{CliError, Context, Exit, Format, FormatArgs};

const CLASSIFY_EXAMPLES: &str = "\
Examples:
  verdict classify -- ./queue
  verdict classify --schedules 5 -- ./queue
  verdict classify --compare -- ./queue
  verdict classify --property 'length <= 8' -- ./queue
  verdict classify queue.vrec
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

    /// The program and its arguments, or a recording
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
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

    /// What shall hold: a C-like expression over global variables, `balance >= 0 && open <= 8`; may be given more than once
    #[arg(long, value_name = "EXPRESSION")]
    property: Vec<String>,

    /// Only compare what both orders of each instance leave behind; nothing is followed to the program's end
    #[arg(long)]
    replay_only: bool,

    /// Find races as if locks ordered nothing, as imprecise detectors do: classifying tells their false alarms
    #[arg(long)]
    ignore_locks: bool,

    /// Print what replay analysis and consequence analysis say of each race, side by side
    #[arg(long)]
    compare: bool,

    #[command(flatten)]
    common: Common,
}

pub(crate) fn classify(args: &ClassifyArgs, context: &Context) -> Result<Exit, CliError> {
    let setup = Setup::new(&args.common)?;
    let locks = match args.ignore_locks {
        true => Locks::Ignored,
        false => Locks::Seen,
    };
    let mut findings = setup.detect(locks, context)?;
    let options = verdict_classify::Options {
        schedules: args.schedules,
        consequences: !args.replay_only,
        instances_max: args.instances.max(1),
        seed: setup.config.seed,
        expressions: args.property.clone(),
        jobs: args.common.jobs(),
        time_limit: Some(Duration::from_secs(args.common.time_limit)),
        ..verdict_classify::Options::default()
    };
    let mut progress = Progress::new(context);
    if !findings.races.is_empty() {
        let mut doubts = verdict_verdicts::classify_findings(
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
        .map_err(|error| match error {
            ClassifyError::Property { .. } => CliError::bad_input(error),
            error => CliError::cannot_run(error),
        })?;
        if args.explores() {
            let explored = verdict_verdicts::classify_explored(
                &mut findings,
                &setup.config,
                &setup.launch,
                &options,
                &setup.folder,
                verdict_verdicts::Bounds::default(),
            );
            doubts.extend(explored);
        }
        doubts.explain(&mut findings);
    }
    drop(progress);
    if args.compare && matches!(args.common.format.format, Format::Text) {
        let text = super::comparison::text(&findings);
        match &args.common.output {
            Some(path) => stats::write(&text, path, context)?,
            None => context.report(|out, _| out.write_all(text.as_bytes()))?,
        }
    } else {
        setup.tell(&args.common, &findings, context)?;
    }
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

impl ClassifyArgs {
    /// Whether races that only show in other orders are looked for: whoever asks for some races, for a look at the recorded ones or
    /// for false alarms does not want more of them.
    fn explores(&self) -> bool {
        self.common.race.is_empty() && !self.replay_only && !self.ignore_locks
    }
}

impl Common {
    pub(super) fn jobs(&self) -> usize {
        jobs(self.jobs)
    }

    /// The recording, if it is one that is to be looked at.
    fn recording(&self) -> Option<&Path> {
        match self.program.as_slice() {
            [only] => Some(Path::new(only)).filter(|path| verdict_recording::is_recording(path)),
            _ => None,
        }
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

/// A recording is followed, and left once there is a choice.
pub(super) fn followed(path: &Path) -> Result<(ExecutorConfig, LaunchOptions), CliError> {
    let (file, info) = super::replay::open(path)?;
    let config = ExecutorConfig {
        mode: Mode::Replay {
            fd: -1,
            until: None,
            replaced: 0,
        },
        world: World::Followed,
        ..super::replay::config(&info.header)
    };
    let launch = LaunchOptions {
        recording: Some(Arc::new(file)),
        output: GuestOutput::Discarded,
        ..LaunchOptions::default()
    };
    Ok((config, launch))
}

impl Setup {
    pub(super) fn new(args: &Common) -> Result<Self, CliError> {
        if let Some(path) = args.recording() {
            let (config, launch) = followed(path)?;
            return Setup::with(args, config, launch);
        }
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
        Setup::with(args, config, LaunchOptions::default())
    }

    fn with(
        args: &Common,
        config: ExecutorConfig,
        launch: LaunchOptions,
    ) -> Result<Self, CliError> {
        let folder = args.evidence.clone();
        std::fs::create_dir_all(&folder)
            .map_err(|error| CliError::writing(folder.display(), &error))?;
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        Ok(Setup {
            config,
            launch,
            folder,
        })
    }

    /// How the program is observed: a recording is replayed to its end.
    pub(super) fn observed(&self) -> ExecutorConfig {
        let world = match &self.config.world {
            World::Followed => World::Host,
            world => world.clone(),
        };
        ExecutorConfig {
            world,
            ..self.config.clone()
        }
    }

    /// The races of the program, by happens-before and by prediction.
    pub(super) fn detect(
        &self,
        locks: Locks,
        context: &Context,
    ) -> Result<ProgramFindings, CliError> {
        // A world of its own is the same every time.
        let config = self.observed();
        let again = || -> Result<Run, String> {
            Ok(Run {
                config: config.clone(),
                launch: self.launch.clone(),
            })
        };
        let request = DetectRequest {
            config: self.observed(),
            launch: self.launch.clone(),
            again: &again,
            algorithms: &[Algorithm::Hb, Algorithm::Hybrid],
            by: PairBy::default(),
            locks,
            orders: Orders::default(),
            first_look: FirstLook::default(),
            instructions: None,
        };
        let mut progress = Progress::new(context);
        let detected = detect_program(&request, &mut |far| progress.look(far));
        let detected = detected.map_err(|error| match error {
            ProgramError::Launch(error) => CliError::cannot_run(error),
            ProgramError::Detect(error) => CliError::cannot_run(error),
            ProgramError::Whole { .. } | ProgramError::Again { .. } => CliError::cannot_run(error),
        })?;
        // A run that was cut short says nothing about what comes after: no races would be no answer.
        if ending::is_failure(&detected.ending) {
            ending::to_exit(&detected.ending, &self.launch)?;
        }
        // Without a closer look, there is still what the first one has shown.
        let look = again().and_then(|again| {
            let looked = look_closer(&again, &detected, &mut |far| progress.look(far));
            looked.map_err(|error| error.to_string())
        });
        drop(progress);
        let look = look.unwrap_or_default();
        Ok(to_findings(&detected, &look, &config))
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
            (None, Format::Text) => context.report(|out, paint| {
                out.write_all(
                    findings_text(&from_here(findings), shown, &colours(paint)).as_bytes(),
                )
            }),
            _ => {
                let plain =
                    || findings_text(&from_here(findings), shown, &|_, text| text.to_owned());
                self.tell_text(args, &|| findings.to_json(), &plain, context)
            }
        }
    }

    /// Tells something as the user wants it.
    pub(super) fn tell_text(
        &self,
        args: &Common,
        json: &dyn Fn() -> String,
        text: &dyn Fn() -> String,
        context: &Context,
    ) -> Result<(), CliError> {
        let told = match args.format.format {
            Format::Json => json(),
            Format::Text => text(),
        };
        match &args.output {
            Some(path) => stats::write(&told, path, context),
            None => context.report(|out, _| out.write_all(told.as_bytes())),
        }
    }
}
