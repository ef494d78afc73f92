//! From what an executor tells about a run (`verdict_stream`) to the events that detectors read.
//!
//! [`ProgramTrace`] is a [`verdict_events::TraceSource`]. What it decides, and where:
//!
//! | question | file |
//! | --- | --- |
//! | whose code is this: the program's, a library's, a parallel runtime's | `modules` |
//! | who called whom, and which line of the program is to blame for what a library does | `calls` |
//! | which calls order threads or make memory, and how | `hooks`, `meaning` |
//! | whose memory is this: a library's own data does not race, what it does to the program's data does | `ownership`, `answered` |
//! | which plain accesses are atomic, and in which order | `code`, `atomics`, `orders` |
//! | where threads and code come from | `origins` |
//! | how a thread came to a chosen event, what it held, whose memory it was | `closeup` |
//! | which accesses are memory errors | `heap`, `heap_errors`, `masked` |
//! | how the log is read: step by step, or as fast as it goes where only addresses count | `log`; `plain`, `strides`, `shapes`, `reduced`, `shaped`, `watched` |
//!
//! Looking at a run takes up to three turns of it: [`survey()`] says which bytes may race, [`ProgramTrace::only`] is the trace of
//! what happens to these, and [`ProgramTrace::looking`] shows the events that matter from close. [`heap_use`] is a look of its own.
//! [`Followed`] says how far a look is.
//!
//! Misses: what a library does to the program's global data in a statically linked program; accesses of vector gathers
//! and scatters, of pushes and pops. An atomic compare-and-swap that fails is taken for one that succeeds.
#![forbid(unsafe_code)]

mod answered;
mod atomics;
mod blocks;
mod calls;
mod children;
mod closeup;
mod code;
mod descriptors;
mod explain;
mod followed;
mod heap;
mod heap_errors;
mod hooks;
mod log;
mod looks;
mod masked;
mod meaning;
mod modules;
mod observer;
mod orders;
mod origins;
mod ownership;
mod plain;
mod reduced;
mod repeats;
mod runs;
mod shaped;
#[cfg(test)]
mod shaped_twin;
mod shapes;
mod sifted;
mod sites;
mod strides;
mod survey;
mod threads;
mod trace;
mod watched;

pub use closeup::{Closeup, Closeups, HeldLock, Memory, Wanted};
pub use code::is_system_source;
pub use explain::{SyncRule, SyncSummary};
pub use followed::Followed;
pub use heap_errors::{HeapError, HeapErrorKind, HeapUse, heap_use};
pub use orders::Orders;
pub use origins::{Origins, ThreadOrigin};
pub use sifted::Unfit;
pub use sites::{Place, SiteInfo};
pub use survey::{Surveyed, Told, survey};
pub use trace::{ProgramNames, ProgramTrace, Seen};
