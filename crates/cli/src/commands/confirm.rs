//! `verdict confirm`: which races really happen, and what goes wrong after them.

mod deadlock;

use std::time::Duration;

use verdict_confirm::Options;
use verdict_detect::LockStep;
use verdict_events::SiteId;
use verdict_findings::{
    DeadlockFindings, DeadlockSchema, Program, ProgramFindings, Race, Schema, text_of_bytes,
};
use verdict_launch::{GuestOutput, LaunchOptions};
use verdict_races::lock_cycles;
use verdict_verdicts::{
    Confirming, LinePair, LineTriple, PairError, SeenCycle, SeenStep, confirm_cycles,
    confirm_findings, confirm_pairs, confirm_triples,
};

use super::judge::{Common, Setup};
use crate::progress::Progress;
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict confirm -- ./queue
  verdict confirm --runs 1000 --race 5d1f0c2ab93e -- ./queue
  verdict confirm --pair queue.c:12,queue.c:40 -- ./queue
  verdict confirm --race 5d1f0c2ab93e --run-seed 1042 --runs 1 -- ./queue
  verdict confirm --target deadlock -- ./queue
  verdict confirm --target atomicity --triple queue.c:12,queue.c:14,queue.c:40 -- ./queue
  verdict confirm queue.vrec
  verdict confirm --format json -o confirmed.json -- ./queue --items 10

Runs the program in a world of its own: what it writes, deletes or sends is only so inside.
Ends with 1 when a race or a deadlock was confirmed, and with 0 when none was.";

/// How to confirm.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Runs for each race
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    runs: u32,

    /// Make every run with this seed, which was reported with a race or an error: the same run every time
    #[arg(long, value_name = "SEED")]
    run_seed: Option<u64>,

    /// Two source lines to steer to, instead of the races that are detected; may be given more than once
    #[arg(long, value_name = "FILE:LINE,FILE:LINE", conflicts_with = "race")]
    pair: Vec<LinePair>,

    /// What to steer to: races, locks that threads take in different orders, or an access between two others
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Target::Races, conflicts_with_all = ["race", "pair"])]
    target: Target,

    /// Two source lines of one thread that belong together, and one that another thread is to execute between them, each
    /// as FILE:LINE; may be given more than once
    #[arg(
        long,
        value_name = "LINE,LINE,LINE",
        required_if_eq("target", "atomicity"),
        conflicts_with_all = ["race", "pair"]
    )]
    triple: Vec<LineTriple>,

    #[command(flatten)]
    common: Common,
}

/// What to steer to.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Races,
    Deadlock,
    Atomicity,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    if !args.triple.is_empty() && args.target != Target::Atomicity {
        return Err(CliError::bad_input(
            "three lines are for `--target atomicity`; two that may race are given with --pair",
        ));
    }
    let setup = Setup::new(&args.common)?;
    if args.target == Target::Deadlock {
        return confirm_deadlocks(args, &setup, context);
    }
    let findings = if args.pair.is_empty() && args.triple.is_empty() {
        confirm_detected(args, &setup, context)?
    } else {
        confirm_suspected(args, &setup, context)?
    };
    setup.tell(&args.common, &findings, context)?;
    let confirmed = |race: &Race| {
        race.verdict
            .as_ref()
            .is_some_and(|verdict| verdict.confirmed == Some(true))
    };
    Ok(if findings.races.iter().any(confirmed) {
        Exit::Races
    } else {
        Exit::Clean
    })
}

fn options(args: &Args, setup: &Setup) -> Options {
    Options {
        runs: args.runs,
        seed: setup.config.seed,
        run_seed: args.run_seed,
        jobs: args.common.jobs(),
        time_limit: Some(Duration::from_secs(args.common.time_limit)),
        ..Options::default()
    }
}

/// The races that a run of the program shows or lets expect.
fn confirm_detected(
    args: &Args,
    setup: &Setup,
    context: &Context,
) -> Result<ProgramFindings, CliError> {
    let mut findings = setup.detect(verdict_races::Locks::Seen, context)?;
    if findings.races.is_empty() {
        return Ok(findings);
    }
    let options = options(args, setup);
    let mut shown = Shown::new(context, args.runs);
    let mut confirming = Confirming {
        config: &setup.config,
        launch: &setup.launch,
        options: &options,
        folder: &setup.folder,
        progress: &mut |name, made| shown.run(name, made),
    };
    confirm_findings(&mut findings, &mut confirming, &|race| {
        args.common.wants(race)
    })
    .map_err(CliError::cannot_run)?;
    Ok(findings)
}

/// Lines that the user suspects.
fn confirm_suspected(
    args: &Args,
    setup: &Setup,
    context: &Context,
) -> Result<ProgramFindings, CliError> {
    let mut findings = ProgramFindings::new(Schema::Verdicts1, program(setup));
    let options = options(args, setup);
    let mut shown = Shown::new(context, args.runs);
    let mut confirming = Confirming {
        config: &setup.config,
        launch: &setup.launch,
        options: &options,
        folder: &setup.folder,
        progress: &mut |name, made| shown.run(name, made),
    };
    let made = match args.target {
        Target::Atomicity => confirm_triples(&mut findings, &mut confirming, &args.triple),
        _ => confirm_pairs(&mut findings, &mut confirming, &args.pair),
    };
    made.map_err(|error| match error {
        PairError::Line(error) => CliError::bad_input(error),
        PairError::Confirm(error) => CliError::cannot_run(error),
    })?;
    Ok(findings)
}

/// Cycles of locks that one run shows.
fn confirm_deadlocks(args: &Args, setup: &Setup, context: &Context) -> Result<Exit, CliError> {
    let launch = LaunchOptions {
        output: GuestOutput::Discarded,
        ..setup.launch.clone()
    };
    let (cycles, sites) = lock_cycles(&setup.observed(), &launch).map_err(CliError::cannot_run)?;
    let place = |site: SiteId| {
        let place = &sites.get(site.0 as usize)?.place;
        Some((place.module.clone()?, place.offset))
    };
    let step = |step: &LockStep| {
        let (held_in, held_at) = place(step.held_since)?;
        let (taken_in, taken_at) = place(step.site)?;
        Some(SeenStep {
            thread: step.thread.0,
            holds: (step.holds.0, held_in, held_at),
            wants: (step.wants.0, taken_in, taken_at),
        })
    };
    let seen: Vec<SeenCycle> = cycles
        .iter()
        .filter_map(|cycle| cycle.steps.iter().map(step).collect::<Option<_>>())
        .map(|steps| SeenCycle { steps })
        .collect();
    let options = options(args, setup);
    let mut shown = Shown::new(context, args.runs);
    let mut confirming = Confirming {
        config: &setup.config,
        launch: &setup.launch,
        options: &options,
        folder: &setup.folder,
        progress: &mut |name, made| shown.run(name, made),
    };
    let cycles = if seen.is_empty() {
        Vec::new()
    } else {
        confirm_cycles(&seen, &mut confirming).map_err(CliError::cannot_run)?
    };
    let findings = DeadlockFindings {
        schema: DeadlockSchema::Deadlocks1,
        program: program(setup),
        cycles,
    };
    let json =
        || serde_json::to_string(&findings).expect("these types are always valid JSON") + "\n";
    setup.tell_text(&args.common, &json, &|| deadlock::text(&findings), context)?;
    Ok(if findings.cycles.iter().any(|cycle| cycle.confirmed) {
        Exit::Races
    } else {
        Exit::Clean
    })
}

fn program(setup: &Setup) -> Program {
    let words = setup.config.argv.iter().skip(1);
    Program {
        path: text_of_bytes(&setup.config.program),
        args: words.map(|word| text_of_bytes(word)).collect(),
        ..Program::default()
    }
}

/// What people see while they wait.
struct Shown {
    progress: Progress,
    runs: u32,
}

impl Shown {
    fn new(context: &Context, runs: u32) -> Self {
        Shown {
            progress: Progress::new(context),
            runs,
        }
    }

    fn run(&mut self, name: &str, made: verdict_confirm::Progress) {
        self.progress.text(|| {
            format!(
                "{name}: {} of {} runs, together in {}",
                made.runs, self.runs, made.hits
            )
        });
    }
}
