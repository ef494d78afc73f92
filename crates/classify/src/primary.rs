//! One execution serves all races: it is stopped before each instance that is tried.

use crate::alternates::{Try, evidence, explored, is_enforced, judge, merge, tries};
use crate::blame::Scene;
use crate::habit::of_segments;
use crate::instances::{Tried, chosen, instances};
use crate::memory::HeapLooks;
use crate::quiet::{self, Manner, Show};
use crate::state::{Came, Compared, came, compare, mirrored, same_ends};
use crate::{
    Class, ClassifyError, Instance, Options, OutputDifference, Race, ReplayOutcome, Start, Verdict,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use verdict_confirm::Ended;
use verdict_explore::SegmentEnd;
use verdict_launch::{Advanced, Copied, Ending, Explorer, LaunchOptions, Request};
use verdict_protocol::{
    ExecutorConfig, Exploration, LaterInput, MemoryChanges, Mode, Moment, Outcome, RunSchedule,
    WatchedCall,
};

/// Stops at accesses of the primary that are noted.
pub(crate) const STOPS_MAX: usize = 200_000;

/// The primary takes at most so many instructions.
const PRIMARY_MAX: u64 = 100_000_000_000;

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
fn run_copies(
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

/// Where two segments ended, in the order of the accesses.
fn ends(copied: &Copied) -> Option<[SegmentEnd; 2]> {
    match came(copied) {
        Came::ToTheEnd { ends, .. } => Some(ends),
        _ => None,
    }
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

/// What shows most verdicts.
pub(crate) const TURNED: Try = Try::Alternate(None);

/// What becomes of memory that the program frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freed {
    /// The allocator hands it out again, as it does.
    HandedOut,
    /// The allocator does not get it.
    Withheld,
}

/// A file that cannot be removed does no harm.
pub(crate) fn remove(recording: &Path) {
    let _ = std::fs::remove_file(recording);
}

/// The primary, standing before an instance.
pub(crate) struct At<'a> {
    explorer: &'a mut Explorer,
    pub(crate) primary: &'a Primary,
    options: &'a Options,
    pub(crate) instance: &'a Instance,
    tried: &'a Tried,
    /// Who looks at recordings of alternates.
    pub(crate) heap: &'a mut HeapLooks,
    /// The race's index.
    pub(crate) race: usize,
}

impl At<'_> {
    fn request(&self, tried: Try, recording: Option<PathBuf>) -> Request {
        tried.request(self.options, self.primary, self.instance, recording)
    }

    fn run(&mut self, requests: Vec<Request>) -> Result<Vec<Copied>, ClassifyError> {
        run_copies(self.explorer, self.options, requests)
    }

    /// Replay analysis: both orders, until both threads stand in the same places.
    fn replay(
        &mut self,
        recorded: &Copied,
        swapped: &Copied,
    ) -> Result<Option<Compared>, ClassifyError> {
        let threads = [self.instance.first.thread, self.instance.second.thread];
        let failed = |outcome| {
            Some(Compared {
                outcome,
                words: Vec::new(),
                off_path: true,
            })
        };
        let (changes, ends) = match came(recorded) {
            Came::ToTheEnd { changes, ends } => (changes, ends),
            // The second access cannot be reached while the first is not made.
            Came::Nowhere => return Ok(failed(ReplayOutcome::ReplayFailure)),
            _ => return Ok(None),
        };
        let other_ends = match came(swapped) {
            Came::Unknown => return Ok(None),
            Came::Nowhere => return Ok(failed(ReplayOutcome::ReplayFailure)),
            Came::Broken | Came::Astray => return Ok(failed(ReplayOutcome::StateChange)),
            Came::ToTheEnd {
                changes: other,
                ends: other_ends,
            } if same_ends(ends, other_ends) => {
                let compared = compare(changes, other, threads);
                let compared = self.look_again(compared, [changes, other], ends)?;
                return self
                    .look_between(compared, changes, ends, threads)
                    .map(Some);
            }
            Came::ToTheEnd { ends, .. } => ends,
        };
        // The other order runs on to where the recorded one came.
        let longer = self.run_one(Try::SwappedSegments(Some(mirrored(ends)), 0))?;
        let (other, other_ends) = match came(&longer) {
            Came::Unknown => return Ok(None),
            Came::Broken => return Ok(failed(ReplayOutcome::StateChange)),
            Came::ToTheEnd {
                changes: other,
                ends: came_to,
            } if same_ends(ends, came_to) => {
                return Ok(Some(compare(changes, other, threads)));
            }
            // It had to go further, since one waited for the other.
            Came::ToTheEnd {
                changes: other,
                ends: came_to,
            } => (other, came_to),
            // It left out what the recorded order did.
            _ => match came(swapped) {
                Came::ToTheEnd { changes: other, .. } => (other, other_ends),
                _ => return Ok(None),
            },
        };
        if other_ends.contains(&SegmentEnd::Cut) {
            return Ok(failed(ReplayOutcome::StateChange));
        }
        // The recorded order runs on to where the other one came.
        let recorded = self.run_one(Try::RecordedSegments(Some(mirrored(other_ends)), 0))?;
        Ok(match came(&recorded) {
            Came::ToTheEnd { changes, ends } if same_ends(ends, other_ends) => {
                Some(compare(changes, other, threads))
            }
            _ => failed(ReplayOutcome::StateChange),
        })
    }

    /// A thread that polls comes by the same place every round. If one order came there on another path and left another
    /// state, it may have been a round too early.
    fn look_again(
        &mut self,
        compared: Compared,
        [changes, other]: [&MemoryChanges; 2],
        ends: [SegmentEnd; 2],
    ) -> Result<Compared, ClassifyError> {
        if compared.outcome != ReplayOutcome::StateChange || !compared.off_path {
            return Ok(compared);
        }
        let threads = [self.instance.first.thread, self.instance.second.thread];
        let later = [
            Try::SwappedSegments(Some(mirrored(ends)), 1),
            Try::RecordedSegments(Some(ends), 1),
        ];
        for (tried, copied) in self.try_each(&later)? {
            let again = match (tried, came(&copied)) {
                (
                    Try::SwappedSegments(..),
                    Came::ToTheEnd {
                        changes: late,
                        ends: at,
                    },
                ) if same_ends(ends, at) => compare(changes, late, threads),
                (
                    Try::RecordedSegments(..),
                    Came::ToTheEnd {
                        changes: late,
                        ends: at,
                    },
                ) if at == ends => compare(late, other, threads),
                _ => continue,
            };
            if again.outcome == ReplayOutcome::NoStateChange {
                return Ok(again);
            }
        }
        Ok(compared)
    }

    /// An update in place is a load and a store: the second access may come between them.
    fn look_between(
        &mut self,
        compared: Compared,
        changes: &MemoryChanges,
        ends: [SegmentEnd; 2],
        threads: [u32; 2],
    ) -> Result<Compared, ClassifyError> {
        let both_write = self.instance.first.write && self.instance.second.write;
        if compared.outcome != ReplayOutcome::NoStateChange || !both_write {
            return Ok(compared);
        }
        let split = self.run_one(Try::SplitSegments(mirrored(ends)))?;
        Ok(match came(&split) {
            Came::ToTheEnd {
                changes: other,
                ends: came_to,
            } if same_ends(ends, came_to) => compare(changes, other, threads),
            _ => compared,
        })
    }

    fn run_one(&mut self, tried: Try) -> Result<Copied, ClassifyError> {
        let request = self.request(tried, None);
        let copied = self.run(vec![request])?.pop();
        Ok(copied.unwrap_or(Copied::TimedOut))
    }

    /// Runs something into a file.
    pub(crate) fn run_recorded(
        &mut self,
        tried: Try,
        freed: Freed,
        file: &Path,
    ) -> Result<Copied, ClassifyError> {
        let mut request = self.request(tried, Some(file.to_owned()));
        if freed == Freed::Withheld {
            request.withholding.clone_from(&self.options.releasing);
        }
        let copied = self.run(vec![request])?.pop();
        Ok(copied.unwrap_or(Copied::TimedOut))
    }

    fn try_each(&mut self, tries: &[Try]) -> Result<Vec<(Try, Copied)>, ClassifyError> {
        self.try_each_recording(tries, None)
    }

    /// The same; the other order, which most verdicts are shown by, goes into a file at once.
    fn try_each_recording(
        &mut self,
        tries: &[Try],
        turned: Option<&Path>,
    ) -> Result<Vec<(Try, Copied)>, ClassifyError> {
        let requests = tries
            .iter()
            .map(|tried| {
                let file = turned.filter(|_| *tried == TURNED);
                self.request(*tried, file.map(Path::to_owned))
            })
            .collect();
        let results = self.run(requests)?;
        Ok(tries.iter().copied().zip(results).collect())
    }

    /// Runs what shows a verdict once more, for the record. Of output that differs it is asked who wrote it, there and in the primary.
    fn record(&mut self, show: &Show, verdict: &mut Verdict) -> Result<(), ClassifyError> {
        let file = Some(show.file.clone());
        let mut request = show.request(show.manner, self.options, self.primary, file);
        let differs = verdict.class == Some(Class::OutputDiffers);
        let output = verdict.output.as_ref().filter(|_| differs);
        request.writer_of = output.and_then(OutputDifference::place);
        let again = request.writer_of.map(|place| Request {
            writer_of: Some(place),
            instructions_max: Some(PRIMARY_MAX),
            ..Request::new(RunSchedule::Same)
        });
        let copies = self.run([request].into_iter().chain(again).collect())?;
        let mut writers = copies.into_iter().map(|copied| match copied {
            Copied::Explored(exploration) => exploration.writer,
            _ => None,
        });
        let (alternate, primary) = (writers.next().flatten(), writers.next().flatten());
        if let Some(output) = &mut verdict.output {
            output.writers = [primary, alternate];
        }
        Ok(())
    }

    /// Answers with what shows the verdict, if that is news.
    fn try_all(
        &mut self,
        verdict: &mut Verdict,
        file: PathBuf,
    ) -> Result<Option<Show>, ClassifyError> {
        let segments = [
            Try::RecordedSegments(None, 0),
            Try::SwappedSegments(None, 0),
        ];
        let orders = self.try_each(&segments)?;
        let compared = match orders.as_slice() {
            [(_, recorded), (_, swapped)] => self.replay(recorded, swapped)?,
            _ => None,
        };
        let habit = compared.as_ref().and_then(|compared| {
            let ends =
                [0, 1].map(|nth: usize| orders.get(nth).and_then(|(_, copied)| ends(copied)));
            of_segments(self.instance, compared, ends, &self.options.locking)
        });
        let mut recorded = file.with_extension("turned.vrec");
        // What leaves the same state behind leads to the same: one such instance of a race is followed to the end.
        let same = compared.as_ref().map(|compared| compared.outcome);
        let known = verdict.class.is_some() && same == Some(ReplayOutcome::NoStateChange);
        let known = known && !self.tried.leads;
        let results = match known || !self.options.consequences {
            true => Vec::new(),
            false => {
                let tries = tries(self.options, self.instance);
                self.try_each_recording(&tries, Some(&recorded))?
            }
        };
        let mut judged = judge(self.primary, self.instance, compared, &results);
        judged.verdict.habit = judged.verdict.habit.max(habit);
        let possible = match judged.verdict.class {
            Some(class) => class != Class::SingleOrdering,
            None => judged.replay != Some(ReplayOutcome::ReplayFailure),
        };
        if self.tried.besides && !possible {
            remove(&recorded);
            verdict.instances.not_tried += 1;
            return Ok(None);
        }
        let is_news = verdict
            .class
            .is_none_or(|class| judged.verdict.class < Some(class));
        let shown_by = judged.shown_by.filter(|_| is_news);
        let turned = results
            .iter()
            .find(|(tried, _)| *tried == TURNED)
            .and_then(|(_, copied)| explored(copied))
            .filter(|run| is_enforced(run))
            .map(|run| run.preemptions);
        let exploration = results
            .into_iter()
            .find_map(|(tried, copied)| match copied {
                Copied::Explored(run) if Some(tried) == shown_by => Some((tried, run)),
                _ => None,
            });
        let instance = self.instance.clone();
        let show = exploration.map(|(tried, run)| Show::new(tried, instance, file, run));
        if let Some(show) = &show {
            let found = &mut judged.verdict;
            let is_recorded = show.tried == TURNED && found.class != Some(Class::OutputDiffers);
            if is_recorded && std::fs::rename(&recorded, &show.file).is_ok() {
                recorded.clone_from(&show.file);
            } else {
                self.record(show, found)?;
            }
            found.evidence = evidence(show.file.clone(), show.preemptions, self.primary, found);
        }
        let worst = Some(Class::SpecViolated);
        if let Some(turned) = turned.filter(|_| verdict.class != worst)
            && judged.verdict.class != worst
        {
            self.look_at_heap(turned, &recorded, &mut judged.verdict)?;
        }
        let mut evidence = judged.verdict.evidence.iter();
        let is_shown = show.as_ref().is_some_and(|show| show.file == recorded);
        if !is_shown && !evidence.any(|shown| shown.path == recorded) {
            remove(&recorded);
        }
        merge(verdict, judged);
        Ok(show)
    }
}
