//! What an execution does wrong with the heap, in names and lines.

use crate::names::Names;
use verdict_findings as told;
use verdict_observe::HeapError;
use verdict_races::{ProgramError, Run, heap_use_of};

/// Looks at a run for memory errors: each is told once for each place, in the order in which they happened.
///
/// # Errors
/// When there is no run, or what is told of it makes no sense.
pub fn memory_errors(run: &Run) -> Result<Vec<told::Consequence>, ProgramError> {
    let used = heap_use_of(run)?;
    let mut names = Names::default();
    let told = used.errors.iter().map(|error| {
        let mut consequence = told::Consequence {
            kind: told::ConsequenceKind::MemoryError,
            detail: error.detail.clone(),
            thread: None,
            stack: Vec::new(),
            cycle: Vec::new(),
            block: None,
        };
        tell_memory_error(&mut consequence, error, &mut names);
        consequence
    });
    Ok(told.collect())
}

/// Where a memory error is, and what becomes of the block.
pub(crate) fn tell_memory_error(
    told: &mut told::Consequence,
    error: &HeapError,
    names: &mut Names,
) {
    told.thread = Some(error.thread.0);
    told.stack = names.places(&error.stack);
    told.block = Some(told::MisusedBlock {
        size: error.block_len,
        allocated_at: names.places(&error.allocated_at),
        freed_at: names.places(&error.freed_at),
    });
}
