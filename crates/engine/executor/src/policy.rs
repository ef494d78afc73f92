//! Who decides who runs.

use verdict_explore::{
    Alternate, AlternateState, Facing, Preferring, RaceDirected, SegmentEnd, Segments,
    SegmentsState, Situation,
};
use verdict_protocol::{Approach, ExecutorConfig, RunSchedule, SchedulePolicy};
use verdict_schedule::{
    Decision, DecisionPoint, NextAccess, RandomScheduler, RoundRobin, Scheduler,
};

/// The scheduler of a run.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    RoundRobin(RoundRobin),
    Random(RandomScheduler),
    Preferring(Preferring),
    Directed(Box<RaceDirected>),
    Alternate(Box<Alternate>),
    Segments(Box<Segments>),
}

impl Policy {
    pub(crate) fn of_config(config: &ExecutorConfig) -> Self {
        match config.schedule {
            SchedulePolicy::RoundRobin => Policy::RoundRobin(RoundRobin::new(config.quantum)),
            SchedulePolicy::Random => {
                Policy::Random(RandomScheduler::new(config.seed, config.quantum))
            }
        }
    }

    /// The scheduler of a copy until its own begins.
    pub(crate) fn of_approach(approach: &Approach) -> Self {
        let preferred = approach.preferred.then_some(approach.thread);
        Policy::Preferring(Preferring::new(preferred, approach.quantum))
    }

    /// The scheduler of a copy; `None` to keep what there is.
    pub(crate) fn of_run(schedule: &RunSchedule) -> Option<Self> {
        Some(match schedule {
            RunSchedule::Same => return None,
            RunSchedule::RoundRobin { quantum } => Policy::RoundRobin(RoundRobin::new(*quantum)),
            RunSchedule::Random { seed, quantum } => {
                Policy::Random(RandomScheduler::new(*seed, *quantum))
            }
            RunSchedule::Directed(target) => {
                Policy::Directed(Box::new(RaceDirected::new(target.clone())))
            }
            RunSchedule::Alternate {
                first,
                second,
                order,
                quantum,
                seed,
                stays,
            } => {
                let second = second.clone();
                let alternate = Alternate::new(first, second, *order, *quantum, *seed);
                Policy::Alternate(Box::new(alternate.staying(*stays)))
            }
            RunSchedule::Segments {
                first,
                second,
                length_max,
                wanted,
                start,
                skips,
            } => {
                let (first, second) = (first.clone(), second.clone());
                let segments = Segments::new(first, second, *length_max, *wanted, *start);
                Policy::Segments(Box::new(segments.skipping(*skips)))
            }
        })
    }

    pub(crate) fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        match self {
            Policy::RoundRobin(scheduler) => scheduler.decide(point),
            Policy::Random(scheduler) => scheduler.decide(point),
            Policy::Preferring(scheduler) => scheduler.decide(point),
            Policy::Directed(scheduler) => scheduler.decide(point),
            Policy::Alternate(scheduler) => scheduler.decide(point),
            Policy::Segments(scheduler) => scheduler.decide(point),
        }
    }

    /// True if updates in place are to be split into load and store.
    pub(crate) fn splits_updates(&self) -> bool {
        matches!(self, Policy::Directed(scheduler) if !scheduler.aims_at_locks())
    }

    /// True if watched calls are looked at for the lock that they are given.
    pub(crate) fn aims_at_locks(&self) -> bool {
        matches!(self, Policy::Directed(scheduler) if scheduler.aims_at_locks())
    }

    /// True if somebody waits for an access to the same bytes.
    pub(crate) fn awaits(&self, access: &NextAccess) -> bool {
        match self {
            Policy::Directed(scheduler) => scheduler.awaits(access),
            _ => false,
        }
    }

    /// True if nobody needs to be asked before this instruction any more.
    pub(crate) fn is_done_with(&self, pc: u64) -> bool {
        matches!(self, Policy::Directed(scheduler) if scheduler.is_done_with(pc))
    }

    /// The races that a directed scheduler has created.
    pub(crate) fn facings(&self) -> &[Facing] {
        match self {
            Policy::Directed(scheduler) => scheduler.facings(),
            _ => &[],
        }
    }

    /// A violation of two accesses that belong together has begun.
    pub(crate) fn begun(&self) -> Option<Facing> {
        match self {
            Policy::Directed(scheduler) => scheduler.begun(),
            _ => None,
        }
    }

    /// How far two segments have come.
    pub(crate) fn segments(&self) -> Option<SegmentsState> {
        match self {
            Policy::Segments(scheduler) => Some(scheduler.state()),
            _ => None,
        }
    }

    /// Where two segments ended, as far as they have.
    pub(crate) fn segment_ends(&self) -> [Option<SegmentEnd>; 2] {
        match self {
            Policy::Segments(scheduler) => scheduler.ends(),
            _ => [None; 2],
        }
    }

    /// Says how things stand, to schedulers that want to know.
    pub(crate) fn tell(&mut self, situation: Situation) {
        match self {
            Policy::Segments(scheduler) => scheduler.tell(situation),
            Policy::Alternate(scheduler) => scheduler.tell(situation),
            Policy::Directed(scheduler) => scheduler.tell(situation),
            _ => {}
        }
    }

    /// True for a schedule that is there for two accesses.
    pub(crate) fn looks_for_something(&self) -> bool {
        matches!(
            self,
            Policy::Directed(_) | Policy::Alternate(_) | Policy::Segments(_)
        )
    }

    /// The thread that is kept from running for as long as it takes.
    pub(crate) fn held(&self) -> Option<u32> {
        match self {
            Policy::Segments(scheduler) => scheduler.held(),
            Policy::Alternate(scheduler) => scheduler.held(),
            _ => None,
        }
    }

    /// How far an alternate has come.
    pub(crate) fn alternate(&self) -> Option<AlternateState> {
        match self {
            Policy::Alternate(scheduler) => Some(scheduler.state()),
            _ => None,
        }
    }
}
