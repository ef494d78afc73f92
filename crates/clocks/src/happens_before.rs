//! Which event posts to, and which receives from, which object.
//!
//! | event | posts to | receives from |
//! | --- | --- | --- |
//! | release, exclusive | the lock | |
//! | release, shared | the lock's readers | |
//! | acquire, exclusive | | the lock and its readers |
//! | acquire, shared | | the lock: readers do not order readers |
//! | fork | the child's next event | |
//! | join | | all that the child did so far, with or without its end event |
//! | notify | the condition | |
//! | wait | | every earlier notify of the condition |
//! | barrier enter / leave | the round | the round (see `barrier`) |
//! | semaphore post / wait | the semaphore | every earlier post: a trace does not say which one it took |
//! | atomics, fences | see `atomics` | |
//!
//! By [`Rules::Regions`], every operation of the table posts to one object and receives from it.
//!
//! Posts accumulate: a release is ordered before every later acquire of the lock, whoever held it between.
//! Reads, writes, allocate, free and output order nothing.
//!
//! An atomic access receives before and posts after the access itself, so callers bracket it:
//! [`HappensBefore::receive`], the access, [`HappensBefore::post`].

use verdict_events::{Event, EventKind, LockMode, SyncId, ThreadId};

use crate::atomics::{Atomics, acquires, releases};
use crate::barrier::Barrier;
use crate::sync_table::SyncTable;
use crate::{Epoch, Posted, VectorClock};

/// Which synchronisation orders events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// Everything in the table.
    All,
    /// Only messages between threads: fork, join, notify/wait (RaceFuzzer, section 2.1). The rest is left
    /// to locksets.
    Messages,
    /// Every synchronisation operation posts to, and receives from, one object that all threads share: segments are ordered
    /// unless they overlap in time (Narayanasamy et al., section 3.4: sequencing regions).
    Regions,
}

/// The clock of every thread and of every object through which threads may still learn.
#[derive(Debug)]
pub struct HappensBefore {
    rules: Rules,
    threads: Vec<Thread>,
    locks: SyncTable<Lock>,
    conditions: SyncTable<Posted>,
    semaphores: SyncTable<Posted>,
    barriers: SyncTable<Barrier>,
    atomics: Atomics,
    /// What all have posted, for [`Rules::Regions`].
    everyone: Posted,
    sync_operations: u64,
    unannounced: u64,
}

#[derive(Debug, Default)]
struct Thread {
    clock: VectorClock,
    /// The own component of `clock`, kept apart because every access needs it.
    posts: u32,
    progress: Progress,
    life: Life,
}

/// Whether others must reckon with what a thread does next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Nobody has forked it and it has done nothing.
    #[default]
    Unborn,
    Running,
    /// It has ended or was joined.
    Over,
}

/// How far a thread has come, for counting threads and segments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Known from a fork or join only.
    #[default]
    Unseen,
    /// Its last event was a synchronisation operation.
    SegmentEnded,
    /// It has done something since its last synchronisation operation.
    InSegment,
}

#[derive(Debug, Default)]
struct Lock {
    exclusive: Posted,
    shared: Posted,
}

impl HappensBefore {
    /// No thread knows anything yet.
    pub fn new(rules: Rules) -> HappensBefore {
        HappensBefore {
            rules,
            threads: Vec::new(),
            locks: SyncTable::default(),
            conditions: SyncTable::default(),
            semaphores: SyncTable::default(),
            barriers: SyncTable::default(),
            atomics: Atomics::default(),
            everyone: Posted::default(),
            sync_operations: 0,
            unannounced: 0,
        }
    }

    /// The epoch of the segment in which `thread` is.
    #[inline]
    pub fn epoch(&self, thread: ThreadId) -> Epoch {
        Epoch::new(
            thread,
            self.threads
                .get(thread.0 as usize)
                .map_or(0, |state| state.posts),
        )
    }

    /// Whether what `viewer` does next is ordered after the segment `earlier` (theorem 3), which must have
    /// happened in the past. Segments of one thread are always ordered.
    #[inline]
    pub fn knows(&self, viewer: ThreadId, earlier: Epoch) -> bool {
        earlier.thread() == viewer || earlier.count() < self.clock(viewer).get(earlier.thread())
    }

    /// What `thread` knows. The thread must have been seen by [`HappensBefore::note_access`] or a
    /// synchronisation event.
    #[inline]
    pub fn clock(&self, thread: ThreadId) -> &VectorClock {
        &self.threads[thread.0 as usize].clock
    }

    /// Notes that `thread` did something that is no synchronisation operation, and says in which epoch.
    #[inline]
    pub fn note_access(&mut self, thread: ThreadId) -> Epoch {
        match self.threads.get_mut(thread.0 as usize) {
            Some(state) if state.life == Life::Running => {
                state.progress = Progress::InSegment;
                Epoch::new(thread, state.posts)
            }
            _ => self.note_first_access(thread),
        }
    }

    #[inline(never)]
    fn note_first_access(&mut self, thread: ThreadId) -> Epoch {
        let state = self.running(thread);
        state.progress = Progress::InSegment;
        Epoch::new(thread, state.posts)
    }

    /// The receiving half of an event. Call it for every event, before looking at the access it makes.
    pub fn receive(&mut self, event: &Event) {
        let thread = event.thread;
        self.note_progress(event);
        if self.rules == Rules::Regions {
            if let EventKind::Join(child) = event.kind {
                self.join(thread, child);
            }
            if is_synchronisation(&event.kind) {
                let clock = &mut self.threads[thread.0 as usize].clock;
                self.everyone.receive(clock);
            }
            return;
        }
        if self.rules == Rules::Messages && !is_message(&event.kind) {
            return;
        }
        match event.kind {
            EventKind::Acquire(id, mode) => {
                let clock = &mut self.threads[thread.0 as usize].clock;
                let lock = self.locks.entry(id);
                lock.exclusive.receive(clock);
                if mode == LockMode::Exclusive {
                    lock.shared.receive(clock);
                }
            }
            EventKind::Join(child) => self.join(thread, child),
            EventKind::Wait(id) => {
                self.conditions
                    .entry(id)
                    .receive(&mut self.threads[thread.0 as usize].clock);
            }
            EventKind::SemaphoreWait(id) => {
                self.semaphores
                    .entry(id)
                    .receive(&mut self.threads[thread.0 as usize].clock);
            }
            EventKind::BarrierLeave(id) => {
                self.barriers
                    .entry(id)
                    .leave(thread, &mut self.threads[thread.0 as usize].clock);
            }
            EventKind::AtomicLoad(access, order) | EventKind::AtomicRmw(access, order) => {
                if acquires(order) {
                    self.atomics
                        .load_acquire(access.addr, &mut self.threads[thread.0 as usize].clock);
                } else {
                    self.atomics.load_relaxed(access.addr, thread);
                }
            }
            EventKind::Fence(order) if acquires(order) => {
                self.atomics
                    .fence_acquire(thread, &mut self.threads[thread.0 as usize].clock);
            }
            _ => {}
        }
    }

    /// The posting half of an event. Call it for every event, after looking at the access it makes.
    pub fn post(&mut self, event: &Event) {
        let thread = event.thread;
        if self.rules == Rules::Regions {
            self.post_to_everyone(event);
            return;
        }
        if self.rules == Rules::Messages && !is_message(&event.kind) {
            return;
        }
        match event.kind {
            EventKind::Release(id, mode) => self.release(thread, id, mode),
            EventKind::Fork(child) => {
                self.end_segment(thread);
                self.teach(child, thread);
                self.thread(child).life = Life::Running;
            }
            EventKind::End => {
                self.end_segment(thread);
                self.thread(thread).life = Life::Over;
            }
            EventKind::Notify(id) => {
                self.end_segment(thread);
                self.conditions
                    .entry(id)
                    .post(thread, &self.threads[thread.0 as usize].clock);
            }
            EventKind::SemaphorePost(id) => {
                self.end_segment(thread);
                self.semaphores
                    .entry(id)
                    .post(thread, &self.threads[thread.0 as usize].clock);
            }
            EventKind::BarrierEnter(id) => {
                self.end_segment(thread);
                self.barriers
                    .entry(id)
                    .enter(thread, &self.threads[thread.0 as usize].clock);
            }
            EventKind::AtomicStore(access, order) => {
                if releases(order) {
                    self.end_segment(thread);
                    let clock = &self.threads[thread.0 as usize].clock;
                    self.atomics.store_release(access.addr, thread, clock);
                } else {
                    self.atomics.store_relaxed(access.addr, thread);
                }
            }
            EventKind::AtomicRmw(access, order) => {
                if releases(order) {
                    self.end_segment(thread);
                    let clock = &self.threads[thread.0 as usize].clock;
                    self.atomics.update_release(access.addr, thread, clock);
                } else {
                    self.atomics.update_relaxed(access.addr, thread);
                }
            }
            EventKind::Fence(order) if releases(order) => {
                self.end_segment(thread);
                self.atomics
                    .fence_release(thread, &self.threads[thread.0 as usize].clock);
            }
            _ => {}
        }
    }

    fn post_to_everyone(&mut self, event: &Event) {
        let thread = event.thread;
        if !is_synchronisation(&event.kind) {
            return;
        }
        self.end_segment(thread);
        let clock = &self.threads[thread.0 as usize].clock;
        self.everyone.post(thread, clock);
        match event.kind {
            EventKind::Fork(child) => {
                self.teach(child, thread);
                self.thread(child).life = Life::Running;
            }
            EventKind::End => self.thread(thread).life = Life::Over,
            _ => {}
        }
    }

    /// Threads that did something.
    pub fn threads(&self) -> u64 {
        self.threads
            .iter()
            .filter(|state| state.progress != Progress::Unseen)
            .count() as u64
    }

    /// Segments so far: one per synchronisation operation, and the one in which a thread still is.
    pub fn segments(&self) -> u64 {
        let open = self
            .threads
            .iter()
            .filter(|state| state.progress == Progress::InSegment)
            .count();
        self.sync_operations + open as u64
    }

    /// How many clocks there are through which something can still be learnt.
    pub fn clocks(&self) -> usize {
        let objects = 2 * self.locks.len() + self.conditions.len() + self.semaphores.len();
        self.threads.len() + objects + self.barriers.len() + self.atomics.len()
    }

    /// Synchronisation operations so far.
    pub fn sync_operations(&self) -> u64 {
        self.sync_operations
    }

    /// How many times a thread did something though no running thread had forked it, or though it was over.
    pub fn unannounced(&self) -> u64 {
        self.unannounced
    }

    /// How many posting segments of `thread` every other running thread knows. Segments with smaller counts are ordered
    /// before all that happens from now on in other threads, for as long as [`HappensBefore::unannounced`] stays
    /// the same: a new thread knows what the one that forks it knows.
    pub fn known_to_all(&self, thread: ThreadId) -> u32 {
        let others =
            self.threads.iter().enumerate().filter(|&(index, state)| {
                index != thread.0 as usize && state.life == Life::Running
            });
        let known = others.map(|(_, state)| state.clock.get(thread)).min();
        // Alone, even the segment it is in: forking another thread ends that.
        known.unwrap_or(self.epoch(thread).count() + 1)
    }

    /// The different counts of `thread` that anyone else holds, ascending.
    ///
    /// Every count of this thread that any clock will ever hold is one of these, 0, or made by a later post
    /// and then larger than any epoch of `thread` so far. So two epochs with none of these counts in
    /// `(smaller, larger]` are told apart by nobody, now or later.
    pub fn live_counts(&self, thread: ThreadId) -> Vec<u32> {
        let others = self
            .threads
            .iter()
            .enumerate()
            .filter(|&(index, _)| index != thread.0 as usize);
        let mut counts: Vec<u32> = others.map(|(_, state)| state.clock.get(thread)).collect();
        let locks = self
            .locks
            .values()
            .flat_map(|lock| [&lock.exclusive, &lock.shared]);
        let objects = locks
            .chain(self.conditions.values())
            .chain(self.semaphores.values())
            .chain(self.barriers.values().flat_map(Barrier::posted))
            .chain(self.atomics.posted())
            .chain(std::iter::once(&self.everyone));
        counts.extend(objects.map(|posted| posted.clock().get(thread)));
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    #[inline]
    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let index = thread.0 as usize;
        if index >= self.threads.len() {
            self.new_thread(index);
        }
        &mut self.threads[index]
    }

    #[cold]
    fn new_thread(&mut self, index: usize) {
        self.threads.resize_with(index + 1, Thread::default);
    }

    /// The thread, which does something now.
    fn running(&mut self, thread: ThreadId) -> &mut Thread {
        if self.thread(thread).life != Life::Running {
            self.unannounced += 1;
        }
        let state = self.thread(thread);
        state.life = Life::Running;
        state
    }

    fn note_progress(&mut self, event: &Event) {
        let is_sync = is_synchronisation(&event.kind);
        self.sync_operations += u64::from(is_sync);
        self.running(event.thread).progress = if is_sync {
            Progress::SegmentEnded
        } else {
            Progress::InSegment
        };
    }

    /// Counts the posting segment that ends here.
    fn end_segment(&mut self, thread: ThreadId) {
        let state = self.thread(thread);
        // Cannot overflow: a thread posts at most once per event and traces have fewer than 2^32 events
        // (see `detect`).
        state.posts += 1;
        state.clock.set(thread, state.posts);
    }

    fn release(&mut self, thread: ThreadId, id: SyncId, mode: LockMode) {
        self.end_segment(thread);
        let clock = &self.threads[thread.0 as usize].clock;
        let lock = self.locks.entry(id);
        match mode {
            LockMode::Exclusive => lock.exclusive.post(thread, clock),
            LockMode::Shared => lock.shared.post(thread, clock),
        }
    }

    /// The joined thread posts here, so that a trace without end events is ordered the same.
    fn join(&mut self, parent: ThreadId, child: ThreadId) {
        if parent != child {
            self.end_segment(child);
            self.teach(parent, child);
            self.thread(child).life = Life::Over;
        }
    }

    fn teach(&mut self, learner: ThreadId, teacher: ThreadId) {
        if learner == teacher {
            return;
        }
        let mut clock = std::mem::take(&mut self.thread(learner).clock);
        clock.join(&self.thread(teacher).clock);
        self.thread(learner).clock = clock;
    }
}

/// Whether an event ends a segment.
fn is_synchronisation(kind: &EventKind) -> bool {
    match *kind {
        EventKind::AtomicLoad(_, order) => acquires(order),
        EventKind::AtomicStore(_, order) => releases(order),
        EventKind::AtomicRmw(_, order) | EventKind::Fence(order) => {
            acquires(order) || releases(order)
        }
        EventKind::Read(_)
        | EventKind::Write(_)
        | EventKind::Allocate { .. }
        | EventKind::Free { .. }
        | EventKind::Output { .. } => false,
        _ => true,
    }
}

fn is_message(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Fork(_)
            | EventKind::Begin
            | EventKind::End
            | EventKind::Join(_)
            | EventKind::Wait(_)
            | EventKind::Notify(_)
    )
}
