//! The lanes of an interleaving.

use verdict_findings::{Order, Race};

/// The threads in the order of their lanes: those of the race first.
pub(crate) fn lanes(race: &Race, orders: &[Order]) -> Vec<u32> {
    let racing = race.accesses.iter().map(|access| access.thread);
    let steps = orders.iter().flat_map(|order| &order.steps);
    let mut lanes = Vec::new();
    for thread in racing.chain(steps.map(|step| step.thread)) {
        if !lanes.contains(&thread) {
            lanes.push(thread);
        }
    }
    lanes
}
