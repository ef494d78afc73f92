//! Complete happens-before detection: every race, as pairs, with exact numbers of instances.
//!
//! An instance is a conflict whose two events are unordered (Narayanasamy et al., section 3.4; BlockRace,
//! section 2). Nothing is missed and nothing reported that is not there, in the order this trace shows.
//! Memory: `history` says why it does not grow with the number of events.

use verdict_clocks::Rules;
use verdict_events::{Event, ThreadId};

use crate::complete::{Complete, Guard};
use crate::locksets::LocksetId;
use crate::machine::Machine;
use crate::{Algorithm, Detector, Keep, PairBy};

pub(crate) fn detector(by: PairBy, keep: Keep) -> Box<dyn Detector> {
    let judge = Complete::new(OrderAlone, by, keep);
    Box::new(Machine::new(Algorithm::Hb, judge))
}

struct OrderAlone;

impl Guard for OrderAlone {
    const RULES: Rules = Rules::All;

    fn synchronise(&mut self, _event: &Event) {}

    fn current(&self, _thread: ThreadId) -> LocksetId {
        0
    }

    fn keep_apart(&mut self, _a: LocksetId, _b: LocksetId) -> bool {
        false
    }

    fn common(&mut self, _a: LocksetId, _b: LocksetId) -> Option<LocksetId> {
        Some(0)
    }
}
