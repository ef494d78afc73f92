//! What all detectors do alike: follow happens-before, find the units an access covers, and hand both to the
//! rule that tells them apart.

use std::hint::black_box;

use verdict_clocks::{Epoch, HappensBefore, Rules};
use verdict_events::{
    Access, Addr, Between, Digest, Event, EventKind, Mark, Position, SiteId, Step,
};

use crate::findings::{Answer, Findings, HistorySize, TraceSize};
use crate::pages::{NO_UNIT, UnitId};
use crate::shadow::{Duplicate, Finding, Shadow, Unit};
use crate::{AccessKind, Algorithm, Detector, RaceSet, Side};

/// One access on its way through the units it covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub epoch: Epoch,
    pub site: SiteId,
    /// Event numbers fit 32 bits; `detect` refuses longer traces.
    pub position: u32,
    pub kind: AccessKind,
    /// First byte of the access, which may lie before the unit.
    pub start: u64,
}

impl Touch {
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.kind, AccessKind::Read | AccessKind::Write)
    }

    pub fn side(&self) -> Side {
        side(self.epoch, self.site, self.kind, self.position)
    }
}

/// The same of a plain access, as far as most of them need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainAccess {
    pub epoch: Epoch,
    pub site: SiteId,
    pub position: u32,
    pub is_write: bool,
}

impl PlainAccess {
    #[inline(always)]
    fn touch(self, start: u64) -> Touch {
        Touch {
            epoch: self.epoch,
            site: self.site,
            position: self.position,
            kind: match self.is_write {
                false => AccessKind::Read,
                true => AccessKind::Write,
            },
            start,
        }
    }
}

pub(crate) fn side(epoch: Epoch, site: SiteId, kind: AccessKind, position: u32) -> Side {
    Side {
        thread: epoch.thread(),
        site,
        kind,
        position: Position(u64::from(position)),
    }
}

/// The part in which detectors differ.
pub(crate) trait Judge: Duplicate<Self::State> {
    /// What is remembered of a location.
    type State: Default;

    const RULES: Rules;

    /// Whether an access changes nothing if its bytes have been accessed in the same segment before, by a write if it is
    /// one, and have not become a fresh object since.
    const SKIPS_REPEATED: bool = false;

    /// Reads something of what `touch` will need, and answers with anything that depends on it. Done for several
    /// accesses ahead, so that the processor waits for memory once and not for each.
    #[inline]
    fn glance(&self, _state: &Self::State) -> u64 {
        0
    }

    /// A plain access covers exactly a unit with this state: does all that is to be done about it if nothing else is needed
    /// for that, and answers whether it did.
    #[inline(always)]
    fn touch_own(&mut self, _access: PlainAccess, _state: &mut Self::State) -> bool {
        false
    }

    /// An access begins; `touch` follows for each unit it covers.
    fn begin_access(&mut self) {}

    /// An access covers `unit`. `order` is what its thread knows at that moment.
    fn touch(&mut self, touch: &Touch, unit: Unit<Self::State>, order: &HappensBefore);

    /// The memory of a unit becomes a fresh object.
    fn forget(&mut self, state: &mut Self::State);

    /// The bytes just before `at` became a fresh object: accesses remembered in the unit at `at` now start
    /// there. Answers whether there were any.
    fn cut(&mut self, _state: &mut Self::State, _at: u64) -> bool {
        false
    }

    /// Any event that is no access.
    fn synchronise(&mut self, _event: &Event) {}

    /// Called now and then, to free what no longer matters.
    fn tidy(&mut self, _shadow: &mut Shadow<Self::State>, _order: &HappensBefore) {}

    /// How many records of accesses are held.
    fn records(&self, shadow: &Shadow<Self::State>) -> u64;

    /// Whether something was dropped that would have been needed.
    fn is_misled(&self) -> bool {
        false
    }

    fn take_races(&mut self) -> RaceSet;

    /// For detectors with limited history.
    fn history(&self, _shadow: &Shadow<Self::State>) -> Option<HistorySize> {
        None
    }
}

/// How many accesses ahead units are looked up: as many misses as a processor can wait for at once, and some.
const AHEAD: usize = 32;

pub(crate) struct Machine<J: Judge> {
    algorithm: Algorithm,
    judge: J,
    order: HappensBefore,
    shadow: Shadow<J::State>,
    events: u32,
    /// The epoch of the plain accesses that come now.
    current: Epoch,
}

impl<J: Judge> Machine<J> {
    pub fn new(algorithm: Algorithm, judge: J) -> Machine<J> {
        Machine {
            algorithm,
            judge,
            order: HappensBefore::new(J::RULES),
            shadow: Shadow::new(),
            events: 0,
            current: Epoch::NONE,
        }
    }

    /// Some accesses, in order, and what happens between them: those of `marks` are left that come after. The units of all
    /// are looked up first, so that the processor waits for their memory together.
    #[inline]
    fn some_steps(&mut self, first: usize, steps: &[Step], marks: &mut &[Mark], digest: &Digest) {
        let mut units = [NO_UNIT; AHEAD];
        for (step, unit) in steps.iter().zip(&mut units) {
            let found = self.shadow.exact(step.start(), step.size());
            *unit = found.unwrap_or(NO_UNIT);
        }
        let seen = units[..steps.len()]
            .iter()
            .map(|&unit| self.judge.glance(self.shadow.state(unit)));
        black_box(seen.fold(0, |all, one| all ^ one));
        let mut done = 0;
        while done < steps.len() {
            self.between(first + done, marks, digest);
            let run_end = marks.first().map_or(usize::MAX, |mark| mark.at as usize) - first;
            let run = done..run_end.min(steps.len());
            done = run.end;
            for number in run {
                let (step, unit) = (&steps[number], units[number]);
                let access = PlainAccess {
                    epoch: self.current,
                    site: step.site,
                    position: self.events + step.index,
                    is_write: step.is_write(),
                };
                if unit == NO_UNIT || !self.judge.touch_own(access, self.shadow.state_mut(unit)) {
                    self.access_slowly(access.touch(step.start()), step.size(), &mut units);
                }
            }
        }
    }

    /// Any access. Forgets the units that were looked up for others if they may not be right any more.
    #[inline(never)]
    fn access_slowly(&mut self, touch: Touch, size: u32, units: &mut [UnitId; AHEAD]) {
        let splits = self.shadow.splits();
        self.access(&touch, size);
        if self.shadow.splits() != splits {
            *units = [NO_UNIT; AHEAD];
        }
    }

    /// What happens before the step with number `at`.
    #[inline]
    fn between(&mut self, at: usize, marks: &mut &[Mark], digest: &Digest) {
        while let Some((mark, later)) = marks.split_first()
            && mark.at as usize <= at
        {
            *marks = later;
            match mark.what {
                Between::Thread(thread) => self.current = self.order.note_access(thread),
                Between::Other(number) => {
                    let (index, event) = digest.other(number);
                    self.other(event, self.events + index);
                }
            }
        }
    }

    /// Any event but the usual reads and writes, which are by far the most.
    #[inline(never)]
    fn other(&mut self, event: &Event, position: u32) {
        match event.kind {
            EventKind::Read(access) => self.plain(event, access, AccessKind::Read, position),
            EventKind::Write(access) => self.plain(event, access, AccessKind::Write, position),
            EventKind::AtomicLoad(access, _) => {
                self.atomic(event, access, AccessKind::AtomicRead, position);
            }
            EventKind::AtomicStore(access, _) | EventKind::AtomicRmw(access, _) => {
                self.atomic(event, access, AccessKind::AtomicWrite, position);
            }
            EventKind::Allocate { addr, size } => {
                self.order.note_access(event.thread);
                self.allocate(addr, size);
            }
            EventKind::Free { addr, size } => {
                let epoch = self.order.note_access(event.thread);
                let touch = touch(event, epoch, AccessKind::Free, addr, position);
                self.access_pieces(&touch, end(addr, size));
            }
            _ => {
                self.order.receive(event);
                self.judge.synchronise(event);
                self.order.post(event);
            }
        }
    }

    fn plain(&mut self, event: &Event, access: Access, kind: AccessKind, position: u32) {
        let epoch = self.order.note_access(event.thread);
        let touch = touch(event, epoch, kind, access.addr, position);
        self.access(&touch, access.size);
    }

    fn atomic(&mut self, event: &Event, access: Access, kind: AccessKind, position: u32) {
        self.order.receive(event);
        let epoch = self.order.epoch(event.thread);
        let touch = touch(event, epoch, kind, access.addr, position);
        self.access(&touch, access.size);
        self.order.post(event);
    }

    #[inline]
    fn access(&mut self, touch: &Touch, size: u32) {
        match self.shadow.exact(touch.start, size) {
            Some(id) => self.access_exactly(touch, id),
            None => self.access_new_shape(touch, size),
        }
    }

    #[inline]
    fn access_exactly(&mut self, touch: &Touch, unit: UnitId) {
        self.judge.begin_access();
        self.judge.touch(touch, self.shadow.unit(unit), &self.order);
    }

    #[inline(never)]
    fn access_new_shape(&mut self, touch: &Touch, size: u32) {
        if let Some(unit) = self.shadow.fresh(touch.start, size) {
            self.access_exactly(touch, unit);
            return;
        }
        let end = end(Addr(touch.start), u64::from(size));
        if self.access_pieces(touch, end) {
            self.shadow.note_location(touch.start, size);
        }
    }

    /// Answers whether there was anything to touch.
    fn access_pieces(&mut self, touch: &Touch, end: u64) -> bool {
        let pieces = self.shadow.pieces(touch.start, end, &mut self.judge);
        self.judge.begin_access();
        for &id in &pieces {
            self.judge.touch(touch, self.shadow.unit(id), &self.order);
        }
        !pieces.is_empty()
    }

    fn allocate(&mut self, addr: Addr, size: u64) {
        let end = end(addr, size);
        for id in self.shadow.existing(addr.0, end, &mut self.judge) {
            self.judge.forget(self.shadow.state_mut(id));
        }
        let mut at = end;
        while at > addr.0 {
            let id = self.shadow.unit_id_at(at);
            if id == NO_UNIT || !self.judge.cut(self.shadow.state_mut(id), end) {
                break;
            }
            at = self.shadow.unit(id).extent.end();
        }
    }
}

#[inline]
fn touch(event: &Event, epoch: Epoch, kind: AccessKind, addr: Addr, position: u32) -> Touch {
    Touch {
        epoch,
        site: event.site,
        position,
        kind,
        start: addr.0,
    }
}

/// The byte after the last. Nothing lies at the very last address.
fn end(addr: Addr, size: u64) -> u64 {
    addr.0.saturating_add(size)
}

impl<J: Judge> Detector for Machine<J> {
    fn take(&mut self, digest: &Digest) {
        let mut marks = digest.marks();
        let mut first = 0;
        for steps in digest.steps().chunks(AHEAD) {
            self.some_steps(first, steps, &mut marks, digest);
            first += steps.len();
        }
        self.between(first, &mut marks, digest);
        self.events += digest.events();
        self.judge.tidy(&mut self.shadow, &self.order);
    }

    fn skips_repeated(&self) -> bool {
        J::SKIPS_REPEATED
    }

    fn records(&self) -> u64 {
        self.judge.records(&self.shadow)
    }

    fn is_misled(&self) -> bool {
        self.judge.is_misled()
    }

    fn finish(mut self: Box<Self>) -> Findings {
        let history = self.judge.history(&self.shadow);
        let all = history.is_some();
        let wanted = |finding| all || finding == Finding::Race;
        let (accessed, found) = self.shadow.locations(wanted);
        let trace = TraceSize {
            events: u64::from(self.events),
            threads: self.order.threads(),
            locations: accessed,
            segments: self.order.segments(),
        };
        let answers = found.into_iter();
        Findings {
            algorithm: self.algorithm,
            trace,
            races: self.judge.take_races().into_races(),
            locations: answers
                .map(|(addr, finding)| (addr, answer(finding)))
                .collect(),
            history,
        }
    }
}

fn answer(finding: Finding) -> Answer {
    match finding {
        Finding::Nothing => Answer::NoRace,
        Finding::ParallelOnly => Answer::Inconclusive,
        Finding::Race => Answer::Race,
    }
}
