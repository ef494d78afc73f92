//! Tables of names: many short strings in one allocation, found by the number they belong to.

use hashbrown::HashMap;

use crate::{Addr, Names, SiteId, SyncId, ThreadId};

/// Names numbered from 0, in one string.
#[derive(Default, Clone, Debug)]
pub(crate) struct NameList {
    text: String,
    /// Where each name ends in `text`; it starts where the one before ends.
    ends: Vec<usize>,
}

impl NameList {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a name and returns its number.
    pub(crate) fn push(&mut self, name: &str) -> usize {
        self.text.push_str(name);
        self.ends.push(self.text.len());
        self.ends.len() - 1
    }

    pub(crate) fn get(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number)?;
        let start = match number {
            0 => 0,
            _ => self.ends[number - 1],
        };
        Some(&self.text[start..end])
    }
}

/// Names of 64-bit ids (addresses, synchronisation objects). Ids that are small numbers, as in imported traces,
/// are found by direct index, others by hash.
#[derive(Default, Clone, Debug)]
struct NameMap {
    names: NameList,
    direct: Vec<u32>,
    hashed: HashMap<u64, u32>,
}

/// Stands in `direct` for ids without a name.
const UNNAMED: u32 = u32::MAX;

/// Ids below this many times the number of names are found by direct index.
const DIRECT_SPARSITY_MAX: u64 = 4;

impl NameMap {
    fn insert(&mut self, id: u64, name: &str) {
        let number = u32::try_from(self.names.push(name)).expect("fewer than 2^32 names");
        assert!(number != UNNAMED, "fewer than 2^32 - 1 names");
        if id > DIRECT_SPARSITY_MAX * self.names.len() as u64 {
            self.hashed.insert(id, number);
            return;
        }
        let slots = id as usize + 1;
        if self.direct.len() < slots {
            self.direct.resize(slots, UNNAMED);
        }
        self.direct[id as usize] = number;
        self.hashed.remove(&id);
    }

    fn get(&self, id: u64) -> Option<&str> {
        let direct = usize::try_from(id).ok().and_then(|id| self.direct.get(id));
        let number = match direct {
            Some(&number) if number != UNNAMED => number,
            _ => *self.hashed.get(&id)?,
        };
        self.names.get(number as usize)
    }
}

/// The names of a trace, gathered one by one.
#[derive(Default, Clone, Debug)]
pub struct NameTable {
    threads: NameList,
    sites: NameList,
    locations: NameMap,
    syncs: NameMap,
}

impl NameTable {
    /// A table without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the next thread, in order of ids from 0.
    pub fn push_thread(&mut self, name: &str) -> ThreadId {
        ThreadId(u32::try_from(self.threads.push(name)).expect("fewer than 2^32 threads"))
    }

    /// Names the next site, in order of ids from 0.
    pub fn push_site(&mut self, name: &str) -> SiteId {
        SiteId(u32::try_from(self.sites.push(name)).expect("fewer than 2^32 sites"))
    }

    /// Names the memory at an address.
    pub fn name_location(&mut self, addr: Addr, name: &str) {
        self.locations.insert(addr.0, name);
    }

    /// Names a synchronisation object.
    pub fn name_sync(&mut self, id: SyncId, name: &str) {
        self.syncs.insert(id.0, name);
    }

    /// Number of threads named.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Number of sites named.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }
}

impl Names for NameTable {
    fn thread_name(&self, id: ThreadId) -> Option<&str> {
        self.threads.get(id.0 as usize)
    }

    fn site_name(&self, id: SiteId) -> Option<&str> {
        self.sites.get(id.0 as usize)
    }

    fn location_name(&self, addr: Addr) -> Option<&str> {
        self.locations.get(addr.0)
    }

    fn sync_name(&self, id: SyncId) -> Option<&str> {
        self.syncs.get(id.0)
    }
}
