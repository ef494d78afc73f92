//! Block traces (BlockRace, Mei et al. 2020): every happens-before race of a huge trace as independent tasks.
//!
//! [`build()`] reads a trace once and writes, per thread, its segments ("blocks") with the clock that orders them and the
//! set of what they access ([`frame`] says how), and one index of what several threads touch. [`detect()`] then finds
//! exactly the races of `hb`, in parallel, without the trace: blocks that no clock orders and that touch a common
//! location, one writing, race (theorems 1 and 2). [`plan()`] cuts the work into tasks that need nothing but the files.
//!
//! Departs from the paper:
//! - A place that one thread touches, or nobody writes, is dropped before any task begins ([`units`]).
//! - Blocks are not compared pair by pair. Along a thread both "happened before" and "happens after" are
//!   monotone, so what is unordered with a block is an interval of the other thread, and sliding intervals over the
//!   accesses of one location count all pairs without visiting each ([`kernel`]).
//! - Work is cut by location as well as by pairs of threads, and every file is read once per round, not once per task:
//!   the limits of the paper's section 7.
#![forbid(unsafe_code)]

mod allocations;
mod build;
mod bytes;
mod closed;
pub mod cluster;
mod detect;
mod error;
pub mod frame;
mod index;
pub mod kernel;
mod late;
mod load;
mod order;
mod pairs;
mod parallel;
mod places;
mod plan;
mod record;
mod run;
mod shards;
mod store;
pub mod units;

pub use build::{BuildOptions, Built, build};
pub use detect::{DetectOptions, TasksDone, detect, findings};
pub use error::BlocksError;
pub use index::{FrameInfo, Index, ThreadInfo};
pub use load::read_order;
pub use order::Order;
pub use parallel::Workers;
pub use plan::{Cuts, PlanOptions, Strategy, Task, Work, plan};
pub use run::{RunOptions, TaskResult, run};
pub use store::{Folder, Memory, Sink, Store, is_block_trace};
