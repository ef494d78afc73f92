//! What a look at a run is for.

use crate::heap_errors::HeapLook;
use verdict_detect::{SuspectBytes, Suspects};

/// Which accesses become events.
#[derive(Default, Debug)]
pub(crate) enum Looks {
    /// All.
    #[default]
    All,
    /// None: which bytes may race is all that is asked.
    Survey(Box<Suspects>),
    /// Plain ones to bytes that may race, and all others.
    Only(SuspectBytes),
    /// None: whether the heap is used as it should be is all that is asked.
    Heap(Box<HeapLook>),
}
