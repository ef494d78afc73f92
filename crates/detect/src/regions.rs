//! Overlap of sequencing regions (Narayanasamy et al., section 3.4): races of segments that overlap in time.
//!
//! In: events in trace order. Out: every pair of conflicting accesses in segments of which none had ended when the other began.
//! Misses: races of segments that happened apart, though nothing orders them; what it finds, `hb` finds. No false
//! alarms where `hb` has none.

use verdict_clocks::Rules;
use verdict_events::{Event, ThreadId};

use crate::complete::{Complete, Guard};
use crate::locksets::LocksetId;
use crate::machine::Machine;
use crate::{Algorithm, Detector, Keep, PairBy};

pub(crate) fn detector(by: PairBy, keep: Keep) -> Box<dyn Detector> {
    let judge = Complete::new(Overlap, by, keep);
    Box::new(Machine::new(Algorithm::Regions, judge))
}

struct Overlap;

impl Guard for Overlap {
    const RULES: Rules = Rules::Regions;

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
