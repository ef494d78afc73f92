//! What a look at a run is for.

use crate::heap_errors::HeapLook;
use crate::watched::Watched;
use verdict_detect::Suspects;

/// Which accesses become events.
#[derive(Default, Debug)]
pub(crate) enum Looks {
    /// All.
    #[default]
    All,
    /// None: which bytes may race is all that is asked.
    Survey(Box<Suspects>),
    /// Plain ones to bytes that may race, and all others.
    Only(Box<Watched>),
    /// None: whether the heap is used as it should be is all that is asked.
    Heap(Box<HeapLook>),
}
