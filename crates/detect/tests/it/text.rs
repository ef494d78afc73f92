//! Traces as people write them: one event a line, `T1 w x`, `T2 acq m`.
//!
//! `x` is a variable of 8 bytes of its own; `16/4` is four bytes at address 16. A trailing `@13` names the
//! site, which is the line number otherwise. Operations: `r w ar aw rmw fence acq rel racq rrel fork begin end
//! join wait notify enter leave post down alloc free out`; atomics end in a memory order, `ar x acquire`.

use std::collections::HashMap;
use std::fmt::Write;

use verdict_detect::{Algorithm, DetectError, Findings, Keep, PairBy, detect};
use verdict_events::{
    Access, Addr, Event, EventKind, LockMode, MemoryOrder, Names, SiteId, SyncId, ThreadId,
    TraceError, TraceSource,
};

/// Where named variables begin; numbers below are addresses.
const VARIABLES: u64 = 1 << 20;

#[derive(Default)]
pub struct Trace {
    pub events: Vec<Event>,
    threads: Table,
    variables: Table,
    objects: Table,
    sites: Table,
}

#[derive(Default)]
struct Table {
    ids: HashMap<String, u64>,
    names: Vec<String>,
}

impl Table {
    fn id(&mut self, name: &str) -> u64 {
        *self.ids.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(name.to_owned());
            self.names.len() as u64 - 1
        })
    }
}

impl Trace {
    pub fn parse(text: &str) -> Trace {
        let mut trace = Trace::default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        for (number, line) in lines.enumerate() {
            trace.line(number + 1, line);
        }
        trace
    }

    fn line(&mut self, number: usize, line: &str) {
        let (line, site) = match line.split_once('@') {
            Some((line, site)) => (line, site.to_owned()),
            None => (line, number.to_string()),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let argument = words.get(2).copied().unwrap_or("");
        let order = words.get(3).map_or(MemoryOrder::SeqCst, |word| order(word));
        let thread = self.thread(words[0]);
        let kind = match words[1] {
            "r" => EventKind::Read(self.access(argument)),
            "w" => EventKind::Write(self.access(argument)),
            "ar" => EventKind::AtomicLoad(self.access(argument), order),
            "aw" => EventKind::AtomicStore(self.access(argument), order),
            "rmw" => EventKind::AtomicRmw(self.access(argument), order),
            "fence" => EventKind::Fence(self::order(argument)),
            "acq" => EventKind::Acquire(self.object(argument), LockMode::Exclusive),
            "rel" => EventKind::Release(self.object(argument), LockMode::Exclusive),
            "racq" => EventKind::Acquire(self.object(argument), LockMode::Shared),
            "rrel" => EventKind::Release(self.object(argument), LockMode::Shared),
            "fork" => EventKind::Fork(self.thread(argument)),
            "begin" => EventKind::Begin,
            "end" => EventKind::End,
            "join" => EventKind::Join(self.thread(argument)),
            "wait" => EventKind::Wait(self.object(argument)),
            "notify" => EventKind::Notify(self.object(argument)),
            "enter" => EventKind::BarrierEnter(self.object(argument)),
            "leave" => EventKind::BarrierLeave(self.object(argument)),
            "post" => EventKind::SemaphorePost(self.object(argument)),
            "down" => EventKind::SemaphoreWait(self.object(argument)),
            "alloc" | "free" => {
                let Access { addr, size, .. } = self.access(argument);
                let size = u64::from(size);
                if words[1] == "free" {
                    EventKind::Free { addr, size }
                } else {
                    EventKind::Allocate { addr, size }
                }
            }
            "out" => EventKind::Output {
                stream: 1,
                bytes: 1,
            },
            word => panic!("no operation `{word}`"),
        };
        let site = SiteId(self.sites.id(&site) as u32);
        self.events.push(Event { thread, site, kind });
    }

    fn thread(&mut self, name: &str) -> ThreadId {
        ThreadId(self.threads.id(name) as u32)
    }

    fn object(&mut self, name: &str) -> SyncId {
        SyncId(self.objects.id(name))
    }

    fn access(&mut self, text: &str) -> Access {
        let (addr, size) = match text.split_once('/') {
            Some((addr, size)) => (
                addr.parse().expect("an address"),
                size.parse().expect("a size"),
            ),
            None => (VARIABLES + 8 * self.variables.id(text), 8),
        };
        Access {
            addr: Addr(addr),
            size,
            value: None,
        }
    }

    pub fn findings(&self, algorithm: Algorithm) -> Findings {
        findings(&self.events, algorithm, PairBy::Site)
    }
}

fn order(word: &str) -> MemoryOrder {
    match word {
        "relaxed" => MemoryOrder::Relaxed,
        "acquire" => MemoryOrder::Acquire,
        "release" => MemoryOrder::Release,
        "acqrel" => MemoryOrder::AcqRel,
        "seqcst" => MemoryOrder::SeqCst,
        word => panic!("no memory order `{word}`"),
    }
}

impl Names for Trace {
    fn thread_name(&self, id: ThreadId) -> Option<&str> {
        self.threads.names.get(id.0 as usize).map(String::as_str)
    }

    fn site_name(&self, id: SiteId) -> Option<&str> {
        self.sites.names.get(id.0 as usize).map(String::as_str)
    }

    fn location_name(&self, addr: Addr) -> Option<&str> {
        let index = addr.0.checked_sub(VARIABLES)? / 8;
        self.variables.names.get(index as usize).map(String::as_str)
    }

    fn sync_name(&self, id: SyncId) -> Option<&str> {
        self.objects.names.get(id.0 as usize).map(String::as_str)
    }
}

/// Delivers events in batches of a size that is no divisor of anything.
struct InMemory<'a> {
    rest: &'a [Event],
    names: Trace,
}

impl TraceSource for InMemory<'_> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        let (now, rest) = self.rest.split_at(self.rest.len().min(37));
        batch.clear();
        batch.extend_from_slice(now);
        self.rest = rest;
        Ok(())
    }

    fn names(&self) -> &dyn Names {
        &self.names
    }
}

pub fn findings(events: &[Event], algorithm: Algorithm, by: PairBy) -> Findings {
    findings_keeping(Keep::All, events, algorithm, by).expect("all is kept")
}

/// None if the detector was misled.
pub fn findings_keeping(
    keep: Keep,
    events: &[Event],
    algorithm: Algorithm,
    by: PairBy,
) -> Option<Findings> {
    let mut source = InMemory {
        rest: events,
        names: Trace::default(),
    };
    let detector = algorithm.detector_keeping(keep, by);
    match detect(&mut source, vec![detector], &mut |_| {}) {
        Ok(mut found) => Some(found.remove(0)),
        Err(DetectError::Misled) => None,
        Err(problem) => panic!("a trace in memory can be read: {problem}"),
    }
}

/// What a detector says, as a few lines: races, then answers, then the size of the history.
pub fn summary(trace: &Trace, algorithm: Algorithm) -> String {
    let findings = trace.findings(algorithm);
    let mut text = String::new();
    for race in &findings.races {
        let [a, b] = race
            .accesses
            .map(|side| format!("{} {}", side.kind, trace.site(side.site)));
        let locations: Vec<String> = race
            .locations
            .iter()
            .map(|&addr| trace.location(addr))
            .collect();
        writeln!(
            text,
            "{}: {a} / {b} on {}, {} x",
            race.conflict,
            locations.join(" "),
            race.instances
        )
        .unwrap();
    }
    if let Some(history) = findings.history {
        for (addr, answer) in &findings.locations {
            writeln!(text, "{}: {answer}", trace.location(*addr)).unwrap();
        }
        writeln!(text, "kept at most {}", history.segments_max).unwrap();
    }
    if text.is_empty() {
        text.push_str("no races\n");
    }
    text
}

/// One event in the notation of this module, for showing traces that fail.
pub fn show(event: &Event) -> String {
    let access = |a: Access| format!("{}/{}", a.addr, a.size);
    let lower = |order: MemoryOrder| format!("{order:?}").to_lowercase();
    let what = match event.kind {
        EventKind::Read(a) => format!("r {}", access(a)),
        EventKind::Write(a) => format!("w {}", access(a)),
        EventKind::AtomicLoad(a, order) => format!("ar {} {}", access(a), lower(order)),
        EventKind::AtomicStore(a, order) => format!("aw {} {}", access(a), lower(order)),
        EventKind::AtomicRmw(a, order) => format!("rmw {} {}", access(a), lower(order)),
        EventKind::Fence(order) => format!("fence {}", lower(order)),
        EventKind::Acquire(id, LockMode::Exclusive) => format!("acq m{id}"),
        EventKind::Release(id, LockMode::Exclusive) => format!("rel m{id}"),
        EventKind::Acquire(id, LockMode::Shared) => format!("racq m{id}"),
        EventKind::Release(id, LockMode::Shared) => format!("rrel m{id}"),
        EventKind::Fork(child) => format!("fork T{child}"),
        EventKind::Begin => "begin".to_owned(),
        EventKind::End => "end".to_owned(),
        EventKind::Join(child) => format!("join T{child}"),
        EventKind::Wait(id) => format!("wait c{id}"),
        EventKind::Notify(id) => format!("notify c{id}"),
        EventKind::BarrierEnter(id) => format!("enter b{id}"),
        EventKind::BarrierLeave(id) => format!("leave b{id}"),
        EventKind::SemaphorePost(id) => format!("post s{id}"),
        EventKind::SemaphoreWait(id) => format!("down s{id}"),
        EventKind::Allocate { addr, size } => format!("alloc {addr}/{size}"),
        EventKind::Free { addr, size } => format!("free {addr}/{size}"),
        EventKind::Output { .. } => "out".to_owned(),
    };
    format!("T{} {what} @{}", event.thread, event.site)
}
