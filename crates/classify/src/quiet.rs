//! Evidence with as few preemptions as still show what it shows.
//!
//! An alternate comes from where it is cheap: the primary, with all its turns, and turns of the same length after the race. Who wants
//! to understand it has to follow every switch. So the same two accesses are brought together with turns so long that threads
//! run until they wait, from the program's second thread on; of those that come to the same, the one counts in which a thread loses
//! its turn least often that could have gone on.

use crate::alternates::{Try, is_enforced};
use crate::blame::Scene;
use crate::output::difference;
use crate::{Class, Instance, Options, Primary, ShownOrder, Verdict};
use std::collections::BTreeSet;
use std::path::PathBuf;
use verdict_confirm::Ended;
use verdict_explore::{AccessOrder, RacingAccess};
use verdict_launch::{Copied, Request};
use verdict_protocol::{Approach, Exploration, RunSchedule};

/// So few can be followed: to look for one less is not worth another run.
const FEW: u64 = 2;

/// What shows a verdict, and how quietly.
pub(crate) struct Show {
    pub(crate) tried: Try,
    pub(crate) instance: Instance,
    /// Where it is recorded.
    pub(crate) file: PathBuf,
    /// What the alternate came to that is to be shown.
    exploration: Box<Exploration>,
    pub(crate) manner: Manner,
    pub(crate) preemptions: u64,
}

/// How the two accesses are brought together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manner {
    from: Start,
    after: After,
}

/// Where it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Start {
    /// Before the instance, as the primary came there: the alternate that was judged.
    Instance,
    /// With the program's second thread. Long turns; the thread of the first access has its turns before others.
    BeginningFirst,
    /// With the program's second thread. Long turns.
    Beginning,
    /// The same; the thread of the access that shall come first makes it at once and steps aside.
    BeginningOther,
}

/// What comes after the other order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// As it was tried.
    AsTried,
    /// Long turns; the first thread has its turn back.
    LongTurns,
    /// Long turns; who made the second access goes on.
    Stays,
}

impl Manner {
    /// What is tried, the most promising first: a few at a time, until few preemptions are left. Each takes as long as the program.
    pub(crate) const ALL: [&[Manner]; 2] = [
        &[
            Manner::new(Start::BeginningFirst, After::Stays),
            Manner::new(Start::BeginningOther, After::LongTurns),
        ],
        &[
            Manner::new(Start::BeginningFirst, After::LongTurns),
            Manner::new(Start::Beginning, After::LongTurns),
            Manner::new(Start::Beginning, After::AsTried),
        ],
    ];

    const fn new(from: Start, after: After) -> Manner {
        Manner { from, after }
    }
}

impl Show {
    pub(crate) fn new(
        tried: Try,
        instance: Instance,
        file: PathBuf,
        exploration: Box<Exploration>,
    ) -> Show {
        Show {
            tried,
            instance,
            file,
            preemptions: exploration.preemptions,
            exploration,
            manner: Manner::new(Start::Instance, After::AsTried),
        }
    }

    /// True if a quieter one may be found. Only what an alternate does has to be understood.
    pub(crate) fn may_be_quieter(&self, class: Option<Class>) -> bool {
        let shown = match class {
            // Otherwise it is the recorded order that breaks the program.
            Some(Class::SpecViolated) => Scene::of(&self.exploration).is_some(),
            Some(Class::OutputDiffers) => true,
            _ => false,
        };
        shown && is_enforced(&self.exploration) && self.preemptions > FEW
    }

    /// Whether it can be shown like this: what is done inside of a call, or in two halves, is not made at once.
    pub(crate) fn is_possible(&self, manner: Manner) -> bool {
        let at_once = self.tried.order() == ShownOrder::Turned && !self.instance.calls[1];
        at_once || manner.from != Start::BeginningOther
    }

    /// The copy that shows it like this.
    pub(crate) fn request(
        &self,
        manner: Manner,
        options: &Options,
        primary: &Primary,
        recording: Option<PathBuf>,
    ) -> Request {
        // Nobody runs for longer than everybody did together, unless it waits for somebody who does not get to run.
        let long = primary.instructions + 1;
        let mut request = self
            .tried
            .request(options, primary, &self.instance, recording);
        if let RunSchedule::Alternate {
            quantum,
            seed,
            stays,
            ..
        } = &mut request.schedule
            && manner.after != After::AsTried
        {
            *quantum = long;
            *seed = None;
            *stays = manner.after == After::Stays;
        }
        let Instance { first, second, .. } = &self.instance;
        if manner.from == Start::BeginningOther
            && let RunSchedule::Alternate {
                first: made,
                second: after,
                order,
                ..
            } = &mut request.schedule
        {
            (*made, *after) = (second.clone(), first.clone());
            *order = AccessOrder::Aside;
        }
        let awaited = match manner.from {
            Start::Instance => return request,
            Start::BeginningFirst | Start::Beginning => first,
            Start::BeginningOther => second,
        };
        request.approach = Some(Approach {
            thread: awaited.thread,
            pc: awaited.pc,
            nth: arrivals(awaited, &self.instance, primary),
            quantum: long,
            preferred: manner.from != Start::Beginning,
        });
        request
    }

    /// Takes the quietest of those that show the same.
    pub(crate) fn take_quieter(
        &mut self,
        primary: &Primary,
        class: Option<Class>,
        runs: Vec<(Manner, Copied)>,
    ) {
        for (manner, copied) in runs {
            let Copied::Explored(run) = copied else {
                continue;
            };
            if run.preemptions < self.preemptions
                && shows_the_same(primary, class, &self.exploration, &run)
            {
                self.preemptions = run.preemptions;
                self.manner = manner;
            }
        }
    }
}

/// How often the thread of an access of the instance had come to it in the primary, that time included.
fn arrivals(access: &RacingAccess, instance: &Instance, primary: &Primary) -> u64 {
    let stops = primary.exploration.stops.iter();
    let mine = stops.filter(|stop| (stop.thread, stop.pc) == (access.thread, access.pc));
    let times: BTreeSet<u64> = mine.map(|stop| stop.begun.1).collect();
    let before = times.range(..instance.retired).count() as u64;
    // The first access is made at that moment, the second one some time after it.
    before + 1
}

/// True if both runs are evidence of the same.
fn shows_the_same(
    primary: &Primary,
    class: Option<Class>,
    shown: &Exploration,
    run: &Exploration,
) -> bool {
    if !is_enforced(run) {
        return false;
    }
    match class {
        Some(Class::SpecViolated) => match (Scene::of(shown), Scene::of(run)) {
            (Some(shown), Some(now)) => shown.same_place(&now),
            _ => false,
        },
        Some(Class::OutputDiffers) => {
            let said = |run: &Exploration| difference(&primary.exploration, run);
            let kind = |run: &Exploration| Ended::of_exploration(run).kind;
            kind(shown) == kind(run) && said(shown) == said(run)
        }
        _ => false,
    }
}

/// Says how quiet the evidence of a verdict is.
pub(crate) fn tell(show: &Show, verdict: &mut Verdict) {
    for evidence in &mut verdict.evidence {
        if evidence.path == show.file {
            evidence.preemptions = show.preemptions;
        }
    }
}
