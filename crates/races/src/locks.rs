//! The order in which a real program takes its locks.

use verdict_detect::{LockCycle, LockOrder};
use verdict_events::TraceSource;
use verdict_launch::{LaunchOptions, run_told};
use verdict_observe::{ProgramTrace, SiteInfo};
use verdict_protocol::{AccessLog, ExecutorConfig};

use crate::ProgramError;

/// The cycles of locks that one run lets expect, and the sites that they name, by id.
///
/// # Errors
/// When there is no run, or what is told of it makes no sense.
pub fn lock_cycles(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
) -> Result<(Vec<LockCycle>, Vec<SiteInfo>), ProgramError> {
    let config = ExecutorConfig {
        accesses: AccessLog::Tell,
        ..config.clone()
    };
    let (_, heard) = run_told(&config, launch, |told| {
        let mut trace = ProgramTrace::new(told);
        let mut order = LockOrder::default();
        let mut batch = Vec::new();
        loop {
            trace.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok((order.cycles(), trace.finish().sites));
            }
            batch.iter().for_each(|event| order.event(event));
        }
    })?;
    heard.map_err(|error: verdict_events::TraceError| ProgramError::Detect(error.into()))
}
