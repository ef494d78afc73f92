//! A run as a trace.

use crate::closeup::{Closeups, Looking, Wanted};
use crate::explain::SyncSummary;
use crate::observer::Observer;
use crate::orders::Orders;
use crate::origins::Origins;
use crate::sites::SiteInfo;
use std::io::Read;
use verdict_detect::SuspectBytes;
use verdict_events::{Addr, Event, Names, SiteId, SyncId, ThreadId, TraceError, TraceSource};
use verdict_stream::StreamReader;

/// Events are handed on in batches of about this many.
const BATCH: usize = 1 << 14;

/// A run as a trace, while it runs.
#[derive(Debug)]
pub struct ProgramTrace<R> {
    from: StreamReader<R>,
    observer: Observer,
    names: ProgramNames,
    over: bool,
}

/// What is left when a run is over.
#[derive(Debug)]
pub struct Seen {
    /// By [`SiteId`].
    pub sites: Vec<SiteInfo>,
    /// What was recognised as synchronisation.
    pub sync: SyncSummary,
    /// Where threads and code come from.
    pub origins: Origins,
    /// Processes that the program started: nothing is known of what they did.
    pub processes: u64,
    atomics: crate::atomics::AtomicPlaces,
}

impl Seen {
    pub(crate) fn of(observer: Observer) -> Self {
        let mut sync = observer.summary.summary();
        sync.atomic_by = observer.code.atomic_by;
        Seen {
            sites: observer.sites.infos,
            sync,
            origins: observer.origins,
            processes: observer.children.processes(),
            atomics: observer.atomics,
        }
    }

    /// True if the program accessed this address by LOCK instructions at some time.
    pub fn is_atomic(&self, address: Addr) -> bool {
        self.atomics.ever(address.0)
    }
}

impl<R: Read> ProgramTrace<R> {
    /// The run that an executor tells through `from`.
    pub fn new(from: R) -> Self {
        ProgramTrace {
            from: StreamReader::new(from),
            observer: Observer::new(),
            names: ProgramNames::default(),
            over: false,
        }
    }

    /// The same, without plain accesses to other bytes than these.
    pub fn only(from: R, suspects: SuspectBytes) -> Self {
        ProgramTrace {
            observer: Observer::only(suspects),
            ..Self::new(from)
        }
    }

    /// The same, all or only some bytes, with a closer look at some events. Ends when these have been seen.
    pub fn looking(from: R, suspects: Option<SuspectBytes>, wanted: Wanted) -> Self {
        ProgramTrace {
            observer: Observer::looking(suspects, wanted),
            ..Self::new(from)
        }
    }

    /// Atomic operations are in these orders.
    #[must_use]
    pub fn with_orders(mut self, orders: Orders) -> Self {
        self.observer.orders = orders;
        self
    }

    /// What a closer look has shown, when all events have been taken.
    pub fn closeups(self) -> Closeups {
        let looking = self.observer.looking;
        looking.map_or_else(Closeups::default, |looking| looking.seen)
    }

    /// What is known when all events have been taken.
    pub fn finish(self) -> Seen {
        Seen::of(self.observer)
    }
}

impl<R: Read> TraceSource for ProgramTrace<R> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        std::mem::swap(batch, &mut self.observer.events);
        while !self.over && batch.len() < BATCH {
            match self.from.next_record() {
                Ok(Some(record)) => {
                    self.observer.record(record);
                    batch.append(&mut self.observer.events);
                    let looking = &self.observer.looking;
                    self.over = looking.as_ref().is_some_and(Looking::is_over);
                }
                Ok(None) => self.over = true,
                Err(error) => {
                    self.over = true;
                    return Err(TraceError::Io {
                        file: "<the executor>".into(),
                        source: std::io::Error::other(error),
                    });
                }
            }
        }
        for info in &self.observer.sites.infos[self.names.sites.len()..] {
            self.names.sites.push(shown(info));
        }
        Ok(())
    }

    fn names(&self) -> &dyn Names {
        &self.names
    }
}

/// Sites are named by module and offset.
#[derive(Clone, Default, Debug)]
pub struct ProgramNames {
    sites: Vec<String>,
}

fn shown(info: &SiteInfo) -> String {
    match &info.place.module {
        Some(module) => format!("{}+{:#x}", module.display(), info.place.offset),
        None => format!("{:#x}", info.place.offset),
    }
}

impl Names for ProgramNames {
    fn thread_name(&self, _: ThreadId) -> Option<&str> {
        None
    }

    fn site_name(&self, id: SiteId) -> Option<&str> {
        self.sites.get(id.0 as usize).map(String::as_str)
    }

    fn location_name(&self, _: Addr) -> Option<&str> {
        None
    }

    fn sync_name(&self, _: SyncId) -> Option<&str> {
        None
    }
}
