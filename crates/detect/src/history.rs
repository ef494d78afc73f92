//! All accesses to one unit that can still race, without one record per event.
//!
//! Events that nothing can tell apart are one [`Entry`] with a count: same thread, site, kind, locks and
//! first byte, and epochs between which no live count lies (`live`). So the number of entries is bounded by
//! threads, sites and clocks, not by events, and counts stay exact.
//!
//! Entries that differ in their sites only share a [`Group`], which is one cache line. Groups of all units
//! sit in one [`Arena`], linked newest first: an access to a location that lies cold in memory then touches
//! its log and one line, or writes a new one where the last one was written.

use std::ops::{Index, IndexMut};

use verdict_clocks::{Epoch, HappensBefore};
use verdict_events::{SiteId, ThreadId};

use crate::AccessKind;
use crate::live::LiveCounts;
use crate::locksets::LocksetId;
use crate::machine::Touch;

/// How many of the newest groups are searched for an entry to count up. Others are merged later.
const RECENT: usize = 4;
/// Below this many entries merging is not worth the while.
const MERGE_MIN: u32 = 16;
/// As many as a cache line has room for.
const SITES: usize = 3;

/// Accesses that nothing can tell apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Of one of them; the others' are equivalent.
    pub epoch: Epoch,
    /// First byte, or the first that no later allocation took.
    pub start: u64,
    pub lockset: LocksetId,
    pub kind: AccessKind,
    pub site: SiteId,
    pub count: u32,
    /// Event number of the earliest.
    pub first: u32,
}

impl Entry {
    #[inline]
    pub fn new(touch: &Touch, lockset: LocksetId) -> Entry {
        Entry {
            epoch: touch.epoch,
            start: touch.start,
            lockset,
            kind: touch.kind,
            site: touch.site,
            count: 1,
            first: touch.position,
        }
    }
}

type GroupId = u32;
/// No group. The arena's first place is never used.
const NONE: GroupId = 0;

/// Entries that differ in their sites only.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    pub epoch: Epoch,
    pub start: u64,
    pub lockset: LocksetId,
    older: GroupId,
    sites: [AtSite; SITES],
    pub kind: AccessKind,
    used: u8,
}

const _: () = assert!(size_of::<Group>() == 64, "a group is one cache line");

#[derive(Clone, Copy, Default, Debug)]
struct AtSite {
    site: SiteId,
    count: u32,
    first: u32,
}

impl Group {
    fn new(entry: &Entry, older: GroupId) -> Group {
        let mut group = Group {
            epoch: entry.epoch,
            start: entry.start,
            lockset: entry.lockset,
            older,
            sites: [AtSite::default(); SITES],
            kind: entry.kind,
            used: 0,
        };
        group.put(entry);
        group
    }

    fn put(&mut self, entry: &Entry) {
        self.sites[usize::from(self.used)] = AtSite {
            site: entry.site,
            count: entry.count,
            first: entry.first,
        };
        self.used += 1;
    }

    fn is_full(&self) -> bool {
        usize::from(self.used) == SITES
    }

    #[inline]
    fn fits(&self, entry: &Entry) -> bool {
        self.epoch == entry.epoch
            && self.start == entry.start
            && self.lockset == entry.lockset
            && self.kind == entry.kind
    }

    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let entry = |at: &AtSite| Entry {
            epoch: self.epoch,
            start: self.start,
            lockset: self.lockset,
            kind: self.kind,
            site: at.site,
            count: at.count,
            first: at.first,
        };
        self.sites[..usize::from(self.used)].iter().map(entry)
    }
}

/// Accesses to one unit: its reads, or its writes, or those of them that hold a common lock.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Log {
    /// A segment that is ordered after all entries, or the last of them, if one is known: whoever follows it
    /// follows all of them, so an access under a lock need not look at each.
    follower: Epoch,
    newest: GroupId,
    entries: u32,
    /// Merge when there are more entries than this.
    merge_above: u32,
    /// Locks that every entry holds.
    pub common: LocksetId,
    /// Where the accesses of the same kind are that do not hold any of those.
    pub next: LogId,
}

/// A further log of a unit, in the arena.
pub(crate) type LogId = u32;
/// No further log. The arena's first place is never used.
pub(crate) const NO_LOG: LogId = 0;

impl Log {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The segment noted last, or none.
    #[inline]
    pub fn follower(&self) -> Epoch {
        self.follower
    }

    /// True only if all entries are ordered before what `viewer` does next.
    #[inline]
    pub fn is_surely_before(&self, viewer: ThreadId, order: &HappensBefore) -> bool {
        self.entries == 0 || !self.follower.is_none() && order.knows(viewer, self.follower)
    }

    /// Notes that all entries are ordered before the segment `follower`, or in it.
    #[inline]
    pub fn note_follower(&mut self, follower: Epoch) {
        self.follower = follower;
    }

    #[inline]
    pub fn wants_merging(&self) -> bool {
        self.entries > MERGE_MIN.max(self.merge_above)
    }

    /// Whether there is anything that has not been looked at for merging.
    pub fn has_grown(&self) -> bool {
        self.entries > 1 && self.merge_above != 2 * self.entries
    }
}

/// Groups by id, in blocks that never move: growing copies nothing.
struct Groups {
    blocks: Vec<Vec<Group>>,
}

/// 4096 x 64 bytes.
const BLOCK: usize = 1 << 12;

impl Groups {
    #[inline]
    fn push(&mut self, group: Group) -> GroupId {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let number = self.blocks.len() - 1;
        let block = &mut self.blocks[number];
        block.push(group);
        let id = number * BLOCK + block.len() - 1;
        GroupId::try_from(id).expect("memory holds fewer than 2^32 groups")
    }
}

impl Index<GroupId> for Groups {
    type Output = Group;

    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.blocks[id as usize / BLOCK][id as usize % BLOCK]
    }
}

impl IndexMut<GroupId> for Groups {
    #[inline]
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.blocks[id as usize / BLOCK][id as usize % BLOCK]
    }
}

/// The entries of all logs.
pub(crate) struct Arena {
    groups: Groups,
    /// Places that can be used again, linked like a log.
    unused: GroupId,
    /// What does not fit the units themselves.
    further: Vec<Log>,
    /// Which of them can be used again.
    unused_further: Vec<LogId>,
    /// Entries in all logs.
    held: u64,
    /// Room for merging.
    scratch: Vec<(u64, Entry)>,
}

impl Arena {
    pub fn new() -> Arena {
        let nothing = Group {
            epoch: Epoch::NONE,
            start: 0,
            lockset: 0,
            older: NONE,
            sites: [AtSite::default(); SITES],
            kind: AccessKind::Read,
            used: 0,
        };
        let mut groups = Groups { blocks: Vec::new() };
        groups.push(nothing);
        Arena {
            groups,
            unused: NONE,
            further: vec![Log::default()],
            unused_further: Vec::new(),
            held: 0,
            scratch: Vec::new(),
        }
    }

    /// How many entries all logs have.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// A further log of a unit, to be put back by [`Arena::set_further`].
    pub fn further(&self, id: LogId) -> Log {
        self.further[id as usize]
    }

    pub fn set_further(&mut self, id: LogId, log: Log) {
        self.further[id as usize] = log;
    }

    pub fn add_further(&mut self, log: Log) -> LogId {
        if let Some(id) = self.unused_further.pop() {
            self.further[id as usize] = log;
            return id;
        }
        self.further.push(log);
        LogId::try_from(self.further.len() - 1).expect("memory holds fewer than 2^32 logs")
    }

    /// The groups of a log, newest first.
    pub fn groups(&self, log: Log) -> impl Iterator<Item = &Group> {
        let group = |id: GroupId| (id != NONE).then(|| &self.groups[id]);
        std::iter::successors(group(log.newest), move |newer| group(newer.older))
    }

    /// The entries of a log, newest groups first.
    fn entries(&self, log: Log) -> impl Iterator<Item = Entry> {
        self.groups(log).flat_map(Group::entries)
    }

    /// Reads something of the newest group.
    #[inline]
    pub fn glance(&self, log: Log) -> u64 {
        u64::from(self.groups[log.newest].lockset)
    }

    /// Adds an access of a thread that knows `order`.
    #[inline]
    pub fn add(&mut self, log: &mut Log, new: &Entry, order: &HappensBefore) {
        let follows_all = log.is_surely_before(new.epoch.thread(), order);
        // Where someone of another segment follows all entries, none can be of this segment.
        let searched = match log.follower {
            follower if follower == new.epoch => 1,
            follower if follower.is_none() => RECENT,
            _ => 0,
        };
        log.follower = if follows_all { new.epoch } else { Epoch::NONE };
        if !self.count_up(log, new, searched) {
            self.push(log, new);
        }
    }

    /// Answers whether there is a group for the new entry among the newest.
    #[inline]
    fn count_up(&mut self, log: &mut Log, new: &Entry, searched: usize) -> bool {
        let mut id = log.newest;
        for _ in 0..searched {
            if id == NONE {
                return false;
            }
            let group = &mut self.groups[id];
            if group.fits(new) {
                let mut sites = group.sites[..usize::from(group.used)].iter_mut();
                if let Some(at) = sites.find(|at| at.site == new.site && at.count < u32::MAX) {
                    at.count += 1;
                    return true;
                }
                if !group.is_full() {
                    group.put(new);
                    log.entries += 1;
                    self.held += 1;
                    return true;
                }
            }
            id = group.older;
        }
        false
    }

    #[inline]
    fn push(&mut self, log: &mut Log, new: &Entry) {
        let group = Group::new(new, log.newest);
        log.newest = if self.unused == NONE {
            self.groups.push(group)
        } else {
            let id = self.unused;
            self.unused = self.groups[id].older;
            self.groups[id] = group;
            id
        };
        log.entries += 1;
        self.held += 1;
    }

    /// Empties a log and the further ones.
    pub fn clear_all(&mut self, log: &mut Log) {
        let mut id = std::mem::replace(&mut log.next, NO_LOG);
        self.clear(log);
        while id != NO_LOG {
            let mut further = self.further(id);
            self.clear(&mut further);
            self.unused_further.push(id);
            id = further.next;
        }
    }

    /// Empties a log.
    pub fn clear(&mut self, log: &mut Log) {
        let mut id = log.newest;
        while id != NONE {
            let older = self.groups[id].older;
            self.groups[id].older = self.unused;
            self.unused = id;
            id = older;
        }
        self.held -= u64::from(log.entries);
        *log = Log {
            next: log.next,
            ..Log::default()
        };
    }

    /// A log with the same entries, and further ones like the further ones of `log`.
    pub fn copy_all(&mut self, log: Log) -> Log {
        let mut copies = vec![self.copy(log)];
        let mut id = log.next;
        while id != NO_LOG {
            let further = self.further(id);
            copies.push(self.copy(further));
            id = further.next;
        }
        let mut next = NO_LOG;
        for copy in copies.drain(1..).rev() {
            next = self.add_further(Log { next, ..copy });
        }
        Log { next, ..copies[0] }
    }

    fn copy(&mut self, log: Log) -> Log {
        let entries: Vec<Entry> = self.entries(log).collect();
        let mut copy = Log {
            newest: NONE,
            entries: 0,
            ..log
        };
        self.refill(&mut copy, entries.iter().rev());
        copy
    }

    /// Lets accesses that started before `at` start there, in the further logs too. Answers whether there were any.
    pub fn cut_all(&mut self, log: Log, at: u64) -> bool {
        let mut any = self.cut(log, at);
        let mut id = log.next;
        while id != NO_LOG {
            let further = self.further(id);
            any |= self.cut(further, at);
            id = further.next;
        }
        any
    }

    fn cut(&mut self, log: Log, at: u64) -> bool {
        let mut any = false;
        let mut id = log.newest;
        while id != NONE {
            let group = &mut self.groups[id];
            any |= group.start < at;
            group.start = group.start.max(at);
            id = group.older;
        }
        any
    }

    /// Merges entries that nothing can tell apart any more, and drops those that are not `wanted`.
    pub fn merge(
        &mut self,
        log: &mut Log,
        live: &mut LiveCounts,
        order: &HappensBefore,
        mut wanted: impl FnMut(Epoch) -> bool,
    ) {
        if self.has_nothing_to_merge(*log, live, order, &mut wanted) {
            log.merge_above = log.entries.saturating_mul(2);
            return;
        }
        let mut entries = std::mem::take(&mut self.scratch);
        entries.clear();
        entries.extend(
            self.entries(*log)
                .filter(|entry| wanted(entry.epoch))
                .map(|entry| (live.class(entry.epoch, order), entry)),
        );
        merge_classes(&mut entries);
        let Log {
            follower, common, ..
        } = *log;
        self.clear(log);
        self.refill(log, entries.iter().map(|(_, entry)| entry));
        log.follower = follower;
        log.common = common;
        log.merge_above = log.entries.saturating_mul(2);
        self.scratch = entries;
    }

    /// True only if all groups are wanted, of one thread, and each of another class: the most frequent case.
    fn has_nothing_to_merge(
        &self,
        log: Log,
        live: &mut LiveCounts,
        order: &HappensBefore,
        wanted: &mut impl FnMut(Epoch) -> bool,
    ) -> bool {
        let mut last: Option<(ThreadId, u64)> = None;
        let mut id = log.newest;
        while id != NONE {
            let group = &self.groups[id];
            let class = live.class(group.epoch, order);
            let newer = last.replace((group.epoch.thread(), class));
            let apart = |newer: (ThreadId, u64)| newer.0 == group.epoch.thread() && newer.1 > class;
            if !newer.is_none_or(apart) || !wanted(group.epoch) {
                return false;
            }
            id = group.older;
        }
        true
    }

    fn refill<'a>(&mut self, log: &mut Log, entries: impl Iterator<Item = &'a Entry>) {
        for entry in entries {
            let newest = &mut self.groups[log.newest];
            if log.newest != NONE && newest.fits(entry) && !newest.is_full() {
                newest.put(entry);
                log.entries += 1;
                self.held += 1;
            } else {
                self.push(log, entry);
            }
        }
    }
}

/// Makes one of each set of entries that differ in time only and are of one class, and brings those together that
/// fit one group; the newest last.
fn merge_classes(entries: &mut Vec<(u64, Entry)>) {
    let group = |class: u64, entry: &Entry| {
        (
            class,
            entry.epoch.thread(),
            entry.kind,
            entry.start,
            entry.lockset,
        )
    };
    entries.sort_unstable_by_key(|(class, entry)| (group(*class, entry), entry.site, entry.first));
    entries.dedup_by(|(class, next), (kept_class, kept)| {
        let same = group(*class, next) == group(*kept_class, kept) && next.site == kept.site;
        let sum = kept.count.checked_add(next.count);
        match sum {
            Some(sum) if same => kept.count = sum,
            _ => return false,
        }
        true
    });
    let groups =
        entries.chunk_by_mut(|(a, first), (b, second)| group(*a, first) == group(*b, second));
    for group in groups {
        // Any epoch of the class stands for all.
        let epoch = group[0].1.epoch;
        group.iter_mut().for_each(|(_, entry)| entry.epoch = epoch);
    }
}
