//! Schedulers that look for something.
//!
//! [`RaceDirected`] brings two given sites face to face (Sen 2008, algorithms 1 and 2); [`Alternate`] makes two accesses
//! that were seen in one order happen in the other (Kasikci et al. 2015, section 4.2).
#![forbid(unsafe_code)]

mod alternate;
mod directed;
mod lock_cycle;
mod segments;

pub use alternate::{Access as RacingAccess, Alternate, AlternateState};
pub use directed::{Aim, Directed, Facing, RaceDirected};
pub use segments::{Segments, SegmentsState};
