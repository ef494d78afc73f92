//! Traces in memory, and what the detectors say of them.

use verdict_blocks::{BuildOptions, DetectOptions, Index, Memory, Store, build, detect};
use verdict_detect::{Algorithm, Findings, PairBy};
use verdict_events::{Event, NameTable, Names, TraceError, TraceSource};

pub struct Events {
    events: Vec<Event>,
    names: NameTable,
}

pub fn source(events: &[Event]) -> Events {
    Events {
        events: events.to_vec(),
        names: NameTable::new(),
    }
}

impl TraceSource for Events {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        std::mem::swap(batch, &mut self.events);
        Ok(())
    }

    fn names(&self) -> &dyn Names {
        &self.names
    }
}

/// What `hb` says, but for its name.
pub fn hb(events: &[Event], by: PairBy) -> Findings {
    let mut source = source(events);
    let detectors = vec![Algorithm::Hb.detector(by)];
    let mut found = verdict_detect::detect(&mut source, detectors, &mut |_| {}).unwrap();
    let mut found = found.remove(0);
    found.algorithm = Algorithm::Blocks;
    found
}

pub fn built(events: &[Event], options: &BuildOptions) -> Memory {
    let mut memory = Memory::default();
    build(&mut source(events), &mut memory, options, &mut |_| {}).unwrap();
    memory
}

pub fn blocks(store: &dyn Store, options: &DetectOptions) -> Findings {
    let index = Index::read(store).unwrap();
    detect(store, &index, options, &|_| {}).unwrap()
}
