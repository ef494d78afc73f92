//! `verdict confirm`: which races really happen, and what goes wrong after them.

use std::time::Duration;

use verdict_confirm::Options;
use verdict_findings::{Program, ProgramFindings, Race, Schema, text_of_bytes};
use verdict_verdicts::{Confirming, LinePair, PairError, confirm_findings, confirm_pairs};

use super::judge::{Common, Setup};
use crate::progress::Progress;
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict confirm -- ./queue
  verdict confirm --runs 1000 --race 5d1f0c2ab93e -- ./queue
  verdict confirm --pair queue.c:12,queue.c:40 -- ./queue
  verdict confirm --race 5d1f0c2ab93e --run-seed 1042 --runs 1 -- ./queue
  verdict confirm --format json -o confirmed.json -- ./queue --items 10

Runs the program in a world of its own: what it writes, deletes or sends is only so inside.
Ends with 1 when a race was confirmed, and with 0 when none was.";

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

    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let setup = Setup::new(&args.common)?;
    let findings = if args.pair.is_empty() {
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

/// Pairs of lines that the user suspects.
fn confirm_suspected(
    args: &Args,
    setup: &Setup,
    context: &Context,
) -> Result<ProgramFindings, CliError> {
    let mut words = setup.config.argv.iter().skip(1);
    let program = Program {
        path: text_of_bytes(&setup.config.program),
        args: words.by_ref().map(|word| text_of_bytes(word)).collect(),
        ..Program::default()
    };
    let mut findings = ProgramFindings::new(Schema::Verdicts1, program);
    let options = options(args, setup);
    let mut shown = Shown::new(context, args.runs);
    let mut confirming = Confirming {
        config: &setup.config,
        launch: &setup.launch,
        options: &options,
        folder: &setup.folder,
        progress: &mut |name, made| shown.run(name, made),
    };
    confirm_pairs(&mut findings, &mut confirming, &args.pair).map_err(|error| match error {
        PairError::Line(error) => CliError::bad_input(error),
        PairError::Confirm(error) => CliError::cannot_run(error),
    })?;
    Ok(findings)
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
