//! What is known of a run as a whole: where its threads come from, and which files were mapped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use verdict_events::{SiteId, ThreadId};

use crate::closeup::FRAMES_MAX;
use crate::observer::Observer;
use crate::sites::Place;

/// Where a thread comes from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ThreadOrigin {
    /// Who created it.
    pub parent: Option<ThreadId>,
    /// Where, innermost first.
    pub created_at: Vec<Place>,
    /// The function that it was created to run.
    pub function: Option<Place>,
}

/// Where threads and code come from.
#[derive(Clone, Default, Debug)]
pub struct Origins {
    /// By thread.
    pub threads: BTreeMap<u32, ThreadOrigin>,
    /// What was mapped: first address, file, offset.
    pub modules: Vec<(u64, PathBuf, u64)>,
}

impl Observer {
    /// A thread was created.
    pub(crate) fn thread_begins(&mut self, parent: usize, child: u32, site: SiteId) {
        let pcs = self.stack_above(parent, site, FRAMES_MAX);
        let starting = self.threads[parent].starting.take();
        let origin = ThreadOrigin {
            parent: Some(ThreadId(parent as u32)),
            created_at: self.places(&pcs),
            function: starting.map(|pc| self.place(pc)),
        };
        self.origins.threads.insert(child, origin);
    }
}
