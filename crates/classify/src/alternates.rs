//! What copies try from the moment before an instance, and what that says.

use crate::blame::{Harm, Runs};
use crate::habit::seen;
use crate::output::difference;
use crate::primary::STOPS_MAX;
use crate::state::Compared;
use crate::{
    Class, Evidence, Instance, Options, Primary, ReplayOutcome, Shown, ShownOrder, Verdict,
};
use std::path::PathBuf;
use verdict_confirm::{Ended, EndedKind};
use verdict_explore::{AccessOrder, AlternateState, RacingAccess, SegmentEnd, SegmentsStart};
use verdict_launch::{Copied, Request};
use verdict_protocol::{Bytes, Exploration, Outcome, RunSchedule, WaitingThread, WatchedCall};
use verdict_schedule::SplitMix;

/// How much longer than the primary an alternate may be (Kasikci et al. 2015, section 5).
const LONGER: u64 = 5;
/// Room for programs that are over in no time.
const EXTRA_INSTRUCTIONS: u64 = 500_000_000;
/// Stops at the two accesses that are noted of the other order.
const FIRST_STOPS: usize = 1_000;
/// Segments that are brought together may be some way apart.
const APART_MAX: u64 = 200_000_000;

/// One thing that a copy tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Try {
    /// The two segments as they were, until both threads stand here; the first thread passes the place where it shall stop
    /// so many times.
    RecordedSegments(Option<[SegmentEnd; 2]>, u32),
    /// The two segments the other way round; the first thread passes the place where it shall stop so many times.
    SwappedSegments(Option<[SegmentEnd; 2]>, u32),
    /// The same, between the load and the store of the first access, if that is an update in place.
    SplitSegments([SegmentEnd; 2]),
    /// The second access between the load and the store of the first one, to the end.
    Split,
    /// The other order to the end; with a seed, everything after it at random. A call is made as a whole.
    Alternate(Option<u64>),
    /// The other order, where the second access is made inside of a call: the first one comes right after it, before the rest
    /// of the call.
    Inside,
    /// The recorded order, with the first access as late as the second one allows. (Sen 2008: two accesses that face each
    /// other may do harm in either order.)
    Late,
    /// The recorded order, and everything after it at random: what the schedule alone can do.
    Control(u64),
}

/// What is tried to the program's end from the moment before an instance.
pub(crate) fn tries(options: &Options, instance: &Instance) -> Vec<Try> {
    let mut random = SplitMix::new(options.seed ^ instance.retired);
    let seeds: Vec<u64> = (0..options.schedules.saturating_sub(1))
        .map(|_| random.next_u64() >> 16)
        .collect();
    let mut tries = vec![Try::Alternate(None), Try::Late];
    if instance.calls[1] {
        tries.push(Try::Inside);
    }
    if instance.first.write && instance.second.write {
        tries.push(Try::Split);
    }
    tries.extend(seeds.iter().map(|seed| Try::Alternate(Some(*seed))));
    tries.extend(seeds.iter().map(|seed| Try::Control(*seed)));
    tries
}

impl Try {
    /// True if other races may have been decided otherwise, too.
    fn is_random(self) -> bool {
        matches!(self, Try::Alternate(Some(_)) | Try::Control(_))
    }

    /// What a copy has to be told.
    pub(crate) fn request(
        self,
        options: &Options,
        primary: &Primary,
        instance: &Instance,
        recording: Option<PathBuf>,
    ) -> Request {
        let mut request = self.plain_request(options, primary, instance);
        let bytes = [&instance.first, &instance.second].map(|access| Bytes {
            address: access.address,
            len: access.len,
        });
        request.calls = [instance.first.pc, instance.second.pc]
            .map(|pc| WatchedCall {
                pc,
                bytes: bytes.to_vec(),
            })
            .to_vec();
        request.freeing = options.freeing.clone();
        if !request.compare_memory {
            request.releasing = options.releasing.clone();
            request.properties = options.properties.clone();
            request.watched.extend(options.looked_at());
        }
        request.recording = recording;
        request
    }

    fn plain_request(self, options: &Options, primary: &Primary, instance: &Instance) -> Request {
        let (first, second) = (instance.first.clone(), instance.second.clone());
        let racing = [first.pc, second.pc];
        let limit = primary.instructions * LONGER + EXTRA_INSTRUCTIONS;
        let segments = |first: RacingAccess, second: RacingAccess, wanted, start, skips| Request {
            watched: racing
                .iter()
                .chain(&options.switch_points)
                .copied()
                .collect(),
            instructions_max: Some(limit.min(APART_MAX)),
            compare_memory: true,
            ..Request::new(RunSchedule::Segments {
                first,
                second,
                length_max: options.segment_max,
                wanted,
                start,
                skips,
            })
        };
        // Where the recorded execution crashes, it is noted how often threads come by there.
        let crash = primary.scene.as_ref().and_then(|scene| scene.instruction());
        let alternate = |first: RacingAccess, second: RacingAccess, order, seed| Request {
            watched: racing.iter().copied().chain(crash).collect(),
            stops_max: match (crash, self) {
                (Some(_), _) => STOPS_MAX,
                // What the reader sees, and whether it comes back, decides how the race is called.
                (None, Try::Alternate(None)) => FIRST_STOPS,
                (None, _) => 0,
            },
            instructions_max: Some(limit),
            ..Request::new(RunSchedule::Alternate {
                first,
                second,
                order,
                quantum: options.quantum,
                seed,
                stays: false,
            })
        };
        match self {
            Try::RecordedSegments(wanted, skips) => {
                segments(first, second, wanted, SegmentsStart::Second, skips)
            }
            Try::SwappedSegments(wanted, skips) => {
                segments(second, first, wanted, SegmentsStart::First, skips)
            }
            Try::SplitSegments(wanted) => Request {
                loaded: true,
                ..segments(second, first, Some(wanted), SegmentsStart::First, 0)
            },
            Try::Alternate(seed) => Request {
                whole_calls: true,
                ..alternate(first, second, AccessOrder::Turned, seed)
            },
            Try::Inside => alternate(first, second, AccessOrder::Turned, None),
            Try::Split => Request {
                loaded: true,
                ..alternate(first, second, AccessOrder::Turned, None)
            },
            Try::Late => alternate(first, second, AccessOrder::Kept, None),
            // The recorded order is kept, too: what is random comes after it.
            Try::Control(seed) => Request {
                whole_calls: true,
                ..alternate(second, first, AccessOrder::Turned, Some(seed))
            },
        }
    }
}

impl Try {
    /// How the accesses come after each other, where both come.
    pub(crate) fn order(self) -> ShownOrder {
        match self {
            Try::Split | Try::SplitSegments(_) => ShownOrder::Between,
            Try::Late | Try::Control(_) | Try::RecordedSegments(..) => ShownOrder::Kept,
            Try::Alternate(_) | Try::Inside | Try::SwappedSegments(..) => ShownOrder::Turned,
        }
    }
}

/// What one instance came to.
pub(crate) struct Judged {
    pub(crate) replay: Option<ReplayOutcome>,
    pub(crate) verdict: Verdict,
    /// The alternate that shows the worst, to be recorded.
    pub(crate) shown_by: Option<Try>,
}

/// Puts together what the copies of one instance came to.
pub(crate) fn judge(
    primary: &Primary,
    instance: &Instance,
    compared: Option<Compared>,
    results: &[(Try, Copied)],
) -> Judged {
    let mut verdict = Verdict::unknown();
    let mut shown_by = None;
    let mut certain = None;
    let replay = compared.as_ref().map(|compared| compared.outcome);
    if let Some(compared) = compared {
        verdict.states_differ = Some(compared.outcome == ReplayOutcome::StateChange);
        verdict.instances.off_path = u64::from(compared.off_path);
        verdict.words = compared.words;
    }
    let of = |wanted: fn(&Try) -> bool| {
        let those = results.iter().filter(move |(tried, _)| wanted(tried));
        those.filter_map(|(_, copied)| explored(copied))
    };
    let enforced = |run: &&Exploration| is_enforced(run);
    let runs = Runs {
        primary,
        instance,
        turned: of(|tried| *tried == Try::Alternate(None)).find(enforced),
        late: of(|tried| *tried == Try::Late).find(enforced),
        controls: of(|tried| matches!(tried, Try::Control(_))).collect(),
    };
    for (tried, copied) in results {
        let Some(alternate) = explored(copied) else {
            continue;
        };
        let class = match tried {
            Try::Alternate(_) | Try::Split | Try::Inside => {
                class_of(&runs, *tried, alternate, &mut verdict)
            }
            // In the recorded order, only harm is news.
            Try::Late if is_enforced(alternate) => {
                let harm = runs.harm_of_late(alternate);
                blame(primary, *tried, alternate, harm, &mut verdict)
            }
            _ => continue,
        };
        if !tried.is_random() {
            certain = worse(certain, class);
        }
        if class == Some(Class::KWitnessHarmless) {
            verdict.k += 1;
        }
        if class.is_some_and(|class| verdict.class.is_none_or(|worst| class < worst)) {
            verdict.class = class;
            shown_by = Some(*tried);
        }
    }
    let recorded = &primary.exploration.stops;
    let seen = runs
        .turned
        .and_then(|turned| seen(instance, recorded, &turned.stops));
    if let Some(seen) = seen {
        verdict.bits = seen.bits;
        verdict.habit = seen.habit(replay == Some(ReplayOutcome::NoStateChange));
    }
    if worse(certain, verdict.class) != certain {
        verdict.otherwise = certain.or(Some(Class::KWitnessHarmless));
    }
    if results
        .iter()
        .any(|(_, copied)| !matches!(copied, Copied::Explored(_)))
    {
        verdict
            .not_covered
            .push("a copy of the execution was lost or ran for too long".into());
    }
    verdict.shown = shown_by.map(|tried: Try| Shown {
        instance: instance.clone(),
        order: tried.order(),
    });
    Judged {
        replay,
        verdict,
        shown_by,
    }
}

/// The worse of two classes, where there are any.
fn worse(one: Option<Class>, other: Option<Class>) -> Option<Class> {
    one.into_iter().chain(other).min()
}

pub(crate) fn explored(copied: &Copied) -> Option<&Exploration> {
    match copied {
        Copied::Explored(exploration) => Some(exploration),
        _ => None,
    }
}

/// The class that one alternate speaks for; details go into the verdict if they are the worst so far.
fn class_of(
    runs: &Runs<'_>,
    tried: Try,
    alternate: &Exploration,
    verdict: &mut Verdict,
) -> Option<Class> {
    if !is_enforced(alternate) {
        if verdict.threads.is_empty() {
            verdict.threads = standing(&alternate.report.outcome);
            verdict.looping = alternate.looping.clone();
        }
        return Some(Class::SingleOrdering);
    }
    let ended = Ended::of_exploration(alternate);
    if ended.kind == EndedKind::Unknown {
        verdict.not_covered.push(ended.detail);
        return None;
    }
    let primary = runs.primary;
    let harm = runs.harm_of_turned(alternate);
    if let Some(class) = blame(primary, tried, alternate, harm, verdict) {
        return Some(class);
    }
    if ended.kind.is_error() && primary.scene.is_none() {
        // It happens in the recorded order as well: what it cuts off is not this race's doing either.
        return Some(Class::KWitnessHarmless);
    }
    let same_hash = |run: &&Exploration| run.output_hash == alternate.output_hash;
    let usual = runs.controls.iter().any(same_hash)
        // What a crash leaves unsaid depends on when it comes, not on the order.
        || primary.scene.is_some() && runs.late.iter().any(same_hash);
    let difference = difference(&primary.exploration, alternate)
        .filter(|found| !found.only_interleaving && !usual);
    let code_differs = ended.kind != primary.ended.kind && !primary.ended.kind.is_error();
    if difference.is_some() || code_differs {
        if verdict.output.is_none() {
            verdict.output = difference;
        }
        return Some(Class::OutputDiffers);
    }
    Some(Class::KWitnessHarmless)
}

pub(crate) fn is_enforced(alternate: &Exploration) -> bool {
    matches!(
        alternate.alternate,
        Some(AlternateState::Enforced | AlternateState::Passing)
    )
}

/// Says that the specification is violated, where it is and the race is to blame.
fn blame(
    primary: &Primary,
    tried: Try,
    run: &Exploration,
    harm: Harm,
    verdict: &mut Verdict,
) -> Option<Class> {
    let (shown_by, either_way) = match harm {
        Harm::No => return None,
        Harm::EitherWay => {
            verdict.either_way = Some(primary.ended.clone());
            return None;
        }
        Harm::ByThisRun { either_way } => (run, either_way),
        Harm::ByRecorded => (&*primary.exploration, false),
    };
    let ended = Ended::of_exploration(shown_by);
    let known = verdict.class == Some(Class::SpecViolated);
    // Better evidence is harm that only one of the orders does.
    if !known || verdict.either_way.is_some() && !either_way && !tried.is_random() {
        verdict.threads = standing(&shown_by.report.outcome);
        verdict.looping = shown_by.looping.clone();
        verdict.place = place(&shown_by.report.outcome);
        verdict.either_way = either_way.then(|| ended.clone());
        verdict.consequence = Some(ended);
    }
    Some(Class::SpecViolated)
}

fn standing(outcome: &Outcome) -> Vec<WaitingThread> {
    match outcome {
        Outcome::Deadlock(deadlock) => deadlock.threads.clone(),
        Outcome::LimitReached { threads } | Outcome::NotEnforced { threads } => threads.clone(),
        _ => Vec::new(),
    }
}

fn place(outcome: &Outcome) -> Option<Box<verdict_protocol::CallStack>> {
    match outcome {
        Outcome::Signalled { fault, .. } => {
            fault.as_ref().map(|fault| Box::new(fault.place.clone()))
        }
        _ => None,
    }
}

/// Takes the worse of two verdicts on instances of one race.
pub(crate) fn merge(all: &mut Verdict, judged: Judged) {
    match judged.replay {
        Some(ReplayOutcome::NoStateChange) => all.instances.no_state_change += 1,
        Some(ReplayOutcome::StateChange) => all.instances.state_change += 1,
        Some(ReplayOutcome::ReplayFailure) => all.instances.replay_failure += 1,
        None => all.instances.not_tried += 1,
    }
    all.replay = all.replay.max(judged.replay);
    let one = judged.verdict;
    all.instances.off_path += one.instances.off_path;
    if one.states_differ == Some(true) && all.states_differ != Some(true) {
        all.words = one.words.clone();
    }
    all.states_differ = all.states_differ.max(one.states_differ);
    all.habit = all.habit.max(one.habit);
    all.bits |= one.bits;
    all.k += one.k;
    for what in &one.not_covered {
        if !all.not_covered.contains(what) {
            all.not_covered.push(what.clone());
        }
    }
    let certain = |verdict: &Verdict| verdict.otherwise.or(verdict.class);
    let all_certain = worse(certain(all), certain(&one));
    let rank = |verdict: &Verdict| (verdict.class, verdict.is_doubtful());
    let is_worse = match (all.class, one.class) {
        (None, Some(_)) => true,
        (Some(_), Some(_)) => rank(&one) < rank(all),
        (_, None) => false,
    };
    if is_worse {
        all.class = one.class;
        all.either_way = one.either_way;
        all.consequence = one.consequence;
        all.place = one.place;
        all.memory = one.memory;
        all.threads = one.threads;
        all.looping = one.looping;
        all.output = one.output.or(all.output.take());
        all.evidence = one.evidence;
        all.shown = one.shown;
    }
    all.otherwise = all_certain.filter(|certain| Some(*certain) != all.class);
}

/// The recordings that show a verdict: what shows the class comes first.
pub(crate) fn evidence(
    alternate: PathBuf,
    preemptions: u64,
    primary: &Primary,
    verdict: &Verdict,
) -> Vec<Evidence> {
    let violation = verdict.consequence.as_ref().map(|ended| &ended.detail);
    let by_recorded = verdict.is_of_recorded(primary);
    let other = match (verdict.class, violation) {
        (Some(Class::SpecViolated), Some(detail)) if !by_recorded => detail.clone(),
        (Some(Class::OutputDiffers), _) => "the other output".into(),
        (Some(Class::SingleOrdering), _) => "the other order is not possible".into(),
        _ => "the other order".into(),
    };
    let recorded = match violation {
        Some(detail) if by_recorded => format!("the recorded order: {detail}"),
        _ => "the recorded order".into(),
    };
    let mut both = vec![
        Evidence {
            path: alternate,
            shows: other,
            preemptions,
        },
        Evidence {
            path: primary.recording.clone(),
            shows: recorded,
            preemptions: primary.exploration.preemptions,
        },
    ];
    if by_recorded {
        both.reverse();
    }
    both
}
