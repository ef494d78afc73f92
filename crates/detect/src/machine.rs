//! What all detectors do alike: follow happens-before, find the units an access covers, and hand both to the
//! rule that tells them apart.

use verdict_clocks::{Epoch, HappensBefore, Rules};
use verdict_events::{Access, Addr, Event, EventKind, Position, SiteId};

use crate::findings::{Answer, Findings, HistorySize, TraceSize};
use crate::pages::NO_UNIT;
use crate::shadow::{Finding, Shadow, Unit};
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
    pub fn side(&self) -> Side {
        side(self.epoch, self.site, self.kind, self.position)
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
pub(crate) trait Judge {
    /// What is remembered of a location.
    type State: Clone + Default;

    const RULES: Rules;

    /// An access begins; `touch` follows for each unit it covers.
    fn begin_access(&mut self) {}

    /// An access covers `unit`. `order` is what its thread knows at that moment.
    fn touch(&mut self, touch: &Touch, unit: &mut Unit<Self::State>, order: &HappensBefore);

    /// The memory of `unit` becomes a fresh object.
    fn forget(&mut self, unit: &mut Unit<Self::State>) {
        unit.state = Self::State::default();
    }

    /// The bytes just before `at` became a fresh object: accesses remembered in the unit at `at` now start
    /// there. Answers whether there were any.
    fn cut(&mut self, _unit: &mut Unit<Self::State>, _at: u64) -> bool {
        false
    }

    /// Any event that is no access.
    fn synchronise(&mut self, _event: &Event) {}

    /// Called now and then, to free what no longer matters.
    fn tidy(&mut self, _shadow: &mut Shadow<Self::State>, _order: &HappensBefore) {}

    /// How many records of accesses are held.
    fn records(&self, shadow: &Shadow<Self::State>) -> u64;

    fn take_races(&mut self) -> RaceSet;

    /// For detectors with limited history.
    fn history(&self, _shadow: &mut Shadow<Self::State>) -> Option<HistorySize> {
        None
    }
}

pub(crate) struct Machine<J: Judge> {
    algorithm: Algorithm,
    judge: J,
    order: HappensBefore,
    shadow: Shadow<J::State>,
    events: u32,
}

impl<J: Judge> Machine<J> {
    pub fn new(algorithm: Algorithm, judge: J) -> Machine<J> {
        Machine {
            algorithm,
            judge,
            order: HappensBefore::new(J::RULES),
            shadow: Shadow::new(),
            events: 0,
        }
    }

    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Read(access) => self.plain(event, access, AccessKind::Read),
            EventKind::Write(access) => self.plain(event, access, AccessKind::Write),
            EventKind::AtomicLoad(access, _) => self.atomic(event, access, AccessKind::AtomicRead),
            EventKind::AtomicStore(access, _) | EventKind::AtomicRmw(access, _) => {
                self.atomic(event, access, AccessKind::AtomicWrite);
            }
            EventKind::Allocate { addr, size } => {
                self.order.note_access(event.thread);
                self.allocate(addr, size);
            }
            EventKind::Free { addr, size } => {
                let epoch = self.order.note_access(event.thread);
                let touch = self.touch(event, epoch, AccessKind::Free, addr);
                self.access_pieces(&touch, end(addr, size));
            }
            _ => {
                self.order.receive(event);
                self.judge.synchronise(event);
                self.order.post(event);
            }
        }
    }

    #[inline]
    fn plain(&mut self, event: &Event, access: Access, kind: AccessKind) {
        let epoch = self.order.note_access(event.thread);
        let touch = self.touch(event, epoch, kind, access.addr);
        self.access(&touch, access.size);
    }

    fn atomic(&mut self, event: &Event, access: Access, kind: AccessKind) {
        self.order.receive(event);
        let touch = self.touch(event, self.order.epoch(event.thread), kind, access.addr);
        self.access(&touch, access.size);
        self.order.post(event);
    }

    #[inline]
    fn touch(&self, event: &Event, epoch: Epoch, kind: AccessKind, addr: Addr) -> Touch {
        Touch {
            epoch,
            site: event.site,
            position: self.events,
            kind,
            start: addr.0,
        }
    }

    #[inline]
    fn access(&mut self, touch: &Touch, size: u32) {
        match self.shadow.exact(touch.start, u64::from(size)) {
            Some(unit) => {
                self.judge.begin_access();
                self.judge.touch(touch, unit, &self.order);
            }
            None => {
                let touched = self.access_pieces(touch, end(Addr(touch.start), u64::from(size)));
                if touched {
                    self.shadow.note_location(touch.start, size);
                }
            }
        }
    }

    /// Answers whether there was anything to touch.
    fn access_pieces(&mut self, touch: &Touch, end: u64) -> bool {
        let pieces = self.shadow.pieces(touch.start, end);
        self.judge.begin_access();
        for &id in &pieces {
            self.judge.touch(touch, self.shadow.unit(id), &self.order);
        }
        !pieces.is_empty()
    }

    fn allocate(&mut self, addr: Addr, size: u64) {
        let end = end(addr, size);
        for id in self.shadow.existing(addr.0, end) {
            self.judge.forget(self.shadow.unit(id));
        }
        let mut at = end;
        while at > addr.0 {
            let id = self.shadow.unit_id_at(at);
            if id == NO_UNIT || !self.judge.cut(self.shadow.unit(id), end) {
                break;
            }
            at = self.shadow.unit(id).start + self.shadow.unit(id).len;
        }
    }
}

/// The byte after the last. Nothing lies at the very last address.
fn end(addr: Addr, size: u64) -> u64 {
    addr.0.saturating_add(size)
}

impl<J: Judge> Detector for Machine<J> {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            self.event(event);
            self.events = self
                .events
                .checked_add(1)
                .expect("`detect` refuses longer traces");
        }
        self.judge.tidy(&mut self.shadow, &self.order);
    }

    fn records(&self) -> u64 {
        self.judge.records(&self.shadow)
    }

    fn finish(mut self: Box<Self>) -> Findings {
        let accessed = self.shadow.locations();
        let trace = TraceSize {
            events: u64::from(self.events),
            threads: self.order.threads(),
            locations: accessed.len() as u64,
            segments: self.order.segments(),
        };
        let history = self.judge.history(&mut self.shadow);
        let answers = accessed
            .into_iter()
            .map(|(addr, finding)| (addr, answer(finding)));
        let all = history.is_some();
        Findings {
            algorithm: self.algorithm,
            trace,
            races: self.judge.take_races().into_races(),
            locations: answers
                .filter(|&(_, answer)| all || answer == Answer::Race)
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
