//! Schedulers that look for something.
//!
//! [`RaceDirected`] brings two given sites face to face (Sen 2008, algorithms 1 and 2); [`Alternate`] makes two accesses
//! that were seen in one order happen in the other (Kasikci et al. 2015, section 4.2); [`Segments`] runs just their segments
//! (Narayanasamy et al. 2007, section 4.2). [`stuck`] says whether a thread is in a loop that it cannot leave by itself,
//! [`Look`] whether all of them are.
#![forbid(unsafe_code)]

mod alternate;
mod directed;
mod lock_cycle;
mod look;
mod looping;
mod preferring;
mod segments;

pub use alternate::{Access as RacingAccess, AccessOrder, Alternate, AlternateState};
pub use directed::{Aim, Directed, Facing, RaceDirected};
pub use look::Look;
pub use looping::{Holder, Step, Stuck, stuck};
pub use preferring::Preferring;
pub use segments::{SegmentEnd, Segments, SegmentsStart, SegmentsState, Situation};
