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
use crate::{Class, Instance, Options, Primary, Verdict};
use std::collections::BTreeSet;
use std::path::PathBuf;
use verdict_confirm::Ended;
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
    pub(crate) const FROM_BEGINNING: [Manner; 4] = [
        Manner::new(From::BeginningFirst, After::Stays),
        Manner::new(From::BeginningFirst, After::LongTurns),
        Manner::new(From::Beginning, After::LongTurns),
        Manner::new(From::Beginning, After::AsTried),
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
        if manner.from != From::Instance {
            request.approach = Some(Approach {
                thread: self.instance.first.thread,
                pc: self.instance.first.pc,
                nth: arrivals(&self.instance, primary),
                quantum: long,
                preferred: manner.from == From::BeginningFirst,
            });
        }
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

/// How often the thread of the first access had come to it, this time included.
fn arrivals(instance: &Instance, primary: &Primary) -> u64 {
    let stops = primary.exploration.stops.iter();
    let mine = stops.filter(|stop| {
        (stop.thread, stop.pc) == (instance.first.thread, instance.first.pc)
            && stop.begun.1 <= instance.retired
    });
    let times: BTreeSet<u64> = mine.map(|stop| stop.begun.1).collect();
    times.len() as u64
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
