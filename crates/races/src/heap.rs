//! A run that is looked at for memory errors only.

use verdict_launch::run_told;
use verdict_observe::{HeapUse, heap_use};

use crate::detect::{cannot_follow, told};
use crate::{ProgramError, Run};

/// Runs once and says what was wrong with the use of the heap.
///
/// # Errors
/// When there is no run, or what is told of it makes no sense.
pub fn heap_use_of(run: &Run) -> Result<HeapUse, ProgramError> {
    let (_, heard) = run_told(&told(&run.config), &run.launch, heap_use)?;
    heard.map_err(cannot_follow)
}
