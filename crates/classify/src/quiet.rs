//! Evidence with as few preemptions as still show what it shows.
//!
//! An alternate comes from where it is cheap: the primary, with all its turns, and turns of the same length after the race. Who wants
//! to understand it has to follow every switch. So the same two accesses are brought together with turns so long that threads
//! run until they wait, first after the race and then before it, too; of those that come to the same, the one counts in which
//! the fewest threads lose a turn that could have gone on. That is one where the thread of the first access is all that has to be
//! held, and not none, since something has to be.

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

/// Nothing shows another order with fewer.
const FEWEST: u64 = 1;

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
    from: From,
    after: After,
}

/// Where it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// Before the instance, as the primary came there.
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
    /// What is tried from the moment before the instance.
    pub(crate) const FROM_HERE: [Manner; 2] = [
        Manner::new(From::Instance, After::Stays),
        Manner::new(From::Instance, After::LongTurns),
    ];
    /// What is tried from the beginning.
    const FROM_BEGINNING: [Manner; 5] = [
        Manner::new(From::BeginningFirst, After::Stays),
        Manner::new(From::BeginningFirst, After::LongTurns),
        Manner::new(From::Beginning, After::LongTurns),
        Manner::new(From::Beginning, After::AsTried),
        Manner::new(From::BeginningOther, After::LongTurns),
    ];

    const fn new(from: From, after: After) -> Manner {
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
            manner: Manner::new(From::Instance, After::AsTried),
        }
    }

    /// True if a quieter one may be found. Only what an alternate does has to be understood.
    pub(crate) fn may_be_quieter(&self, class: Option<Class>) -> bool {
        let shown = matches!(class, Some(Class::SpecViolated | Class::OutputDiffers));
        shown && is_enforced(&self.exploration) && self.preemptions > FEWEST
    }

    /// What is tried from the beginning.
    pub(crate) fn from_beginning(&self) -> Vec<Manner> {
        // What is done inside of a call, or in two halves, is not made at once.
        let at_once = self.tried.order() == ShownOrder::Turned && !self.instance.calls[1];
        let possible = |manner: &Manner| at_once || manner.from != From::BeginningOther;
        let all = Manner::FROM_BEGINNING.into_iter();
        all.filter(possible).collect()
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
        if manner.from == From::BeginningOther
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
            From::Instance => return request,
            From::BeginningFirst | From::Beginning => first,
            From::BeginningOther => second,
        };
        request.approach = Some(Approach {
            thread: awaited.thread,
            pc: awaited.pc,
            nth: arrivals(awaited, &self.instance, primary),
            quantum: long,
            preferred: manner.from != From::Beginning,
        });
        request
    }

    /// Takes the quietest of those that show the same. True if there is one.
    pub(crate) fn take_quieter(
        &mut self,
        primary: &Primary,
        class: Option<Class>,
        runs: Vec<(Manner, Copied)>,
    ) -> bool {
        let before = self.preemptions;
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
        self.preemptions < before
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
