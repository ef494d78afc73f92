//! Race detectors over traces. Pure functions of a trace: events in, [`Findings`] out.
//!
//! One file each, all behind one trait, [`Detector`]:
//!
//! | algorithm | keeps per location | answers |
//! | --- | --- | --- |
//! | `adjacent` | the last access | race / no-race / inconclusive |
//! | `local` | the last read and the last write | race / no-race / inconclusive |
//! | `race` | the last write and the parallel reads since | race / no-race, exactly |
//! | `current` | the last read and write of every thread | race / no-race, exactly |
//! | `fasttrack` | as `race`, in epochs | the first race of each location |
//! | `hb` | every access that can still race, alike ones counted | every race |
//! | `regions` | the same | races of segments that overlap in time |
//! | `hybrid` | the same, with the locks held | what could race if locks were taken in another order |
//!
//! No history grows with the number of events. Those of the first five are bounded by the number of threads. `hb` and `hybrid`
//! tell exact numbers of instances, so they keep a count for each thread and site (and, `hybrid`, set of held locks) that
//! something still to come could tell apart.
//!
//! [`Suspects`] is for traces that can be read twice: it says quickly of which bytes the detectors need to know.
//!
//! Two accesses *conflict* if they come from different threads, touch a common byte, one writes, and not both are
//! atomic; `free` writes the whole block. An allocation makes its bytes a fresh object: earlier accesses no
//! longer touch them, and one that is cut in two by an allocation in its middle counts as two from then on.
//! A *location* is the first byte of an access; it is racy if any byte of any access that starts there is.
#![forbid(unsafe_code)]

mod access;
mod adjacent;
mod complete;
mod current;
mod detector;
mod fasttrack;
mod findings;
mod hb;
mod history;
mod hybrid;
mod limited;
mod live;
mod local;
mod lock_order;
mod locksets;
mod machine;
mod pages;
mod parts;
mod race;
mod races;
mod read_ahead;
mod regions;
mod settled;
mod shadow;
mod suspects;

pub use access::{AccessKind, Conflict};
pub use detector::{
    Algorithm, DetectError, Detector, EVENTS_MAX, Keep, detect, detect_reading_ahead,
};
pub use findings::{Answer, Findings, HistorySize, TraceSize};
pub use lock_order::{CYCLE_MAX, LockCycle, LockOrder, LockStep};
pub use races::{PairBy, Race, RaceSet, Side};
pub use read_ahead::read_ahead;
pub use suspects::{Looked, Present, SuspectBytes, Suspects};
