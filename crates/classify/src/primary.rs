//! One execution serves all races: it is stopped before each instance that is tried.

use crate::at::At;
use crate::blame::Scene;
use crate::instances::{Tried, chosen, instances};
use crate::memory::HeapLooks;
use crate::quiet::{self, Manner, Show};
use crate::{ClassifyError, Options, Race, Start, Verdict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use verdict_confirm::Ended;
use verdict_launch::{Advanced, Copied, Ending, Explorer, LaunchOptions, Request};
use verdict_protocol::{
    ExecutorConfig, Exploration, LaterInput, Mode, Moment, Outcome, RunSchedule, WatchedCall,
};

/// Stops at accesses of the primary that are noted.
pub(crate) const STOPS_MAX: usize = 200_000;

/// The primary takes at most so many instructions.
pub(crate) const PRIMARY_MAX: u64 = 100_000_000_000;

/// The execution that all alternates are compared with.
#[derive(Clone, Debug)]
pub struct Primary {
    /// How it ends.
    pub ended: Ended,
    /// What goes wrong, if something does.
    pub(crate) scene: Option<Scene>,
    /// Instructions it takes.
    pub instructions: u64,
    /// Everything it had to say.
    pub exploration: Box<Exploration>,
    /// A recording of it.
    pub recording: PathBuf,
}

impl Primary {
    /// How it ends, if something goes wrong.
    #[must_use]
    pub fn violation(&self) -> Option<&Ended> {
        self.scene.as_ref().map(|_| &self.ended)
    }
}

/// Classifies races of a program. With a configuration that replays, the recording is followed until there is a second
/// thread, and what it had to read is there after that, too. `folder` takes recordings; `progress` hears of every instance: how many are done, and
/// how many there are.
pub fn classify(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    races: &[Race],
    options: &Options,
    folder: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(Primary, Vec<Verdict>), ClassifyError> {
    let mut explorer = at_start(config, launch, races, options, folder)?;
    let mut primary = run_primary(&mut explorer, races, None, options, folder)?;
    if let Some(crash) = primary.scene.as_ref().and_then(Scene::instruction) {
        // Once more, to know how often threads come by there.
        primary = run_primary(&mut explorer, races, Some(crash), options, folder)?;
    }
    let mut verdicts: Vec<Verdict> = races.iter().map(|_| Verdict::unknown()).collect();
    let plan = plan(races, &primary, options, &mut verdicts);
    let mut shows: BTreeMap<usize, Show> = BTreeMap::new();
    let mut heap = HeapLooks::new(config, launch, races.len());
    for (done, (race, tried)) in plan.iter().enumerate() {
        let instance = &tried.instance;
        progress(done, plan.len());
        let moment = Moment::At {
            thread: instance.first.thread,
            instructions: instance.instructions,
        };
        if let Advanced::Ended(_) = explorer.advance(moment)? {
            verdicts[*race]
                .not_covered
                .push("the primary could not be brought back to an instance".into());
            break;
        }
        let mut at = At {
            explorer: &mut explorer,
            primary: &primary,
            options,
            instance,
            tried,
            heap: &mut heap,
            race: *race,
        };
        let file = folder.join(format!("{}-{}.vrec", races[*race].id, done + 1));
        if let Some(show) = at.try_all(&mut verdicts[*race], file)? {
            shows.insert(*race, show);
        }
    }
    progress(plan.len(), plan.len());
    shows.retain(|race, show| show.may_be_quieter(verdicts[*race].class));
    if !shows.is_empty() {
        drop(explorer);
        let explorer = at_start(config, launch, races, options, folder)?;
        show_quietly(explorer, &primary, options, shows, &mut verdicts)?;
    }
    Ok((primary, verdicts))
}

/// An execution that has come to where classification begins.
fn at_start(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    races: &[Race],
    options: &Options,
    folder: &Path,
) -> Result<Explorer, ClassifyError> {
    let recorded = matches!(config.mode, Mode::Replay { .. });
    let moment = match options.start {
        Start::FirstAccess if recorded => first_access(config, launch, races, options, folder)?,
        _ => Moment::SecondThread,
    };
    let mut explorer = Explorer::start(config, launch, folder, !recorded)?;
    match explorer.advance(moment)? {
        Advanced::Reached { .. } => {}
        Advanced::Ended(ending) => return Err(refused(&ending)),
    }
    if recorded {
        explorer.leave(LaterInput::Recorded, true)?;
    }
    Ok(explorer)
}

/// The moment before the first instance of a race in the recorded execution, which a copy follows to its end.
fn first_access(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    races: &[Race],
    options: &Options,
    folder: &Path,
) -> Result<Moment, ClassifyError> {
    let mut explorer = Explorer::start(config, launch, folder, false)?;
    if let Advanced::Ended(ending) = explorer.advance(Moment::SecondThread)? {
        return Err(refused(&ending));
    }
    let copies = run_copies(&mut explorer, options, vec![watching(races, options)])?;
    let stops = match copies.first() {
        Some(Copied::Explored(run)) => &run.stops[..],
        _ => &[],
    };
    let all = races.iter().flat_map(|race| instances(race, stops));
    let first = all.min_by_key(|instance| instance.retired);
    Ok(first.map_or(Moment::SecondThread, |instance| Moment::At {
        thread: instance.first.thread,
        instructions: instance.instructions,
    }))
}

/// A copy that goes on as it would have, and notes where the races are.
fn watching(races: &[Race], options: &Options) -> Request {
    let sites = || {
        let all = races.iter();
        all.flat_map(|race| race.first.union(&race.second).copied())
    };
    let calls = sites().map(|pc| WatchedCall {
        pc,
        bytes: Vec::new(),
    });
    Request {
        watched: sites().collect(),
        calls: calls.collect(),
        freeing: options.freeing.clone(),
        instructions_max: Some(PRIMARY_MAX),
        stops_max: STOPS_MAX,
        ..Request::new(RunSchedule::Same)
    }
}

/// Records anew what can be shown with fewer preemptions if they are avoided before the race, too.
fn show_quietly(
    mut explorer: Explorer,
    primary: &Primary,
    options: &Options,
    shows: BTreeMap<usize, Show>,
    verdicts: &mut [Verdict],
) -> Result<(), ClassifyError> {
    for (race, mut show) in shows {
        let verdict = &mut verdicts[race];
        let before = show.preemptions;
        for manners in Manner::ALL {
            if !show.may_be_quieter(verdict.class) {
                break;
            }
            let possible = manners.iter().copied().filter(|one| show.is_possible(*one));
            let manners: Vec<Manner> = possible.collect();
            let request = |manner: &Manner| show.request(*manner, options, primary, None);
            let requests = manners.iter().map(request).collect();
            let runs = run_copies(&mut explorer, options, requests)?;
            let runs = manners.into_iter().zip(runs).collect();
            show.take_quieter(primary, verdict.class, runs);
        }
        if show.preemptions < before {
            let file = Some(show.file.clone());
            let request = show.request(show.manner, options, primary, file);
            run_copies(&mut explorer, options, vec![request])?;
            quiet::tell(&show, verdict);
        }
    }
    Ok(())
}

/// What came of each request, in their order.
pub(crate) fn run_copies(
    explorer: &mut Explorer,
    options: &Options,
    requests: Vec<Request>,
) -> Result<Vec<Copied>, ClassifyError> {
    let mut results: Vec<Option<Copied>> = requests.iter().map(|_| None).collect();
    explorer.run_all(
        &mut requests.into_iter(),
        options.jobs,
        options.time_limit,
        &mut |index, copied| results[index] = Some(copied),
    )?;
    Ok(results.into_iter().flatten().collect())
}

fn refused(ending: &Ending) -> ClassifyError {
    let why = match ending {
        Ending::Reported(report) => match &report.outcome {
            Outcome::Refused(refusal) => refusal.message.clone(),
            Outcome::EngineFault(fault) => fault.message.clone(),
            _ => "it ended before it had a second thread".into(),
        },
        Ending::Crashed { how } => format!("its executor {how}"),
        Ending::Killed => "its executor was killed".into(),
        Ending::Hung => "its executor showed no sign of life".into(),
    };
    ClassifyError::Refused { why }
}

fn run_primary(
    explorer: &mut Explorer,
    races: &[Race],
    crash: Option<u64>,
    options: &Options,
    folder: &Path,
) -> Result<Primary, ClassifyError> {
    let recording = folder.join("primary.vrec");
    let mut request = Request {
        properties: options.properties.clone(),
        recording: Some(recording.clone()),
        ..watching(races, options)
    };
    request
        .watched
        .extend(crash.into_iter().chain(options.looked_at()));
    let mut found = None;
    explorer.run_all(
        &mut std::iter::once(request),
        1,
        options.time_limit,
        &mut |_, copied| found = Some(copied),
    )?;
    match found {
        Some(Copied::Explored(exploration)) => Ok(Primary {
            ended: Ended::of_exploration(&exploration),
            scene: Scene::of(&exploration),
            instructions: exploration.report.stats.instructions,
            exploration,
            recording,
        }),
        Some(Copied::Lost { how }) => Err(ClassifyError::Refused { why: how }),
        _ => Err(ClassifyError::Refused {
            why: "it ran for too long".into(),
        }),
    }
}

/// Instances to be tried, in the order in which the primary comes to them, each with its race's index.
fn plan(
    races: &[Race],
    primary: &Primary,
    options: &Options,
    verdicts: &mut [Verdict],
) -> Vec<(usize, Tried)> {
    let mut plan = Vec::new();
    for (index, race) in races.iter().enumerate() {
        let all = instances(race, &primary.exploration.stops);
        let tried = chosen(&all, options.instances_max);
        let verdict = &mut verdicts[index];
        verdict.instances.not_tried = (all.len() - tried.len()) as u64;
        if all.is_empty() {
            verdict
                .not_covered
                .push("the two accesses did not meet in this execution".into());
        }
        if primary.exploration.stops_cut {
            verdict
                .not_covered
                .push("the execution has more instances than were looked at".into());
        }
        plan.extend(tried.into_iter().map(|tried| (index, tried)));
    }
    plan.sort_by_key(|(index, tried)| (tried.instance.retired, *index));
    plan
}
