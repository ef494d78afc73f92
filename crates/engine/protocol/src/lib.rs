//! What controller and executor say to each other.
//!
//! Three files, made by the controller and inherited by the executor, all of them memory (`memfd`), so that neither side
//! can ever wait for the other:
//!
//! | file | who writes | what |
//! | --- | --- | --- |
//! | config | controller, before the start | [`ExecutorConfig`] |
//! | report | executor, once, at its end | [`Report`] |
//! | status | executor, all the time | [`Status`]: a heartbeat, and whether it waits for the outside world |
//!
//! A run that is recorded or replayed has a fourth: the recording, of which the config has the descriptor ([`Mode`]).
//!
//! The guest lives in the executor's address space and may overwrite anything there. So whatever the controller reads is
//! bytes from outside: checked, never trusted.
#![forbid(unsafe_code)]

mod config;
mod explore;
mod frame;
mod outcome;
mod property;
mod sample;
mod stats;
mod status;

pub use config::{
    AccessLog, Clock, ExecutorConfig, Inherited, Mode, SchedulePolicy, Telling, Until, World,
};
pub use explore::{
    Answer, Approach, Bytes, Exploration, LaterInput, Looping, MemoryChanges, Moment, Order,
    OutputPiece, OutputPlace, RunOrder, RunSchedule, ThreadState, WatchedCall, WatchedStop,
};
pub use frame::{
    FrameError, ReportWriter, read_config, read_exploration, read_report, write_config,
    write_exploration,
};
pub use outcome::{
    CallStack, Deadlock, Divergence, EngineFault, GuestFault, MappedModule, Outcome,
    REGISTER_NAMES, Refusal, Registers, ReplayStop, Report, WaitingThread,
};
pub use property::{Binary, Check, Property, PropertyStep, Unary, is_true};
pub use sample::{Part, Sample};
pub use stats::{AccessStats, PartTimes, Stats, ThreadStats, WorldStats};
pub use status::{STATUS_BYTES, Status};
