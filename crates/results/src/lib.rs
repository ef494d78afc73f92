//! The result folder of a run (`verdict-out`), from which any report can be made again and an interrupted run goes on.
//!
//! ```text
//! verdict-out/
//!   plan.json            what is being done: program, arguments, options
//!   recording.vrec       the recorded run
//!   results.json         everything known so far: what the last finished stage gave
//!   since.json           what has changed since earlier runs
//!   token.json           what the run is called in the project's history
//!   evidence/            recordings that show what races do
//!   stages/detect.json   what a stage gave
//!   stages/confirm/      what is done of an unfinished stage, a file for each race
//! ```
//!
//! Every file but the recording in the making appears whole or not at all, in the order of the stages. So whatever
//! happens to the process, what is there is finished, and what is not there is left to do.
#![forbid(unsafe_code)]

mod error;
mod folder;
mod stage;

pub use error::FolderError;
pub use folder::{Plan, ResultFolder};
pub use stage::Stage;
