//! Translated code: where it lies, how blocks are linked, and how a host address leads back to the guest.
//!
//! [`memory`] owns the executable memory and is the only place that writes it; [`CodeCache`] decides what is
//! written. Blocks are never moved and their memory is only reused by a flush, so a host address names the same
//! guest instruction for as long as anything can refer to it.

mod blocks;
mod described;
mod fault_entries;
mod guesses;
mod links;
mod memory;
mod one_offs;
mod sieve;
mod tables;

pub use blocks::{BlockId, CacheStats, CodeCache, Entrance, FaultSite, GuestCode};
pub use described::LoggedBlock;
pub use fault_entries::{BorrowedSlots, FaultState};
pub use memory::{CacheMemoryError, CodeCopy};
pub use one_offs::{ONE_OFF_BLOCK_ID, OneOff};
pub use sieve::{Shadows, clear_sieve, give_way, gs_base, has_given_way, step_aside, use_shadows};
