//! The races of a real program: runs it with every access observed, lets the detectors read along on another core, and
//! says where in the source the races are.
#![forbid(unsafe_code)]

mod closer;
mod detect;
mod findings;
mod heap;
mod locks;
mod predict;
mod progress;
mod recording;

pub use closer::{CloserLook, look_closer};
pub use detect::{
    DetectRequest, Detected, FirstLook, Locks, ProgramError, Run, detect_program, trace_program,
};
pub use findings::to_findings;
pub use heap::heap_use_of;
pub use locks::lock_cycles;
pub use predict::predict;
pub use progress::{HowFar, Look, Watcher};
pub use recording::{OwnRecording, replay_of};
