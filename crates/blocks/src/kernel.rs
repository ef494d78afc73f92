//! The races of one unit.
//!
//! Most shared locations are guarded and have none. [`Kernel::is_racy`] finds that out in one pass over the accesses, in
//! the order in which their blocks begin: that order extends happens-before, so it is enough to look, for each access,
//! whether the last one of each thread before it precedes it; and where one access is known to follow all earlier
//! ones, whoever follows it does as well.
//!
//! Where there are races, each pair of threads is gone through once (algorithm 3 for one location). For a block of the
//! one thread, the blocks of the other that precede it are the first ones, those that follow it the last ones, and both
//! bounds only ever move forward. What lies between is counted per site while it slides by (algorithm 4), so that
//! every pair is counted and none visited.
//!
//! Even where there are races, most accesses are in none, and with many threads there are many pairs. So the accesses that
//! do not follow all earlier ones are found first ([`crate::late`]), and only with these pairs are gone through, unless they are many.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use verdict_detect::{AccessKind, RaceSet, Side};
use verdict_events::{Addr, Position, ThreadId};

use crate::late::{Late, LateFinder};
use crate::order::{GLANCE, Moment, Order};
use crate::record::{NONE, Record, What};

/// Kinds of access that race with the same others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
}

impl Class {
    pub fn of(kind: AccessKind) -> Class {
        match kind {
            AccessKind::Read => Class::Read,
            AccessKind::Write | AccessKind::Free => Class::Write,
            AccessKind::AtomicRead => Class::AtomicRead,
            AccessKind::AtomicWrite => Class::AtomicWrite,
        }
    }

    /// With which it races.
    pub fn rivals(self) -> &'static [Class] {
        match self {
            Class::Read => &[Class::Write, Class::AtomicWrite],
            Class::Write => &[
                Class::Read,
                Class::Write,
                Class::AtomicRead,
                Class::AtomicWrite,
            ],
            Class::AtomicRead => &[Class::Write],
            Class::AtomicWrite => &[Class::Read, Class::Write],
        }
    }
}

/// What it takes to say whether an access precedes a later one.
#[derive(Clone, Copy)]
struct Stamp {
    thread: u32,
    posts: u32,
}

impl Stamp {
    #[inline]
    fn precedes(self, later: &Moment) -> bool {
        self.thread == later.thread || self.posts < later.known(self.thread)
    }
}

/// The accesses of one class so far.
struct Past {
    /// An access that follows all of them, or is the last of them.
    follower: Option<Stamp>,
    /// By thread: how many posts precede its last access. Of threads that have none, it means nothing.
    last_posts: Vec<u32>,
    /// Which threads have any.
    threads: Vec<u32>,
    has: Vec<bool>,
}

impl Past {
    fn new(threads: u32) -> Past {
        Past {
            follower: None,
            last_posts: vec![0; threads as usize],
            threads: Vec::new(),
            has: vec![false; threads as usize],
        }
    }

    fn clear(&mut self) {
        for thread in self.threads.drain(..) {
            self.has[thread as usize] = false;
        }
        self.follower = None;
    }

    fn precedes(&mut self, now: &Moment) -> bool {
        if self.threads.is_empty() {
            return true;
        }
        let quick = self.follower.is_some_and(|last| last.precedes(now));
        let all = || {
            let mut last = self.threads.iter().map(|&thread| Stamp {
                thread,
                posts: self.last_posts[thread as usize],
            });
            last.all(|last| last.precedes(now))
        };
        if quick || all() {
            self.follower = Some(Stamp::from(now));
            return true;
        }
        false
    }

    fn add(&mut self, now: &Moment) {
        let follows =
            self.threads.is_empty() || self.follower.is_some_and(|last| last.precedes(now));
        self.follower = follows.then_some(Stamp::from(now));
        let thread = now.thread as usize;
        if !std::mem::replace(&mut self.has[thread], true) {
            self.threads.push(now.thread);
        }
        self.last_posts[thread] = now.posts;
    }
}

impl From<&Moment<'_>> for Stamp {
    fn from(now: &Moment) -> Stamp {
        Stamp {
            thread: now.thread,
            posts: now.posts,
        }
    }
}

/// What is known of the accesses of a thread that lie between both bounds, for one site and kind.
struct Sliding {
    what: What,
    previous: u32,
    count: u64,
    /// First positions of the records in the window, oldest first.
    firsts: VecDeque<u64>,
}

/// What lies between both bounds.
#[derive(Default)]
struct Window {
    /// The first `count` have records; the others only keep their memory.
    slidings: Vec<Sliding>,
    count: usize,
}

impl Window {
    fn now(&self) -> &[Sliding] {
        &self.slidings[..self.count]
    }

    fn clear(&mut self) {
        let now = &mut self.slidings[..self.count];
        now.iter_mut().for_each(|sliding| sliding.firsts.clear());
        self.count = 0;
    }

    fn find(&self, record: &Record) -> Option<usize> {
        let same =
            |sliding: &Sliding| (sliding.what, sliding.previous) == (record.what, record.previous);
        self.now().iter().position(same)
    }

    fn enter(&mut self, record: &Record, order: &Order) {
        let first = order.start(record.block) + u64::from(record.offset);
        let nth = self.find(record).unwrap_or_else(|| self.add(record));
        let sliding = &mut self.slidings[nth];
        sliding.count += u64::from(record.count);
        sliding.firsts.push_back(first);
    }

    fn add(&mut self, record: &Record) -> usize {
        let nth = self.count;
        self.count += 1;
        if nth == self.slidings.len() {
            self.slidings.push(Sliding {
                what: record.what,
                previous: record.previous,
                count: 0,
                firsts: VecDeque::new(),
            });
        }
        let sliding = &mut self.slidings[nth];
        (sliding.what, sliding.previous, sliding.count) = (record.what, record.previous, 0);
        nth
    }

    fn leave(&mut self, record: &Record) {
        let nth = self.find(record).expect("what leaves has entered");
        let sliding = &mut self.slidings[nth];
        sliding.count -= u64::from(record.count);
        sliding.firsts.pop_front();
        if sliding.firsts.is_empty() {
            self.count -= 1;
            self.slidings.swap(nth, self.count);
        }
    }
}

/// Instances of one pair of sites.
struct Tally {
    first: [Side; 2],
    instances: u64,
}

/// Finds races, unit by unit. Keeps its memory from one to the next.
pub(crate) struct Kernel<'a> {
    order: &'a Order,
    past: [Past; 4],
    late: LateFinder,
    window: Window,
    tallies: FxHashMap<(What, What), Tally>,
    by_thread: Vec<Record>,
}

impl<'a> Kernel<'a> {
    pub fn new(order: &'a Order, threads: u32) -> Kernel<'a> {
        Kernel {
            order,
            past: [(); 4].map(|()| Past::new(threads)),
            late: LateFinder::new(threads),
            window: Window::default(),
            tallies: FxHashMap::default(),
            by_thread: Vec::new(),
        }
    }

    /// Adds the races among `records`, all of one unit that starts at `start`, in the order of their blocks. Answers
    /// whether there are any.
    pub fn unit(&mut self, records: &[Record], start: u64, races: &mut RaceSet) -> bool {
        if !self.is_racy(records) {
            return false;
        }
        let mut sorted = std::mem::take(&mut self.by_thread);
        sorted.clear();
        sorted.extend_from_slice(records);
        sorted.sort_by_key(|record| self.order.thread(record.block));
        let order = self.order;
        let threads: Vec<&[Record]> = sorted
            .chunk_by(|a, b| order.thread(a.block) == order.thread(b.block))
            .collect();
        let mut finder = std::mem::take(&mut self.late);
        match finder.find(records, threads.len(), order) {
            Some(late) => self.late_ones(late, &threads, start, races),
            None => {
                for (nth, one) in threads.iter().enumerate() {
                    for other in &threads[nth + 1..] {
                        self.pair(one, other, start, races);
                    }
                }
            }
        }
        self.late = finder;
        self.by_thread = sorted;
        true
    }

    /// Adds the races of the accesses that do not follow all earlier ones, with these. `threads` are the accesses of each
    /// thread.
    fn late_ones(&mut self, late: &[Late], threads: &[&[Record]], start: u64, races: &mut RaceSet) {
        let order = self.order;
        let of = |thread: u32| {
            let place = threads.binary_search_by_key(&thread, |list| order.thread(list[0].block));
            threads[place.expect("a thread with accesses")]
        };
        for late in late.chunk_by(|a, b| (a.thread, a.rival) == (b.thread, b.rival)) {
            let rival = late[0].rival;
            let (own, theirs) = (of(late[0].thread), of(rival));
            self.window.clear();
            let (mut low, mut high) = (0, 0);
            for one in late {
                let (record, before) = (&own[one.nth as usize], one.rivals_before as usize);
                let known = order.known(record.block, rival);
                while low < high && order.posts(theirs[low].block) < known {
                    self.window.leave(&theirs[low]);
                    low += 1;
                }
                if low == high {
                    // What begins to be unordered is the end of what came before: found from there.
                    let unordered = theirs[high..before].iter().rev();
                    let count = unordered.take_while(|record| order.posts(record.block) >= known);
                    low = before - count.count();
                    high = low;
                }
                for next in &theirs[high..before] {
                    self.window.enter(next, order);
                }
                high = before;
                self.tally(record, rival);
            }
            self.add_tallies(start, races);
        }
    }

    /// Whether two of these accesses race.
    fn is_racy(&mut self, records: &[Record]) -> bool {
        self.past.iter_mut().for_each(Past::clear);
        let (mut block, mut seen) = (NONE, [false; 4]);
        for some in records.chunks(GLANCE) {
            self.order.glance(some.iter().map(|record| record.block));
            for record in some {
                let class = Class::of(record.what.kind());
                // A block often accesses a location from several sites, and in one class one is as good as the other.
                if record.block != block {
                    (block, seen) = (record.block, [false; 4]);
                }
                if std::mem::replace(&mut seen[class as usize], true) {
                    continue;
                }
                let now = self.order.moment(block);
                for &rival in class.rivals() {
                    if !self.past[rival as usize].precedes(&now) {
                        return true;
                    }
                }
                self.past[class as usize].add(&now);
            }
        }
        false
    }

    /// Adds the races between the records of two threads in one unit, each in the order of its blocks (and of time within one). Answers whether
    /// there are any.
    pub fn pair(
        &mut self,
        one: &[Record],
        other: &[Record],
        start: u64,
        races: &mut RaceSet,
    ) -> bool {
        let (Some(first), Some(second)) = (one.first(), other.first()) else {
            return false;
        };
        let (thread, rival) = (
            self.order.thread(first.block),
            self.order.thread(second.block),
        );
        self.window.clear();
        let (mut low, mut high) = (0, 0);
        let mut any = false;
        for record in one {
            let posts = self.order.posts(record.block);
            while let Some(next) = other.get(high)
                && self.order.known(next.block, thread) <= posts
            {
                self.window.enter(next, self.order);
                high += 1;
            }
            let known = self.order.known(record.block, rival);
            while low < high && self.order.posts(other[low].block) < known {
                self.window.leave(&other[low]);
                low += 1;
            }
            any |= self.tally(record, rival);
        }
        self.add_tallies(start, races);
        any
    }

    fn add_tallies(&mut self, start: u64, races: &mut RaceSet) {
        for (_, tally) in self.tallies.drain() {
            let [earlier, later] = tally.first;
            races.add(earlier, later, Addr(start), tally.instances);
        }
    }

    /// Counts the pairs of a record with what is in the window.
    fn tally(&mut self, record: &Record, rival: u32) -> bool {
        let side = |what: What, thread: u32, position: u64| Side {
            thread: ThreadId(thread),
            site: what.site(),
            kind: what.kind(),
            position: Position(position),
        };
        let position = self.order.start(record.block) + u64::from(record.offset);
        let own = side(record.what, self.order.thread(record.block), position);
        let mut any = false;
        for sliding in self.window.now() {
            let first = *sliding.firsts.front().expect("or it were not there");
            if !own.kind.races_with(sliding.what.kind()) {
                continue;
            }
            any = true;
            // Both touch the unit before as well: counted there.
            if record.previous != NONE && record.previous == sliding.previous {
                continue;
            }
            let theirs = side(sliding.what, rival, first);
            let pair = if own.position < theirs.position {
                [own, theirs]
            } else {
                [theirs, own]
            };
            let tally = self
                .tallies
                .entry((record.what, sliding.what))
                .or_insert(Tally {
                    first: pair,
                    instances: 0,
                });
            tally.instances += u64::from(record.count) * sliding.count;
            let key = |pair: &[Side; 2]| (pair[1].position, pair[0].position);
            if key(&pair) < key(&tally.first) {
                tally.first = pair;
            }
        }
        any
    }
}
