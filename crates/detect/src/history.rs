//! All accesses to one unit that can still race, without one record per event.
//!
//! Events that nothing can tell apart are one [`Entry`] with a count: same thread, site, kind, locks and
//! first byte, and epochs between which no live count lies ([`HappensBefore::live_counts`]). So the
//! number of entries is bounded by threads, sites and clocks, not by events, and counts stay exact.

use rustc_hash::FxHashMap;
use verdict_clocks::{Epoch, HappensBefore};
use verdict_events::{SiteId, ThreadId};

use crate::AccessKind;
use crate::locksets::LocksetId;
use crate::machine::Touch;

/// How many of the newest entries are searched for one to count up. Others are merged later.
const RECENT: usize = 8;
/// Below this many entries merging is not worth the while.
const MERGE_MIN: usize = 16;
/// How many steps of looking for live counts one new entry pays for.
const STEPS_PER_ENTRY: usize = 16;

/// Accesses that nothing can tell apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Of one of them; the others' are equivalent.
    pub epoch: Epoch,
    /// First byte, or the first that no later allocation took.
    pub start: u64,
    pub count: u64,
    /// Event number of the earliest.
    pub first: u32,
    pub site: SiteId,
    pub lockset: LocksetId,
    pub kind: AccessKind,
}

impl Entry {
    pub fn new(touch: &Touch, lockset: LocksetId) -> Entry {
        Entry {
            epoch: touch.epoch,
            start: touch.start,
            count: 1,
            first: touch.position,
            site: touch.site,
            lockset,
            kind: touch.kind,
        }
    }

    fn same_but_time(&self, other: &Entry) -> bool {
        (
            self.epoch.thread(),
            self.site,
            self.kind,
            self.start,
            self.lockset,
        ) == (
            other.epoch.thread(),
            other.site,
            other.kind,
            other.start,
            other.lockset,
        )
    }
}

/// The reads, or the writes, of one unit.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    /// A segment that is ordered after all entries, if one is known: whoever follows it follows
    /// all of them, so an access under a lock need not look at each.
    follower: Epoch,
    /// Merge when there are more entries than this.
    merge_above: u32,
}

/// The live counts of each thread, as far as they were asked for.
pub(crate) type LiveCounts = FxHashMap<ThreadId, Vec<u32>>;

impl Log {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// True only if all entries are ordered before what `viewer` does next.
    #[inline]
    pub fn is_surely_before(&self, viewer: ThreadId, order: &HappensBefore) -> bool {
        self.entries.is_empty() || !self.follower.is_none() && order.knows(viewer, self.follower)
    }

    /// Notes that all entries are ordered before the segment `follower`.
    #[inline]
    pub fn note_follower(&mut self, follower: Epoch) {
        self.follower = follower;
    }

    /// Adds an access. Answers whether it took a new entry.
    #[inline]
    pub fn add(&mut self, new: Entry, follows_all: bool) -> bool {
        self.follower = if follows_all { new.epoch } else { Epoch::NONE };
        let mut recent = self.entries.iter_mut().rev().take(RECENT);
        match recent.find(|entry| entry.epoch == new.epoch && entry.same_but_time(&new)) {
            Some(entry) => {
                entry.count += 1;
                false
            }
            None => {
                self.entries.push(new);
                true
            }
        }
    }

    pub fn wants_merging(&self) -> bool {
        self.entries.len() > MERGE_MIN.max(self.merge_above as usize)
    }

    /// Merges entries that nothing can tell apart any more. Answers how many are gone.
    pub fn merge(&mut self, live: &mut LiveCounts, order: &HappensBefore) -> usize {
        let before = self.entries.len();
        let mut class = |entry: &Entry| {
            let thread = entry.epoch.thread();
            let counts = live
                .entry(thread)
                .or_insert_with(|| order.live_counts(thread));
            counts.partition_point(|&count| count <= entry.epoch.count())
        };
        let mut entries: Vec<(usize, Entry)> = self
            .entries
            .iter()
            .map(|entry| (class(entry), *entry))
            .collect();
        entries.sort_by_key(|(class, entry)| {
            (
                entry.epoch.thread(),
                *class,
                entry.site,
                entry.kind,
                entry.start,
                entry.lockset,
                entry.first,
            )
        });
        entries.dedup_by(|(class, next), (kept_class, kept)| {
            let same = class == kept_class && next.same_but_time(kept);
            if same {
                kept.count += next.count;
                kept.epoch = kept.epoch.max(next.epoch);
            }
            same
        });
        self.entries.clear();
        self.entries.extend(entries.iter().map(|(_, entry)| entry));
        // The newest at the end, where `add` looks.
        self.entries
            .sort_by_key(|entry| (entry.epoch.count(), entry.first));
        let threads = entries
            .chunk_by(|(_, a), (_, b)| a.epoch.thread() == b.epoch.thread())
            .count();
        let steps = threads * order.clocks() / STEPS_PER_ENTRY;
        self.merge_above = u32::try_from(2 * self.entries.len() + steps).unwrap_or(u32::MAX);
        before - self.entries.len()
    }

    /// Lets accesses that started before `at` start there. Answers whether there were any.
    pub fn cut(&mut self, at: u64) -> bool {
        let mut any = false;
        for entry in self.entries.iter_mut().filter(|entry| entry.start < at) {
            entry.start = at;
            any = true;
        }
        any
    }
}
