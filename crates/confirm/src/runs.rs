//! Steered runs of one candidate, and what they came to.

use crate::learn::narrow;
use crate::{Candidate, ConfirmError, Ended, EndedKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use verdict_explore::{Aim, Directed, Facing};
use verdict_launch::{Advanced, Copied, Ending, Explorer, LaunchOptions, Request};
use verdict_protocol::{
    CallStack, Deadlock, ExecutorConfig, LaterInput, MappedModule, Mode, Moment, Outcome,
    RunSchedule,
};
use verdict_schedule::SplitMix;

/// How to confirm.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs per candidate.
    pub runs: u32,
    /// What the runs of a candidate may cost together, in instructions; a stop is as many as it takes the time of. Where they
    /// are long, there are fewer.
    pub cost_max: Option<u64>,
    /// Runs after which a candidate that was not brought together is given up.
    pub give_up_after: Option<u32>,
    /// Where the seeds of the runs come from.
    pub seed: u64,
    /// Every run has this seed: repeats one run.
    pub run_seed: Option<u64>,
    /// Runs at a time.
    pub jobs: usize,
    /// Longest time of one run: a safety net; runs are limited by their instructions.
    pub time_limit: Option<Duration>,
    /// Instructions of a turn.
    pub quantum: u64,
    /// How long a thread waits for its counterpart, in instructions; by default twice what the program usually takes, and
    /// some more: whatever the others have to do before, they can do it meanwhile.
    pub patience: Option<u64>,
    /// Instructions of a run; by default ten times what the program usually takes, and some more.
    pub instructions_max: Option<u64>,
    /// Occasions to switch beside system calls: functions that synchronise.
    pub switch_points: Vec<u64>,
    /// Functions that free their first argument.
    pub freeing: Vec<u64>,
    /// Sites of all races that are known. Switches at synchronisation are enough only where these are occasions to
    /// switch, too (Sen 2008, section 4). A run is repeated by its seed and the same sites.
    pub other_sites: Vec<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            runs: 100,
            cost_max: None,
            give_up_after: None,
            seed: 0,
            run_seed: None,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            time_limit: None,
            quantum: 1_000_000,
            patience: None,
            instructions_max: None,
            switch_points: Vec::new(),
            freeing: Vec::new(),
            other_sites: Vec::new(),
        }
    }
}

/// What the program does when nobody steers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// How it ends.
    pub ended: Ended,
    /// Instructions it takes.
    pub instructions: u64,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct Confirmation {
    /// Runs made.
    pub runs: u32,
    /// Runs in which the race was created.
    pub hits: u32,
    /// The first run that created it.
    pub seed: Option<u64>,
    /// The race as that run created it.
    pub facing: Option<Facing>,
    /// The thread that had been waiting stood at the first site.
    pub waiting_is_first: bool,
    /// Where its two threads stood, in the order of the candidate's sites.
    pub faced: Option<Box<[CallStack; 2]>>,
    /// What went wrong in runs that had created it, each kind once.
    pub errors: Vec<SeenError>,
    /// A recording of the first run that created it.
    pub recording: Option<PathBuf>,
    /// Runs of which nothing is known: lost or too long.
    pub unknown: u32,
    /// What the runs cost together, as [`Options::cost_max`] counts it.
    pub cost: u64,
}

/// Something that went wrong after the race.
#[derive(Clone, PartialEq, Debug)]
pub struct SeenError {
    /// What.
    pub ended: Ended,
    /// The first run that came to it.
    pub seed: u64,
    /// How many did.
    pub runs: u32,
    /// A recording of it.
    pub recording: Option<PathBuf>,
    /// Where the thread to blame was.
    pub place: Option<Box<CallStack>>,
    /// Who waited for whom, where nobody could go on.
    pub deadlock: Option<Box<Deadlock>>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Runs made for the candidate at hand.
    pub runs: u32,
    /// Of these, runs that created the race.
    pub hits: u32,
}

/// What one run came to.
struct Run {
    seed: u64,
    facing: Option<Facing>,
    faced: Option<Box<[CallStack; 2]>>,
    ended: Ended,
    place: Option<Box<CallStack>>,
    deadlock: Option<Box<Deadlock>>,
    cost: u64,
}

/// Steers runs of the program to one candidate after the other. With a configuration that replays, the recording is followed
/// until there is a second thread, and what it had to read is there after that, too. `folder` takes recordings; `progress`
/// hears of every run.
pub fn confirm(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    candidates: &[Candidate],
    options: &Options,
    folder: &Path,
    progress: &mut dyn FnMut(usize, Progress),
) -> Result<(Baseline, Vec<Confirmation>), ConfirmError> {
    let recorded = matches!(config.mode, Mode::Replay { .. });
    let mut explorer = Explorer::start(config, launch, folder, !recorded)?;
    match explorer.advance(Moment::SecondThread)? {
        Advanced::Reached { .. } => {}
        Advanced::Ended(ending) => return Err(ended_early(&ending)),
    }
    if recorded {
        explorer.leave(LaterInput::Recorded, true)?;
    }
    let baseline = baseline(&mut explorer, options)?;
    let mut confirmations = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let mut candidate = candidate.clone();
        let patience = patience(options, &baseline);
        let limit = limit(options, &baseline);
        narrow(&mut explorer, &mut candidate, &options.freeing, limit)?;
        let mut steered = Steered {
            explorer: &mut explorer,
            candidate: &candidate,
            options,
            patience,
            limit,
            seed: seed_of(options.seed, &candidate.name),
        };
        let told = &mut |made| progress(index, made);
        let runs = steered.all(told)?;
        confirmations.push(steered.judge(&runs, &baseline, folder)?);
    }
    Ok((baseline, confirmations))
}

/// A candidate has the same runs whichever others it is asked about with (FNV-1a of its name).
fn seed_of(seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    SplitMix::new(seed ^ hash).next_u64()
}

/// A name that can be part of a file's.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    name.chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}

fn ended_early(ending: &Ending) -> ConfirmError {
    match ending {
        Ending::Reported(report) => match &report.outcome {
            Outcome::Refused(refusal) => ConfirmError::Refused {
                why: refusal.message.clone(),
            },
            Outcome::EngineFault(fault) => ConfirmError::Refused {
                why: fault.message.clone(),
            },
            Outcome::Exited { code } => ConfirmError::OneThread {
                how: format!("exit code {code}"),
            },
            other => ConfirmError::OneThread {
                how: format!("{other:?}"),
            },
        },
        Ending::Killed => ConfirmError::Refused {
            why: "the executor was killed".into(),
        },
        Ending::Crashed { how } => ConfirmError::Refused {
            why: format!("the executor {how}"),
        },
        Ending::Hung => ConfirmError::Refused {
            why: "the executor showed no sign of life".into(),
        },
    }
}

/// Room for a program whose steered runs are longer than usual: others wait while a thread is postponed.
const EXTRA_INSTRUCTIONS: u64 = 200_000_000;

/// Instructions that take as long as a stop.
const STOP_COST: u64 = 5_000;

/// What a run costs of which nothing is known.
const LOST_COST: u64 = 10_000_000_000;

/// Runs after which is looked at what they cost; the same for any number of jobs.
const BATCH: usize = 10;

/// Runs whose seed is a multiple of this meet at the sites of other races. All that a run does follows from its seed.
const MEETING: u64 = 4;

/// Fewer hits than one in so many runs are rare, once there were as many.
const RARE: u32 = 20;

/// How much longer a run may be that did not end.
const LONGER: u64 = 20;

fn limit(options: &Options, baseline: &Baseline) -> u64 {
    options
        .instructions_max
        .unwrap_or(baseline.instructions.saturating_mul(10) + EXTRA_INSTRUCTIONS)
}

/// A thread that waits may make the others spin. All of that together is less than twice the patience, which is less
/// than the limit.
fn patience(options: &Options, baseline: &Baseline) -> u64 {
    const EXTRA: u64 = 20_000_000;
    let usual = baseline.instructions.saturating_mul(2) + EXTRA;
    options.patience.unwrap_or(usual)
}

fn baseline(explorer: &mut Explorer, options: &Options) -> Result<Baseline, ConfirmError> {
    let request = Request {
        instructions_max: Some(options.instructions_max.unwrap_or(100 * EXTRA_INSTRUCTIONS)),
        ..Request::new(RunSchedule::Same)
    };
    let mut found = None;
    explorer.run_all(
        &mut std::iter::once(request),
        1,
        options.time_limit,
        &mut |_, copied| {
            let instructions = match &copied {
                Copied::Explored(exploration) => exploration.report.stats.instructions,
                _ => EXTRA_INSTRUCTIONS,
            };
            found = Some(Baseline {
                ended: Ended::of(&copied),
                instructions,
            });
        },
    )?;
    Ok(found.expect("one request, one answer"))
}

/// Runs steered to one candidate.
struct Steered<'a> {
    explorer: &'a mut Explorer,
    candidate: &'a Candidate,
    options: &'a Options,
    patience: u64,
    limit: u64,
    seed: u64,
}

impl Steered<'_> {
    /// `rare`: the runs before hardly ever brought two threads here. What it takes is likely to be what other races do, so most of
    /// the runs from then on meet at those.
    fn seed(&self, run: u64, rare: bool) -> u64 {
        if let Some(seed) = self.options.run_seed {
            return seed;
        }
        // Short numbers are easier to type again, and 48 bits are more than enough.
        let drawn = SplitMix::new(self.seed ^ run).next_u64() >> 16;
        match rare && !run.is_multiple_of(MEETING) {
            true => drawn - drawn % MEETING,
            false => drawn,
        }
    }

    fn request(&self, seed: u64, recording: Option<PathBuf>) -> Request {
        let mut watched = self.candidate.watched();
        watched.extend(&self.options.switch_points);
        // What another race does may be what it takes to come here. It costs a stop each time: every other run has it.
        let others = match seed.is_multiple_of(2) {
            true => &self.options.other_sites[..],
            false => &[],
        };
        watched.extend(others);
        let directed = RunSchedule::Directed(Directed {
            seed,
            first: self.candidate.first.clone(),
            second: self.candidate.second.clone(),
            aim: self.candidate.aim,
            further: self.candidate.further.clone(),
            others: others.iter().copied().collect(),
            meet_at_others: seed.is_multiple_of(MEETING),
            quantum: self.options.quantum,
            patience: self.patience,
        });
        Request {
            watched,
            calls: self.candidate.calls(),
            plain_calls: self.candidate.plain,
            freeing: self.options.freeing.clone(),
            recording,
            instructions_max: Some(self.limit),
            ..Request::new(directed)
        }
    }

    /// All runs, in the order of their seeds whatever the order of their ends.
    fn all(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Run>, ConfirmError> {
        let numbers: Vec<u64> = (0..u64::from(self.options.runs)).collect();
        let mut made = Progress { runs: 0, hits: 0 };
        let mut runs = BTreeMap::new();
        let mut cost = 0_u64;
        for batch in numbers.chunks(BATCH) {
            let hopeless = |max| made.hits == 0 && made.runs >= max;
            if self.options.cost_max.is_some_and(|max| cost > max)
                || self.options.give_up_after.is_some_and(hopeless)
            {
                break;
            }
            let rare = made.runs >= RARE && made.hits * RARE < made.runs;
            let seeds: Vec<(u64, u64)> = batch
                .iter()
                .map(|number| (*number, self.seed(*number, rare)))
                .collect();
            runs.extend(self.batch(&seeds, &mut |run| {
                made.runs += 1;
                made.hits += u32::from(run.facing.is_some());
                cost = cost.saturating_add(run.cost);
                progress(made);
            })?);
        }
        self.look_again(&mut runs)?;
        Ok(runs.into_values().collect())
    }

    fn batch(
        &mut self,
        seeds: &[(u64, u64)],
        each: &mut dyn FnMut(&Run),
    ) -> Result<BTreeMap<u64, Run>, ConfirmError> {
        let requests: Vec<Request> = seeds
            .iter()
            .map(|(_, seed)| self.request(*seed, None))
            .collect();
        let mut runs = BTreeMap::new();
        self.explorer.run_all(
            &mut requests.into_iter(),
            self.options.jobs,
            self.options.time_limit,
            &mut |index, copied| {
                let (number, seed) = seeds[index];
                let run = Run::of(seed, copied);
                each(&run);
                runs.insert(number, run);
            },
        )?;
        Ok(runs)
    }

    /// What did not end may only take longer than usual: a program that writes down its stack before it gives up reads
    /// all its debug information for that. The first such run is made once more with many more instructions; if it ends,
    /// all of them are.
    fn look_again(&mut self, runs: &mut BTreeMap<u64, Run>) -> Result<(), ConfirmError> {
        let hang = |(number, run): (&u64, &Run)| {
            (run.ended.kind == EndedKind::Hang).then_some((*number, run.seed))
        };
        let hung: Vec<(u64, u64)> = runs.iter().filter_map(hang).collect();
        if hung.is_empty() || self.options.instructions_max.is_some() {
            return Ok(());
        }
        let usual = self.limit;
        self.limit = usual.saturating_mul(LONGER);
        let first = self.batch(&hung[..1], &mut |_| {})?;
        if first.iter().any(|run| hang(run).is_some()) {
            self.limit = usual;
            return Ok(());
        }
        runs.extend(first);
        runs.extend(self.batch(&hung[1..], &mut |_| {})?);
        Ok(())
    }

    fn judge(
        &mut self,
        runs: &[Run],
        baseline: &Baseline,
        folder: &Path,
    ) -> Result<Confirmation, ConfirmError> {
        let hit = runs.iter().find(|run| run.facing.is_some());
        let mut errors: BTreeMap<EndedKind, SeenError> = BTreeMap::new();
        for run in runs {
            let other_code = matches!(run.ended.kind, EndedKind::Exited(_))
                && run.ended.kind != baseline.ended.kind;
            if run.facing.is_none() || !(run.ended.kind.is_error() || other_code) {
                continue;
            }
            let seen = errors.entry(run.ended.kind).or_insert(SeenError {
                ended: run.ended.clone(),
                seed: run.seed,
                runs: 0,
                recording: None,
                place: run.place.clone(),
                deadlock: run.deadlock.clone(),
            });
            seen.runs += 1;
        }
        let mut confirmation = Confirmation {
            runs: runs.len() as u32,
            hits: runs.iter().filter(|run| run.facing.is_some()).count() as u32,
            seed: hit.map(|run| run.seed),
            facing: hit.and_then(|run| run.facing),
            waiting_is_first: hit.is_some_and(|run| self.waiting_is_first(run)),
            faced: hit.and_then(|run| self.in_order(run)),
            errors: errors.into_values().collect(),
            recording: None,
            unknown: runs
                .iter()
                .filter(|run| run.ended.kind == EndedKind::Unknown)
                .count() as u32,
            cost: runs.iter().map(|run| run.cost).sum(),
        };
        self.record(&mut confirmation, folder)?;
        Ok(confirmation)
    }

    /// The two stacks in the order of the sites.
    fn in_order(&self, run: &Run) -> Option<Box<[CallStack; 2]>> {
        let mut faced = run.faced.clone()?;
        if !self.waiting_is_first(run) {
            faced.reverse();
        }
        Some(faced)
    }

    fn waiting_is_first(&self, run: &Run) -> bool {
        run.facing.is_some_and(|facing| match self.candidate.aim {
            // The thread that another one comes between.
            Aim::Atomicity => true,
            Aim::Race | Aim::Deadlock => self.candidate.first.contains(&facing.waiting.1),
        })
    }

    /// The runs that matter once more, recorded: a seed repeats a run exactly.
    fn record(
        &mut self,
        confirmation: &mut Confirmation,
        folder: &Path,
    ) -> Result<(), ConfirmError> {
        let name = file_name(&self.candidate.name);
        let path = |seed: u64| folder.join(format!("race-{name}-seed-{seed}.vrec"));
        let mut seeds: Vec<u64> = confirmation.errors.iter().map(|error| error.seed).collect();
        seeds.extend(confirmation.seed);
        seeds.sort_unstable();
        seeds.dedup();
        let requests: Vec<Request> = seeds
            .iter()
            .map(|seed| self.request(*seed, Some(path(*seed))))
            .collect();
        self.explorer.run_all(
            &mut requests.into_iter(),
            self.options.jobs,
            self.options.time_limit,
            &mut |_, _| {},
        )?;
        confirmation.recording = confirmation.seed.map(path);
        for error in &mut confirmation.errors {
            error.recording = Some(path(error.seed));
        }
        Ok(())
    }
}

impl Run {
    fn of(seed: u64, copied: Copied) -> Self {
        let ended = Ended::of(&copied);
        let Copied::Explored(exploration) = copied else {
            return Run {
                seed,
                facing: None,
                faced: None,
                ended,
                place: None,
                deadlock: None,
                // It was ended for taking too long.
                cost: LOST_COST,
            };
        };
        let stats = &exploration.report.stats;
        let cost = stats.instructions + stats.watch_stops.saturating_mul(STOP_COST);
        let deadlock = match &exploration.report.outcome {
            Outcome::Deadlock(deadlock) => Some(Box::new(deadlock.clone())),
            _ => None,
        };
        Run {
            seed,
            facing: exploration.facings.first().copied(),
            faced: exploration.faced,
            ended,
            deadlock,
            cost,
            place: place(exploration.report.outcome),
        }
    }
}

fn place(outcome: Outcome) -> Option<Box<CallStack>> {
    match outcome {
        Outcome::Signalled { fault, .. } => fault.map(|fault| Box::new(fault.place)),
        Outcome::Deadlock(deadlock) => {
            let mut threads = deadlock.threads;
            threads.sort_by_key(|thread| thread.owner.is_none());
            threads
                .into_iter()
                .next()
                .map(|thread| Box::new(thread.place))
        }
        _ => None,
    }
}

/// The files that the program has mapped when it has its second thread.
pub fn modules(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    folder: &Path,
) -> Result<Vec<MappedModule>, ConfirmError> {
    let mut explorer = Explorer::start(config, launch, folder, false)?;
    if let Advanced::Ended(ending) = explorer.advance(Moment::SecondThread)? {
        return Err(ended_early(&ending));
    }
    let request = Request {
        instructions_max: Some(0),
        ..Request::new(RunSchedule::Same)
    };
    let mut modules = Vec::new();
    explorer.run_all(&mut std::iter::once(request), 1, None, &mut |_, copied| {
        if let Copied::Explored(exploration) = copied {
            modules = exploration.modules;
        }
    })?;
    Ok(modules)
}
