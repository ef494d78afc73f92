//! Whose doing it is when something goes wrong.
//!
//! A race is to blame for a violation if one of its orders leads there and the other one does not. What happens in either
//! order has another cause, perhaps another race: that is told, and the race is judged by the rest.

use crate::{Instance, Primary};
use verdict_confirm::{Ended, EndedKind};
use verdict_protocol::{Exploration, Outcome};

/// Something that goes wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scene {
    kind: EndedKind,
    /// Of a crash: the instruction; of an assertion: its words.
    place: Place,
    /// Of a crash: who.
    thread: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Instruction(u64),
    Words(String),
    Anywhere,
}

impl Scene {
    /// `None` if nothing goes wrong.
    pub(crate) fn of(exploration: &Exploration) -> Option<Self> {
        let ended = Ended::of_exploration(exploration);
        if !ended.kind.is_error() {
            return None;
        }
        let fault = match &exploration.report.outcome {
            Outcome::Signalled { fault, .. } => fault.as_deref(),
            _ => None,
        };
        let place = match (ended.kind, fault) {
            (EndedKind::Crash(_), Some(fault)) => Place::Instruction(fault.place.registers.rip),
            (EndedKind::Assertion, _) => Place::Words(ended.detail),
            _ => Place::Anywhere,
        };
        Some(Scene {
            kind: ended.kind,
            place,
            thread: fault.map(|fault| fault.thread),
        })
    }

    /// True for two violations in the same place.
    pub(crate) fn same_place(&self, other: &Scene) -> bool {
        (self.kind, &self.place) == (other.kind, &other.place)
    }

    /// The instruction that crashes.
    pub(crate) fn instruction(&self) -> Option<u64> {
        match self.place {
            Place::Instruction(pc) => Some(pc),
            _ => None,
        }
    }
}

/// What one run says of violations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Harm {
    /// Nothing goes wrong that does not always.
    No,
    /// This run leads to one, and the recorded execution does not. It does not depend on the order if the two accesses lead
    /// there in either one once they are close together.
    ByThisRun {
        /// Then another race may explain it.
        either_way: bool,
    },
    /// The recorded execution leads to one, and the other order does not.
    ByRecorded,
    /// Both lead to the same.
    EitherWay,
}

/// The runs that a judgement takes into account.
pub(crate) struct Runs<'a> {
    pub(crate) primary: &'a Primary,
    pub(crate) instance: &'a Instance,
    /// The other order.
    pub(crate) turned: Option<&'a Exploration>,
    /// The recorded order, as late as possible.
    pub(crate) late: Option<&'a Exploration>,
    /// The recorded order, and then other schedules.
    pub(crate) controls: Vec<&'a Exploration>,
}

impl Runs<'_> {
    /// What a run with the other order says.
    pub(crate) fn harm_of_turned(&self, run: &Exploration) -> Harm {
        let late = self.late.map(Scene::of);
        match (&self.primary.scene, Scene::of(run)) {
            (None, None) => Harm::No,
            (None, Some(now)) => match self.is_usual(&now) {
                true => Harm::No,
                false => Harm::ByThisRun {
                    either_way: late.flatten().is_some_and(|late| late.same_place(&now)),
                },
            },
            // Where keeping the order avoids it as well, the order is not what decides.
            (Some(_), None) => match late {
                Some(None) => Harm::No,
                _ => Harm::ByRecorded,
            },
            (Some(then), Some(now)) if then.same_place(&now) => match self.comes_later(then, run) {
                true => Harm::ByRecorded,
                false => Harm::EitherWay,
            },
            (Some(_), Some(now)) => match self.is_usual(&now) {
                true => Harm::No,
                false => Harm::ByThisRun { either_way: false },
            },
        }
    }

    /// What a run says that keeps the recorded order: only harm that the recorded execution does not have is news.
    pub(crate) fn harm_of_late(&self, run: &Exploration) -> Harm {
        match (&self.primary.scene, Scene::of(run)) {
            (None, Some(now)) if !self.is_usual(&now) => {
                let turned = self.turned.and_then(Scene::of);
                Harm::ByThisRun {
                    either_way: turned.is_some_and(|turned| turned.same_place(&now)),
                }
            }
            _ => Harm::No,
        }
    }

    /// True if the same happens in the recorded order under other schedules.
    fn is_usual(&self, scene: &Scene) -> bool {
        self.controls
            .iter()
            .any(|control| Ended::of_exploration(control).kind == scene.kind)
    }

    /// True if the thread has passed the place where the recorded execution crashes more often before it crashes there, too: this
    /// time it was avoided.
    fn comes_later(&self, then: &Scene, run: &Exploration) -> bool {
        let (Some(pc), Some(thread)) = (then.instruction(), then.thread) else {
            return false;
        };
        let recorded = &self.primary.exploration;
        if recorded.stops_cut || run.stops_cut {
            return false;
        }
        let before = recorded
            .stops
            .iter()
            .filter(|stop| stop.retired >= self.instance.retired)
            .filter(|stop| (stop.pc, stop.thread) == (pc, thread));
        let now = run
            .stops
            .iter()
            .filter(|stop| (stop.pc, stop.thread) == (pc, thread));
        now.count() > before.count()
    }
}
