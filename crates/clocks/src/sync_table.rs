//! State per synchronisation object.
//!
//! Imported traces number their objects from 0, traces of real programs name them by address: small ids
//! index a vector, others a hash map.

use rustc_hash::FxHashMap;
use verdict_events::SyncId;

/// Ids below this index a vector. 65,536 empty locks are a few megabytes.
const DENSE: u64 = 1 << 16;

#[derive(Debug)]
pub(crate) struct SyncTable<T> {
    dense: Vec<T>,
    sparse: FxHashMap<SyncId, T>,
}

impl<T> Default for SyncTable<T> {
    fn default() -> SyncTable<T> {
        SyncTable {
            dense: Vec::new(),
            sparse: FxHashMap::default(),
        }
    }
}

impl<T: Default> SyncTable<T> {
    pub fn entry(&mut self, id: SyncId) -> &mut T {
        if id.0 >= DENSE {
            return self.sparse.entry(id).or_default();
        }
        let index = id.0 as usize;
        if index >= self.dense.len() {
            self.dense.resize_with(index + 1, T::default);
        }
        &mut self.dense[index]
    }

    /// All objects, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.dense.iter().chain(self.sparse.values())
    }

    pub fn len(&self) -> usize {
        self.dense.len() + self.sparse.len()
    }
}
