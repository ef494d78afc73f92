//! The locks a thread holds, as small numbers: equal sets have equal numbers.

use rustc_hash::FxHashMap;
use verdict_events::{Event, EventKind, LockMode, SyncId, ThreadId};

/// A set of held locks. 0 is the empty set.
pub(crate) type LocksetId = u32;

#[derive(Default)]
pub(crate) struct Locksets {
    /// Each sorted. The mode counts: a lock held shared in both accesses does not keep them apart.
    sets: Vec<Vec<(SyncId, LockMode)>>,
    ids: FxHashMap<Vec<(SyncId, LockMode)>, LocksetId>,
    threads: Vec<Held>,
    /// Whether two sets keep their holders apart, by the smaller and the larger id.
    apart: FxHashMap<(LocksetId, LocksetId), bool>,
    /// What two sets have in common, by the smaller and the larger id.
    common: FxHashMap<(LocksetId, LocksetId), Option<LocksetId>>,
    /// The last question and its answer: logs ask the same one many times over.
    last: Option<((LocksetId, LocksetId), bool)>,
}

#[derive(Default)]
struct Held {
    /// With the depth of re-entry.
    locks: Vec<(SyncId, LockMode, u32)>,
    id: LocksetId,
}

impl Locksets {
    pub fn synchronise(&mut self, event: &Event) {
        match event.kind {
            EventKind::Acquire(lock, mode) => {
                let held = self.held(event.thread);
                match held
                    .locks
                    .iter_mut()
                    .find(|(id, m, _)| (*id, *m) == (lock, mode))
                {
                    Some((_, _, depth)) => *depth += 1,
                    None => held.locks.push((lock, mode, 1)),
                }
                self.renumber(event.thread);
            }
            EventKind::Release(lock, mode) => {
                let held = self.held(event.thread);
                if let Some(at) = held
                    .locks
                    .iter()
                    .position(|&(id, m, _)| (id, m) == (lock, mode))
                {
                    held.locks[at].2 -= 1;
                    held.locks.retain(|&(_, _, depth)| depth > 0);
                    self.renumber(event.thread);
                }
            }
            _ => {}
        }
    }

    pub fn current(&self, thread: ThreadId) -> LocksetId {
        self.threads
            .get(thread.0 as usize)
            .map_or(0, |held| held.id)
    }

    /// Whether holders of these sets cannot run at the same time: a common lock, not shared by both.
    pub fn keep_apart(&mut self, a: LocksetId, b: LocksetId) -> bool {
        if a == 0 || b == 0 {
            return false;
        }
        if let Some((question, answer)) = self.last
            && question == (a, b)
        {
            return answer;
        }
        let Locksets { sets, apart, .. } = self;
        let answer = *apart.entry((a.min(b), a.max(b))).or_insert_with(|| {
            let others = &sets[b as usize];
            sets[a as usize].iter().any(|&(lock, mode)| {
                others.iter().any(|&(other, other_mode)| {
                    lock == other
                        && (mode == LockMode::Exclusive || other_mode == LockMode::Exclusive)
                })
            })
        });
        self.last = Some(((a, b), answer));
        answer
    }

    /// The locks in both sets, held the same way. None if there are none though one of the sets has some.
    pub fn common(&mut self, a: LocksetId, b: LocksetId) -> Option<LocksetId> {
        if a == b {
            return Some(a);
        }
        if a == 0 || b == 0 {
            return None;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.common.get(&key) {
            return known;
        }
        let others = &self.sets[b as usize];
        let both: Vec<(SyncId, LockMode)> = self.sets[a as usize]
            .iter()
            .filter(|lock| others.contains(lock))
            .copied()
            .collect();
        let common = (!both.is_empty()).then(|| self.number(both));
        self.common.insert(key, common);
        common
    }

    fn held(&mut self, thread: ThreadId) -> &mut Held {
        let index = thread.0 as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Held::default);
        }
        &mut self.threads[index]
    }

    fn renumber(&mut self, thread: ThreadId) {
        let held = &self.threads[thread.0 as usize].locks;
        let mut set: Vec<(SyncId, LockMode)> =
            held.iter().map(|&(id, mode, _)| (id, mode)).collect();
        set.sort_unstable();
        self.threads[thread.0 as usize].id = self.number(set);
    }

    /// The number of a sorted set.
    fn number(&mut self, set: Vec<(SyncId, LockMode)>) -> LocksetId {
        if self.sets.is_empty() {
            self.sets.push(Vec::new());
            self.ids.insert(Vec::new(), 0);
        }
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as LocksetId;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }
}
