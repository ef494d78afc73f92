//! The code of the made-up program: routines made of steps, each step at its own site.

use super::random::Random;
use super::{Addressing, GenerateOptions};
use crate::{Access, Addr, SiteId};

/// A routine is entered, looped through and left.
pub(crate) struct Routine {
    pub(crate) steps: Vec<Step>,
    /// Iterations before it is left.
    pub(crate) iterations: u32,
    /// Whether it runs inside a critical section.
    pub(crate) locked: bool,
}

/// One access of a routine.
pub(crate) struct Step {
    pub(crate) site: SiteId,
    pub(crate) is_write: bool,
    pub(crate) target: Target,
}

/// What an access goes to.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// A local variable of the thread.
    Local(u64),
    /// The element of the thread's array that the iteration is at.
    Element(u64),
    /// Something the held lock guards.
    Shared(u64),
    /// Something a lock guards that is not held.
    Unguarded { lock: u32, slot: u64 },
}

/// How many locations of each lock are used again and again.
const HOT_SLOTS: u64 = 4;

pub(crate) struct Program {
    pub(crate) routines: Vec<Routine>,
    pub(crate) options: GenerateOptions,
    /// Locations before this are shared, the others belong to threads.
    pub(crate) shared: u64,
}

impl Program {
    pub(crate) fn new(options: &GenerateOptions, random: &mut Random) -> Self {
        // Site 0 is for creating and ending threads.
        let mut routines = Vec::new();
        let mut site = 1;
        while routines.is_empty() || site + 16 <= options.sites {
            let steps = 4 + random.below(10) as u32;
            routines.push(routine(site, steps, random));
            site += steps;
        }
        forget_locks(&mut routines, options);
        Self {
            routines,
            options: options.clone(),
            shared: options.locations / 10,
        }
    }

    /// Size and address of a location.
    pub(crate) fn access(&self, location: u64) -> Access {
        let (addr, size) = match self.options.addressing {
            Addressing::Named => (location, 1),
            Addressing::Addresses if location < self.shared => (0x0060_4000 + 8 * location, 8),
            Addressing::Addresses => {
                let size = if location.is_multiple_of(4) { 4 } else { 8 };
                (0x7fff_8000_0000 + 8 * location, size)
            }
        };
        Access {
            addr: Addr(addr),
            size,
            value: None,
        }
    }
}

/// Lets some steps touch what a lock guards without taking it. Chosen apart from all else, so that the rest of the trace
/// does not depend on how many there are.
fn forget_locks(routines: &mut [Routine], options: &GenerateOptions) {
    if options.racy_sites_one_in == 0 {
        return;
    }
    let mut random = Random::new(!options.seed);
    let unlocked = routines.iter_mut().filter(|routine| !routine.locked);
    for step in unlocked.flat_map(|routine| &mut routine.steps) {
        if random.one_in(options.racy_sites_one_in) {
            step.target = Target::Unguarded {
                lock: random.below(options.locks.into()) as u32,
                slot: random.below(HOT_SLOTS),
            };
        }
    }
}

fn routine(first_site: u32, steps: u32, random: &mut Random) -> Routine {
    let locked = random.one_in(2);
    let steps = (0..steps).map(|step| Step {
        site: SiteId(first_site + step),
        is_write: random.below(10) < 3,
        target: match random.below(10) {
            0..6 if locked => Target::Shared(random.below(HOT_SLOTS)),
            0..5 => Target::Element(random.below(3)),
            _ => Target::Local(random.below(12)),
        },
    });
    let steps = steps.collect();
    let iterations = match locked {
        true => 1 + random.below(2),
        false => 1 + random.below(12),
    };
    Routine {
        steps,
        iterations: iterations as u32,
        locked,
    }
}
