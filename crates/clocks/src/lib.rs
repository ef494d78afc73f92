//! Happens-before over segments (Banerjee et al. 2006, section 2; BlockRace, section 2).
//!
//! A thread is cut into *segments* by its synchronisation operations. An operation that *posts* makes
//! what its thread has done so far known through an object; an operation that *receives* learns what was
//! posted there. A [`VectorClock`] counts, per thread, the posting segments that precede a segment
//! (algorithm 1), so a segment of thread `T` with count `k` precedes one of another thread exactly when
//! the latter's clock holds more than `k` for `T` (theorem 3). [`HappensBefore`] is the one place that says
//! which event posts to or receives from what; every detector asks it and none has rules of its own.
//!
//! Must not happen: a clock component that no thread posted. [`HappensBefore::live_counts`] relies on it.
#![forbid(unsafe_code)]

mod atomics;
mod barrier;
mod clock;
mod epoch;
mod happens_before;
mod posted;
mod sync_table;

pub use clock::VectorClock;
pub use epoch::Epoch;
pub use happens_before::{HappensBefore, Rules};
pub use posted::Posted;
