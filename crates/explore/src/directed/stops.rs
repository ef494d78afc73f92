//! How often threads were stopped at each place, and when that is enough.
//!
//! A stop takes as long as thousands of instructions. A place in a loop would take most of a run's time, and the thousandth
//! switch there brings about nothing that the ones before did not: the rest of the run passes it at full speed.

use super::RaceDirected;
use std::collections::BTreeMap;

/// Stops at each instruction so far.
pub(super) type Stops = BTreeMap<u64, u32>;

/// At a site of another race.
const OTHER_MAX: u32 = 500;
/// At a function that synchronises. Turns end there all the same, and so do waits for locks.
const SWITCH_MAX: u32 = 5_000;
/// At a site of the race itself, where it has been created already. Until then there is no such limit.
const SITE_MAX: u32 = 10_000;

impl RaceDirected {
    /// True if nobody needs to be asked before this instruction any more in this run.
    #[must_use]
    pub fn is_done_with(&self, pc: u64) -> bool {
        let limit = if self.is_site(pc) {
            if self.facings.is_empty() {
                return false;
            }
            SITE_MAX
        } else if self.is_other(pc) {
            OTHER_MAX
        } else {
            SWITCH_MAX
        };
        self.stops.get(&pc).is_some_and(|stops| *stops > limit)
    }
}
