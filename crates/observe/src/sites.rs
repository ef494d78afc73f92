//! Sites: instructions of the program that access memory, numbered in order of first appearance.

use rustc_hash::FxHashMap;
use std::path::PathBuf;
use verdict_events::{SiteId, ThreadId};

/// A place in the guest's code that means the same in every run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file; `None` for code that was made at run time.
    pub module: Option<PathBuf>,
    /// The offset in the file, or the address.
    pub offset: u64,
}

/// What is known of a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteInfo {
    /// The instruction of the program.
    pub place: Place,
    /// Its address in this run.
    pub pc: u64,
    /// The library's instruction that made the access on the program's behalf, the first time; `pc` itself if the program
    /// made it.
    pub by: Place,
    /// The thread that came here first.
    pub thread: ThreadId,
    /// How it came here: calls, innermost first, each the place of the call instruction.
    pub stack: Vec<Place>,
}

/// All sites.
#[derive(Default, Debug)]
pub(crate) struct Sites {
    numbers: FxHashMap<u64, SiteId>,
    pub(crate) infos: Vec<SiteInfo>,
}

impl Sites {
    pub(crate) fn known(&self, pc: u64) -> Option<SiteId> {
        self.numbers.get(&pc).copied()
    }

    pub(crate) fn add(&mut self, info: SiteInfo) -> SiteId {
        let id = SiteId(self.infos.len() as u32);
        self.numbers.insert(info.pc, id);
        self.infos.push(info);
        id
    }
}
