//! Traces to test with.

use std::collections::HashMap;
use std::io::Cursor;

use proptest::prelude::*;
use verdict_events::{
    Access, Addr, Event, EventKind, Format, LockMode, MemoryOrder, NameTable, SiteId, SyncId,
    ThreadId, TraceError, TraceSource, WriteError, create, read_as,
};

/// Everything a source delivers.
pub(crate) fn drain(source: &mut dyn TraceSource) -> Result<Vec<Event>, TraceError> {
    let (mut events, mut batch) = (Vec::new(), Vec::new());
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(events);
        }
        events.append(&mut batch);
    }
}

/// Events and, for each, how it reads with its names.
pub(crate) type Told = (Vec<Event>, Vec<String>);

pub(crate) fn tell(source: &mut dyn TraceSource) -> Result<Told, TraceError> {
    let events = drain(source)?;
    let told = events.iter().map(|event| event.describe(source.names()));
    let told = told.collect();
    Ok((events, told))
}

pub(crate) fn read(format: Format, bytes: &[u8]) -> Result<Told, TraceError> {
    let bytes = Box::new(Cursor::new(bytes.to_vec()));
    tell(&mut *read_as(format, "trace".to_owned(), bytes)?)
}

pub(crate) fn write(
    format: Format,
    events: &[Event],
    names: &NameTable,
) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    let mut writer = create(format, &mut bytes)?;
    writer.write(events, names)?;
    writer.finish(names)?;
    Ok(bytes)
}

/// How much of the event model a format can express.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Expressible {
    Everything,
    Std,
    RoadRunner,
}

fn order() -> impl Strategy<Value = MemoryOrder> {
    prop_oneof![
        Just(MemoryOrder::Relaxed),
        Just(MemoryOrder::Acquire),
        Just(MemoryOrder::Release),
        Just(MemoryOrder::AcqRel),
        Just(MemoryOrder::SeqCst),
    ]
}

fn mode() -> impl Strategy<Value = LockMode> {
    prop_oneof![Just(LockMode::Exclusive), Just(LockMode::Shared)]
}

fn addr() -> impl Strategy<Value = Addr> {
    prop_oneof![0..8u64, 0x60_1000..0x60_1040u64, any::<u64>()].prop_map(Addr)
}

fn access() -> impl Strategy<Value = Access> {
    let size = prop_oneof![Just(1), Just(4), Just(8), 1..=u32::MAX];
    let value = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    (addr(), size, value).prop_map(|(addr, size, value)| Access { addr, size, value })
}

fn small_access() -> impl Strategy<Value = Access> {
    (0..20u64).prop_map(|addr| Access {
        addr: Addr(addr),
        size: 1,
        value: None,
    })
}

fn sync() -> impl Strategy<Value = SyncId> {
    prop_oneof![0..4u64, any::<u64>()].prop_map(SyncId)
}

fn thread() -> impl Strategy<Value = ThreadId> {
    (0..5u32).prop_map(ThreadId)
}

fn any_kind() -> BoxedStrategy<EventKind> {
    prop_oneof![
        access().prop_map(EventKind::Read),
        access().prop_map(EventKind::Write),
        (access(), order()).prop_map(|(a, o)| EventKind::AtomicLoad(a, o)),
        (access(), order()).prop_map(|(a, o)| EventKind::AtomicStore(a, o)),
        (access(), order()).prop_map(|(a, o)| EventKind::AtomicRmw(a, o)),
        order().prop_map(EventKind::Fence),
        (sync(), mode()).prop_map(|(id, m)| EventKind::Acquire(id, m)),
        (sync(), mode()).prop_map(|(id, m)| EventKind::Release(id, m)),
        thread().prop_map(EventKind::Fork),
        Just(EventKind::Begin),
        Just(EventKind::End),
        thread().prop_map(EventKind::Join),
        sync().prop_map(EventKind::Wait),
        sync().prop_map(EventKind::Notify),
        sync().prop_map(EventKind::BarrierEnter),
        sync().prop_map(EventKind::BarrierLeave),
        sync().prop_map(EventKind::SemaphorePost),
        sync().prop_map(EventKind::SemaphoreWait),
        (addr(), any::<u64>()).prop_map(|(addr, size)| EventKind::Allocate { addr, size }),
        (addr(), any::<u64>()).prop_map(|(addr, size)| EventKind::Free { addr, size }),
        (any::<u32>(), any::<u64>())
            .prop_map(|(stream, bytes)| EventKind::Output { stream, bytes }),
    ]
    .boxed()
}

fn common_kind() -> BoxedStrategy<EventKind> {
    let lock = || (0..4u64).prop_map(SyncId);
    prop_oneof![
        3 => small_access().prop_map(EventKind::Read),
        3 => small_access().prop_map(EventKind::Write),
        1 => lock().prop_map(|id| EventKind::Acquire(id, LockMode::Exclusive)),
        1 => lock().prop_map(|id| EventKind::Release(id, LockMode::Exclusive)),
        1 => thread().prop_map(EventKind::Fork),
        1 => thread().prop_map(EventKind::Join),
    ]
    .boxed()
}

fn kind(expressible: Expressible) -> BoxedStrategy<EventKind> {
    match expressible {
        Expressible::Everything => any_kind(),
        Expressible::Std => {
            prop_oneof![8 => common_kind(), 1 => Just(EventKind::Begin), 1 => Just(EventKind::End)]
                .boxed()
        }
        Expressible::RoadRunner => prop_oneof![
            8 => common_kind(),
            1 => small_access().prop_map(|a| EventKind::AtomicLoad(a, MemoryOrder::SeqCst)),
            1 => small_access().prop_map(|a| EventKind::AtomicStore(a, MemoryOrder::SeqCst)),
        ]
        .boxed(),
    }
}

/// Events numbered the way a reader numbers them, and their names.
pub(crate) fn trace(
    expressible: Expressible,
    events_max: usize,
) -> impl Strategy<Value = (Vec<Event>, NameTable)> {
    let event = (thread(), 0..6u32, kind(expressible)).prop_map(|(thread, site, kind)| Event {
        thread,
        site: SiteId(site),
        kind,
    });
    prop::collection::vec(event, 0..events_max).prop_map(move |events| match expressible {
        Expressible::Everything => Renumbered::new(false).renumber(events),
        _ => Renumbered::new(true).renumber(events),
    })
}

/// Numbers threads and sites (and, in formats without addresses, locations and locks) by first appearance.
struct Renumbered {
    objects_too: bool,
    threads: HashMap<u64, u64>,
    sites: HashMap<u64, u64>,
    locations: HashMap<u64, u64>,
    syncs: HashMap<u64, u64>,
}

/// Names with everything that the formats must cope with, where `plain` does not forbid it.
fn name(letter: char, number: u64, plain: bool) -> String {
    match number % 4 {
        0 => format!("{letter}{number}"),
        1 => format!("{letter}0{number}"),
        2 if plain => format!("{letter}é.x[{number}]"),
        2 => format!("{letter}, \"{number}\" é"),
        _ => format!("{letter}{letter}{}", 12_345_678 + number),
    }
}

impl Renumbered {
    fn new(objects_too: bool) -> Self {
        Self {
            objects_too,
            threads: HashMap::new(),
            sites: HashMap::new(),
            locations: HashMap::new(),
            syncs: HashMap::new(),
        }
    }

    fn renumber(mut self, mut events: Vec<Event>) -> (Vec<Event>, NameTable) {
        for event in &mut events {
            event.thread = self.thread(event.thread);
            self.kind(&mut event.kind);
            event.site = SiteId(number(&mut self.sites, event.site.0.into()) as u32);
        }
        (events, self.names())
    }

    fn thread(&mut self, thread: ThreadId) -> ThreadId {
        ThreadId(number(&mut self.threads, thread.0.into()) as u32)
    }

    fn kind(&mut self, kind: &mut EventKind) {
        match kind {
            EventKind::Fork(thread) | EventKind::Join(thread) => *thread = self.thread(*thread),
            EventKind::Read(access)
            | EventKind::Write(access)
            | EventKind::AtomicLoad(access, _)
            | EventKind::AtomicStore(access, _)
            | EventKind::AtomicRmw(access, _) => {
                let id = number(&mut self.locations, access.addr.0);
                if self.objects_too {
                    access.addr = Addr(id);
                }
            }
            EventKind::Acquire(sync, _) | EventKind::Release(sync, _) => {
                let id = number(&mut self.syncs, sync.0);
                if self.objects_too {
                    *sync = SyncId(id);
                }
            }
            _ => {}
        }
    }

    fn names(&self) -> NameTable {
        let mut names = NameTable::new();
        let plain = self.objects_too;
        for thread in 0..self.threads.len() as u64 {
            names.push_thread(&name('T', thread, plain));
        }
        for site in 0..self.sites.len() as u64 {
            names.push_site(&name('s', site, plain));
        }
        for (&old, &new) in sorted(&self.locations) {
            let addr = if plain { new } else { old };
            names.name_location(Addr(addr), &name('V', new, plain));
        }
        for (&old, &new) in sorted(&self.syncs) {
            let id = if plain { new } else { old };
            names.name_sync(SyncId(id), &name('L', new, plain));
        }
        names
    }
}

fn sorted(map: &HashMap<u64, u64>) -> Vec<(&u64, &u64)> {
    let mut pairs: Vec<_> = map.iter().collect();
    pairs.sort();
    pairs
}

fn number(numbers: &mut HashMap<u64, u64>, id: u64) -> u64 {
    let next = numbers.len() as u64;
    *numbers.entry(id).or_insert(next)
}
