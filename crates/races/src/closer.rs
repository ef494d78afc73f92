//! A closer look at the first instance of each race, by running once more: the same run, so the same events at the same
//! positions.

use verdict_detect::{Findings, Race};
use verdict_events::{TraceError, TraceSource};
use verdict_launch::run_told;
use verdict_observe::{CloserLook, ProgramTrace, Wanted, Watched};

use crate::detect::told;
use crate::progress::{Look, Watcher, counted};
use crate::{Detected, ProgramError, Run};

/// Runs again and looks closely at both accesses of each race. Without races, nothing runs. `watcher` is told how far that is.
///
/// # Errors
/// When there is no run, or what is told of it makes no sense.
pub fn look_closer(
    again: &Run,
    detected: &Detected,
    watcher: &mut Watcher<'_>,
) -> Result<CloserLook, ProgramError> {
    let wanted = wanted(&detected.findings);
    if wanted.is_empty() {
        return Ok(CloserLook::default());
    }
    let mut tell = counted(Look::Closer, detected.instructions(), watcher);
    let (_, look) = run_told(&told(&again.config), &again.launch, |told| {
        let told = Watched::new(told, &mut tell);
        let mut trace = ProgramTrace::looking(told, detected.suspects.clone(), wanted);
        read_all(&mut trace).map(|()| trace.closer_look())
    })?;
    look.map_err(|error| ProgramError::Detect(error.into()))
}

fn read_all(trace: &mut dyn TraceSource) -> Result<(), TraceError> {
    let mut batch = Vec::new();
    loop {
        trace.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
    }
}

fn wanted(findings: &[Findings]) -> Wanted {
    let races = findings.iter().flat_map(|findings| &findings.races);
    races.flat_map(positions).collect()
}

fn positions(race: &Race) -> impl Iterator<Item = (u64, verdict_events::Addr)> + '_ {
    let address = race.locations.first().copied();
    race.accesses
        .iter()
        .filter_map(move |side| Some((side.position.0, address?)))
}
