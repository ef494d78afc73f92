//! Where the guest's world comes from: the host, or a recording of what the host once said.
//!
//! The guest's kernel is deterministic but for what reaches it from outside: answers of system calls that the host
//! performs, descriptors that become ready, signals, and who was chosen to run. While recording, each of these is
//! written down with the number of instructions retired at that moment; while replaying, it comes from there and the
//! host is not asked. Everything else (memory, threads, futexes, the clock, signals that the guest sends itself) is
//! computed again and must come out the same: any difference is a divergence, found at the first entry that
//! does not fit.

mod files;
mod follow;
mod outside;
mod record;
mod replay;

pub use files::attached_file;
pub(crate) use outside::is_outside;
pub use record::Recorder;
pub use replay::{Divergence, ReplayEnd, Replayer};

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

/// Whether the world is live, written down, or given back.
#[derive(Clone, Debug, Default)]
pub enum Journal {
    /// The host answers, nobody takes notes.
    #[default]
    Live,
    /// The host answers and the answers are kept.
    Record(Rc<RefCell<Recorder>>),
    /// A recording answers; the host is not touched.
    Replay(Rc<RefCell<Replayer>>),
}

impl Journal {
    /// Keeps a recording.
    pub fn recording(recorder: Recorder) -> Self {
        Journal::Record(Rc::new(RefCell::new(recorder)))
    }

    /// Follows a recording.
    pub fn replaying(replayer: Replayer) -> Self {
        Journal::Replay(Rc::new(RefCell::new(replayer)))
    }

    /// The recorder, if there is one.
    pub fn recorder(&self) -> Option<RefMut<'_, Recorder>> {
        match self {
            Journal::Record(recorder) => Some(recorder.borrow_mut()),
            _ => None,
        }
    }

    /// The replayer, if there is one.
    pub fn replayer(&self) -> Option<RefMut<'_, Replayer>> {
        match self {
            Journal::Replay(replayer) => Some(replayer.borrow_mut()),
            _ => None,
        }
    }

    /// True while a recording is followed.
    pub fn is_replay(&self) -> bool {
        matches!(self, Journal::Replay(_))
    }
}
