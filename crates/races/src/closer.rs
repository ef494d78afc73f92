//! A closer look at the first instance of each race, by running once more: the same run, so the same events at the same
//! positions.

use verdict_detect::{Findings, Race};
use verdict_events::{TraceError, TraceSource};
use verdict_launch::run_until_heard;
use verdict_observe::{Closeups, Followed, Origins, ProgramTrace, Wanted};

use crate::detect::told;
use crate::progress::{Look, Watcher, counted};
use crate::{Detected, ProgramError, Run};

/// What a closer look has shown.
#[derive(Clone, Default, Debug)]
pub struct CloserLook {
    /// The accesses of races.
    pub events: Closeups,
    /// Where threads and code come from.
    pub origins: Origins,
}

/// Runs again, as far as that takes, and looks closely at both accesses of each race. Without races, nothing runs. `watcher` is told
/// how far that is.
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
    let closeups = run_until_heard(&told(&again.config), &again.launch, |told| {
        let told = Followed::new(told, &mut tell);
        let mut trace = ProgramTrace::looking(told, detected.suspects.clone(), wanted);
        read_all(&mut trace).map(|()| trace.closeups())
    })?;
    Ok(CloserLook {
        events: closeups.map_err(|error| ProgramError::Detect(error.into()))?,
        // Later ones than the last race are told of, too.
        origins: detected.seen.origins.clone(),
    })
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
