//! Random traces: well-formed ones as programs make them, and lawless ones that any reader might deliver.

use std::collections::BTreeMap;

use verdict_events::{
    Access, Addr, Event, EventKind, LockMode, MemoryOrder, SiteId, SyncId, ThreadId,
};

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What kind of traces to make.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub events: usize,
    pub threads: u32,
    pub variables: u64,
    pub locks: u64,
    pub sites: u64,
    /// Accesses of different sizes that overlap, allocate and free.
    pub overlaps: bool,
    /// Atomics and fences.
    pub atomics: bool,
    /// Barriers, semaphores, conditions, shared locks.
    pub objects: bool,
    /// Threads are forked by others; otherwise all are there from the start.
    pub forks: bool,
    /// No rule but the vocabulary.
    pub lawless: bool,
}

impl Shape {
    pub fn random(random: &mut Random) -> Shape {
        Shape {
            events: random.pick(&[12, 25, 60, 60, 150]),
            threads: random.pick(&[2, 3, 4, 7]),
            variables: random.pick(&[1, 2, 4]),
            locks: random.pick(&[1, 2, 3]),
            sites: random.pick(&[1, 3, 8]),
            overlaps: random.one_in(2),
            atomics: random.one_in(3),
            objects: random.one_in(2),
            forks: random.one_in(2),
            lawless: random.one_in(6),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Unborn,
    Running,
    /// At this barrier, until all have come.
    AtBarrier(u64),
    /// Must leave this barrier next.
    MayLeave(u64),
    Ended,
}

struct Program<'a> {
    random: &'a mut Random,
    shape: Shape,
    lives: Vec<Life>,
    /// Holders of each lock with their modes; a thread may hold one several times.
    holders: BTreeMap<u64, Vec<(u32, LockMode)>>,
    semaphores: [u64; 2],
    events: Vec<Event>,
}

pub fn trace(random: &mut Random, shape: Shape) -> Vec<Event> {
    let lives = (0..shape.threads)
        .map(|t| {
            if shape.forks && t > 0 {
                Life::Unborn
            } else {
                Life::Running
            }
        })
        .collect();
    let mut program = Program {
        random,
        shape,
        lives,
        holders: BTreeMap::new(),
        semaphores: [0; 2],
        events: Vec::new(),
    };
    for _ in 0..shape.events * 3 {
        if program.events.len() < shape.events {
            program.step();
        }
    }
    program.events
}

impl Program<'_> {
    fn step(&mut self) {
        let thread = self.random.below(u64::from(self.shape.threads)) as u32;
        if self.shape.lawless {
            let kind = self.lawless();
            self.emit(thread, kind);
            return;
        }
        match self.lives[thread as usize] {
            Life::Unborn | Life::Ended | Life::AtBarrier(_) => {}
            Life::MayLeave(id) => {
                self.emit(thread, EventKind::BarrierLeave(SyncId(id)));
                self.lives[thread as usize] = Life::Running;
            }
            Life::Running => self.act(thread),
        }
    }

    fn act(&mut self, thread: u32) {
        match self.random.below(20) {
            0..9 => {
                let kind = self.access();
                self.emit(thread, kind);
            }
            9..12 => self.acquire(thread),
            12..16 => self.release(thread),
            16 => self.lifecycle(thread),
            17 if self.shape.atomics => {
                let kind = self.atomic();
                self.emit(thread, kind);
            }
            18 if self.shape.objects => self.object(thread),
            19 if self.shape.overlaps => {
                let kind = self.memory();
                self.emit(thread, kind);
            }
            _ => {}
        }
    }

    fn bytes(&mut self) -> Access {
        let (addr, size) = if self.shape.overlaps {
            (
                self.random.below(self.shape.variables * 8),
                self.random.pick(&[1, 2, 4, 8, 16]),
            )
        } else {
            (self.random.below(self.shape.variables) * 8, 8)
        };
        Access {
            addr: Addr(64 + addr),
            size,
            value: None,
        }
    }

    fn access(&mut self) -> EventKind {
        let bytes = self.bytes();
        if self.random.one_in(2) {
            EventKind::Read(bytes)
        } else {
            EventKind::Write(bytes)
        }
    }

    fn order(&mut self) -> MemoryOrder {
        use MemoryOrder::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        self.random
            .pick(&[Relaxed, Acquire, Release, AcqRel, SeqCst, Relaxed])
    }

    fn atomic(&mut self) -> EventKind {
        let (bytes, order) = (self.bytes(), self.order());
        match self.random.below(4) {
            0 => EventKind::AtomicLoad(bytes, order),
            1 => EventKind::AtomicStore(bytes, order),
            2 => EventKind::AtomicRmw(bytes, order),
            _ => EventKind::Fence(order),
        }
    }

    fn memory(&mut self) -> EventKind {
        let (addr, size) = (self.bytes().addr, self.random.pick(&[2, 4, 8, 32, 5000]));
        if self.random.one_in(2) {
            EventKind::Allocate { addr, size }
        } else {
            EventKind::Free { addr, size }
        }
    }

    fn acquire(&mut self, thread: u32) {
        let lock = self.random.below(self.shape.locks);
        let shared = self.shape.objects && self.random.one_in(3);
        let mode = if shared {
            LockMode::Shared
        } else {
            LockMode::Exclusive
        };
        let holders = self.holders.entry(lock).or_default();
        let others = holders.iter().filter(|&&(holder, _)| holder != thread);
        let free = match mode {
            LockMode::Exclusive => {
                others.count() == 0 && holders.iter().all(|&(_, held)| held == mode)
            }
            LockMode::Shared => holders.iter().all(|&(_, held)| held == mode),
        };
        if free {
            holders.push((thread, mode));
            self.emit(thread, EventKind::Acquire(SyncId(lock), mode));
        }
    }

    fn release(&mut self, thread: u32) {
        let held = self
            .holders
            .iter()
            .flat_map(|(&lock, holders)| holders.iter().map(move |&(t, mode)| (t, lock, mode)));
        let held: Vec<_> = held.filter(|&(holder, ..)| holder == thread).collect();
        if !held.is_empty() {
            let (_, lock, mode) = self.random.pick(&held);
            let holders = self.holders.get_mut(&lock).expect("it is held");
            let at = holders
                .iter()
                .position(|&holder| holder == (thread, mode))
                .expect("by this thread");
            holders.remove(at);
            self.emit(thread, EventKind::Release(SyncId(lock), mode));
        }
    }

    fn lifecycle(&mut self, thread: u32) {
        let other = self.random.below(u64::from(self.shape.threads)) as u32;
        match self.lives[other as usize] {
            Life::Unborn => {
                self.emit(thread, EventKind::Fork(ThreadId(other)));
                self.lives[other as usize] = Life::Running;
                if self.random.one_in(2) {
                    self.emit(other, EventKind::Begin);
                }
            }
            Life::Ended => self.emit(thread, EventKind::Join(ThreadId(other))),
            Life::Running if other != thread && other != 0 && self.shape.forks => {
                let holds = self
                    .holders
                    .values()
                    .flatten()
                    .any(|&(holder, _)| holder == other);
                if !holds {
                    self.lives[other as usize] = Life::Ended;
                    if self.random.one_in(2) {
                        self.emit(other, EventKind::End);
                    }
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, thread: u32) {
        let id = self.random.below(2);
        match self.random.below(4) {
            0 => {
                let kind = if self.random.one_in(2) {
                    EventKind::Notify(SyncId(id))
                } else {
                    EventKind::Wait(SyncId(id))
                };
                self.emit(thread, kind);
            }
            1 if self.semaphores[id as usize] > 0 && self.random.one_in(2) => {
                self.semaphores[id as usize] -= 1;
                self.emit(thread, EventKind::SemaphoreWait(SyncId(id)));
            }
            1 => {
                self.semaphores[id as usize] += 1;
                self.emit(thread, EventKind::SemaphorePost(SyncId(id)));
            }
            _ => self.arrive(thread, id),
        }
    }

    /// Barriers for two: the second to arrive lets both leave, in any order and while others arrive.
    fn arrive(&mut self, thread: u32, id: u64) {
        self.emit(thread, EventKind::BarrierEnter(SyncId(id)));
        let waiting = self
            .lives
            .iter()
            .position(|&life| life == Life::AtBarrier(id));
        match waiting {
            Some(other) => {
                self.lives[other] = Life::MayLeave(id);
                self.lives[thread as usize] = Life::MayLeave(id);
                // The round must close before anyone arrives for the next.
                self.emit(thread, EventKind::BarrierLeave(SyncId(id)));
                self.lives[thread as usize] = Life::Running;
            }
            None => self.lives[thread as usize] = Life::AtBarrier(id),
        }
    }

    fn lawless(&mut self) -> EventKind {
        let id = SyncId(self.random.below(self.shape.locks));
        let mode = if self.random.one_in(2) {
            LockMode::Shared
        } else {
            LockMode::Exclusive
        };
        let thread = ThreadId(self.random.below(u64::from(self.shape.threads)) as u32);
        match self.random.below(24) {
            0 => EventKind::Fork(thread),
            1 => EventKind::Begin,
            2 => EventKind::End,
            3 => EventKind::Join(thread),
            4 => EventKind::Wait(id),
            5 => EventKind::Notify(id),
            6 => EventKind::BarrierEnter(id),
            7 => EventKind::BarrierLeave(id),
            8 => EventKind::SemaphorePost(id),
            9 => EventKind::SemaphoreWait(id),
            10 => EventKind::Acquire(id, mode),
            11 => EventKind::Release(id, mode),
            12 => EventKind::Output {
                stream: 1,
                bytes: 9,
            },
            13 | 14 => self.atomic(),
            15 => self.memory(),
            _ => self.access(),
        }
    }

    fn emit(&mut self, thread: u32, kind: EventKind) {
        let site = SiteId(self.random.below(self.shape.sites) as u32);
        self.events.push(Event {
            thread: ThreadId(thread),
            site,
            kind,
        });
    }
}
