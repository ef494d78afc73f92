//! What copies try from the moment before an instance, and what that says.

use crate::output::difference;
use crate::state::Compared;
use crate::{Class, Evidence, Instance, Options, Primary, ReplayOutcome, Verdict};
use std::path::PathBuf;
use verdict_confirm::{Ended, EndedKind};
use verdict_explore::{AccessOrder, AlternateState, RacingAccess, SegmentEnd, SegmentsStart};
use verdict_launch::{Copied, Request};
use verdict_protocol::{Bytes, Exploration, Outcome, RunSchedule, WaitingThread, WatchedCall};
use verdict_schedule::SplitMix;

/// How much longer than the primary an alternate may be (Kasikci et al. 2015, section 5).
const LONGER: u64 = 5;
/// Room for programs that are over in no time.
const EXTRA_INSTRUCTIONS: u64 = 20_000_000;
/// Segments that are brought together may be some way apart.
const APART_MAX: u64 = 200_000_000;

/// One thing that a copy tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Try {
    /// The two segments as they were, until both threads stand here.
    RecordedSegments(Option<[SegmentEnd; 2]>),
    /// The two segments the other way round; the first thread passes the place where it shall stop so many times.
    SwappedSegments(Option<[SegmentEnd; 2]>, u32),
    /// The same, between the load and the store of the first access, if that is an update in place.
    SplitSegments([SegmentEnd; 2]),
    /// The second access between the load and the store of the first one, to the end.
    Split,
    /// The other order to the end; with a seed, everything after it at random.
    Alternate(Option<u64>),
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
    if instance.first.write && instance.second.write {
        tries.push(Try::Split);
    }
    tries.extend(seeds.iter().map(|seed| Try::Alternate(Some(*seed))));
    tries.extend(seeds.iter().map(|seed| Try::Control(*seed)));
    tries
}

impl Try {
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
        request.recording = recording;
        request
    }

    fn plain_request(self, options: &Options, primary: &Primary, instance: &Instance) -> Request {
        let (first, second) = (instance.first.clone(), instance.second.clone());
        let racing = vec![first.pc, second.pc];
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
        let alternate = |first: RacingAccess, second: RacingAccess, order, seed| Request {
            watched: racing.clone(),
            instructions_max: Some(limit),
            ..Request::new(RunSchedule::Alternate {
                first,
                second,
                order,
                quantum: options.quantum,
                seed,
            })
        };
        match self {
            Try::RecordedSegments(wanted) => {
                segments(first, second, wanted, SegmentsStart::Second, 0)
            }
            Try::SwappedSegments(wanted, skips) => {
                segments(second, first, wanted, SegmentsStart::First, skips)
            }
            Try::SplitSegments(wanted) => Request {
                loaded: true,
                ..segments(second, first, Some(wanted), SegmentsStart::First, 0)
            },
            Try::Alternate(seed) => alternate(first, second, AccessOrder::Turned, seed),
            Try::Split => Request {
                loaded: true,
                ..alternate(first, second, AccessOrder::Turned, None)
            },
            Try::Late => alternate(first, second, AccessOrder::Kept, None),
            // The recorded order is kept, too: what is random comes after it.
            Try::Control(seed) => alternate(second, first, AccessOrder::Turned, Some(seed)),
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
    compared: Option<Compared>,
    results: &[(Try, Copied)],
) -> Judged {
    let mut verdict = Verdict::unknown();
    let mut shown_by = None;
    let replay = compared.as_ref().map(|compared| compared.outcome);
    if let Some(compared) = compared {
        verdict.states_differ = Some(compared.outcome == ReplayOutcome::StateChange);
        verdict.instances.off_path = u64::from(compared.off_path);
        verdict.words = compared.words;
    }
    let controls: Vec<&Exploration> = results
        .iter()
        .filter(|(tried, _)| matches!(tried, Try::Control(_)))
        .filter_map(|(_, copied)| explored(copied))
        .collect();
    for (tried, copied) in results {
        let Some(alternate) = explored(copied) else {
            continue;
        };
        let class = match tried {
            Try::Alternate(_) | Try::Split => class_of(primary, alternate, &controls, &mut verdict),
            // In the recorded order, only harm is news.
            Try::Late if is_enforced(alternate) && fails(alternate) => {
                harm(primary, alternate, &controls, &mut verdict)
            }
            _ => continue,
        };
        if class == Some(Class::KWitnessHarmless) {
            verdict.k += 1;
        }
        if class.is_some_and(|class| verdict.class.is_none_or(|worst| class < worst)) {
            verdict.class = class;
            shown_by = Some(*tried);
        }
    }
    if results
        .iter()
        .any(|(_, copied)| !matches!(copied, Copied::Explored(_)))
    {
        verdict
            .not_covered
            .push("a copy of the execution was lost or ran for too long".into());
    }
    Judged {
        replay,
        verdict,
        shown_by,
    }
}

fn explored(copied: &Copied) -> Option<&Exploration> {
    match copied {
        Copied::Explored(exploration) => Some(exploration),
        _ => None,
    }
}

/// The class that one alternate speaks for; details go into the verdict if they are the worst so far.
fn class_of(
    primary: &Primary,
    alternate: &Exploration,
    controls: &[&Exploration],
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
    if let Some(class) = harm(primary, alternate, controls, verdict) {
        return Some(class);
    }
    let usual = |hash: u64| controls.iter().any(|control| control.output_hash == hash);
    let difference = difference(&primary.exploration, alternate)
        .filter(|found| !found.only_interleaving && !usual(alternate.output_hash));
    let code_differs = ended.kind != primary.ended.kind && !primary.ended.kind.is_error();
    if difference.is_some() || code_differs {
        if verdict.output.is_none() {
            verdict.output = difference;
        }
        return Some(Class::OutputDiffers);
    }
    Some(Class::KWitnessHarmless)
}

fn is_enforced(alternate: &Exploration) -> bool {
    matches!(
        alternate.alternate,
        Some(AlternateState::Enforced | AlternateState::Passing)
    )
}

fn fails(alternate: &Exploration) -> bool {
    Ended::of_exploration(alternate).kind.is_error()
}

/// Says that the specification is violated, where it is.
fn harm(
    primary: &Primary,
    alternate: &Exploration,
    controls: &[&Exploration],
    verdict: &mut Verdict,
) -> Option<Class> {
    let ended = Ended::of_exploration(alternate);
    let violation = violation(primary, &ended, controls)?;
    if verdict.class != Some(Class::SpecViolated) {
        verdict.threads = standing(&alternate.report.outcome);
        verdict.looping = alternate.looping.clone();
        verdict.place = place(&alternate.report.outcome);
        verdict.consequence = Some(violation);
    }
    Some(Class::SpecViolated)
}

/// Something goes wrong in one order and not in the other.
fn violation(primary: &Primary, ended: &Ended, controls: &[&Exploration]) -> Option<Ended> {
    let usual = |kind: EndedKind| {
        controls
            .iter()
            .any(|control| Ended::of_exploration(control).kind == kind)
    };
    if ended.kind.is_error() && ended.kind != primary.ended.kind && !usual(ended.kind) {
        return Some(ended.clone());
    }
    let only_primary = primary.ended.kind.is_error() && !ended.kind.is_error();
    only_primary.then(|| primary.ended.clone())
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
    all.k += one.k;
    for what in one.not_covered {
        if !all.not_covered.contains(&what) {
            all.not_covered.push(what);
        }
    }
    let worse = match (all.class, one.class) {
        (None, Some(_)) => true,
        (Some(all), Some(one)) => one < all,
        (_, None) => false,
    };
    if worse {
        all.class = one.class;
        all.consequence = one.consequence;
        all.place = one.place;
        all.threads = one.threads;
        all.looping = one.looping;
        all.output = one.output;
        all.evidence = one.evidence;
    }
}

/// In a few words, what a recording of this alternate shows.
pub(crate) fn shows(verdict: &Verdict) -> String {
    match (&verdict.class, &verdict.consequence) {
        (Some(Class::SpecViolated), Some(ended)) => ended.detail.clone(),
        (Some(Class::OutputDiffers), _) => "the other output".into(),
        (Some(Class::SingleOrdering), _) => "the other order is not possible".into(),
        _ => "the other order".into(),
    }
}

/// A recording's file and what it shows.
pub(crate) fn evidence(path: PathBuf, verdict: &Verdict) -> Evidence {
    Evidence {
        shows: shows(verdict),
        path,
    }
}
