//! Memory errors that nothing comes of: freed blocks that are still used, accesses behind the end of a block.
//!
//! The recording of an alternate is replayed with every access observed, as detectors do it. What it does wrong with the heap and
//! the recorded execution does not is the race's doing; and so is what the recorded execution does wrong and the alternate does
//! not. Whether it is for the order alone, the recorded order says, with both accesses as close together as possible.

use crate::alternates::{Try, evidence};
use crate::primary::{At, TURNED};
use crate::{Class, ClassifyError, Primary, Shown, Verdict};
use std::path::Path;
use verdict_confirm::{Ended, EndedKind};
use verdict_launch::LaunchOptions;
use verdict_observe::{HeapError, HeapUse};
use verdict_protocol::ExecutorConfig;
use verdict_races::{heap_use_of, replay_of};

/// Alternates of one race that are looked at.
const LOOKS_MAX: u32 = 2;
/// Instructions of a program whose alternates are looked at: it takes several times as long as the program.
const INSTRUCTIONS_MAX: u64 = 1_000_000_000;

/// A memory error that a race leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryError {
    /// What and where.
    pub error: HeapError,
    /// It happens in the recorded order, and not in the other one.
    pub in_recorded: bool,
}

/// Looks at recordings for memory errors.
pub(crate) struct HeapLooks {
    config: ExecutorConfig,
    launch: LaunchOptions,
    /// What the primary does, once somebody has asked.
    recorded: Option<HeapUse>,
    /// By the race's index.
    looks: Vec<u32>,
}

impl HeapLooks {
    pub(crate) fn new(config: &ExecutorConfig, launch: &LaunchOptions, races: usize) -> Self {
        HeapLooks {
            config: config.clone(),
            launch: launch.clone(),
            recorded: None,
            looks: vec![0; races],
        }
    }

    /// True if one more alternate of a race shall be looked at. Errors are news in a program that uses the heap at all.
    pub(crate) fn wants_more(&mut self, race: usize, primary: &Primary) -> bool {
        if self.looks[race] >= LOOKS_MAX || is_too_long(primary) {
            return false;
        }
        self.looks[race] += 1;
        self.recorded(primary).blocks > 0
    }

    /// What a recorded execution does wrong with the heap: nothing, where it cannot be repeated.
    pub(crate) fn errors(&self, recording: &Path) -> Vec<HeapError> {
        self.look(recording)
            .map_or_else(Vec::new, |used| used.errors)
    }

    /// The first error of an alternate that the primary does not have, or else the first one of the primary that the alternate does
    /// not have.
    pub(crate) fn difference(
        &mut self,
        primary: &Primary,
        alternate: &Path,
    ) -> Option<MemoryError> {
        let now = self.look(alternate)?.errors;
        let recorded = &self.recorded(primary).errors;
        let news = now.iter().find(|error| !has(recorded, error));
        let avoided = recorded.iter().find(|error| !has(&now, error));
        let found = news.or(avoided)?;
        Some(MemoryError {
            error: found.clone(),
            in_recorded: news.is_none(),
        })
    }

    fn recorded(&mut self, primary: &Primary) -> &HeapUse {
        if self.recorded.is_none() {
            self.recorded = Some(self.look(&primary.recording).unwrap_or_default());
        }
        self.recorded.get_or_insert_default()
    }

    fn look(&self, recording: &Path) -> Option<HeapUse> {
        let run = replay_of(&self.config, &self.launch, recording).ok()?;
        heap_use_of(&run).ok()
    }
}

/// True if alternates of the program are not looked at.
pub(crate) fn is_too_long(primary: &Primary) -> bool {
    primary.instructions > INSTRUCTIONS_MAX
}

/// True if the same is done wrong in the same place.
pub(crate) fn has(errors: &[HeapError], error: &HeapError) -> bool {
    errors
        .iter()
        .any(|one| (one.kind, one.pc) == (error.kind, error.pc))
}

impl At<'_> {
    /// Looks at the recording of the other order for a memory error, and makes the verdict one of it where there is one.
    pub(crate) fn look_at_heap(
        &mut self,
        preemptions: u64,
        recording: &Path,
        verdict: &mut Verdict,
    ) -> Result<(), ClassifyError> {
        if is_too_long(self.primary) {
            verdict
                .not_covered
                .push("memory errors were not looked for: the program runs for too long".into());
        }
        if !self.heap.wants_more(self.race, self.primary) {
            return Ok(());
        }
        let found = self.heap.difference(self.primary, recording);
        let late = match &found {
            Some(found) => self.is_in_late(&found.error, recording)?,
            None => false,
        };
        // What the recorded execution does wrong is the order's doing if keeping the order keeps it.
        if let Some(found) = found.filter(|found| late || !found.in_recorded) {
            let either_way = late && !found.in_recorded;
            self.tell_memory_error(found, either_way, verdict);
            verdict.evidence = evidence(recording.into(), preemptions, self.primary, verdict);
        }
        Ok(())
    }

    /// True if the same goes wrong where the order is kept.
    fn is_in_late(&mut self, error: &HeapError, beside: &Path) -> Result<bool, ClassifyError> {
        let file = beside.with_extension("late");
        self.run_recorded(Try::Late, &file)?;
        let errors = self.heap.errors(&file);
        let _ = std::fs::remove_file(file);
        Ok(has(&errors, error))
    }

    fn tell_memory_error(&self, found: MemoryError, either_way: bool, verdict: &mut Verdict) {
        let ended = Ended {
            kind: EndedKind::MemoryError,
            detail: found.error.detail.clone(),
        };
        verdict.class = Some(Class::SpecViolated);
        verdict.otherwise = None;
        verdict.either_way = either_way.then(|| ended.clone());
        verdict.consequence = Some(ended);
        verdict.memory = Some(Box::new(found));
        verdict.place = None;
        verdict.threads = Vec::new();
        verdict.looping = Vec::new();
        verdict.shown = Some(Shown {
            instance: self.instance.clone(),
            order: TURNED.order(),
        });
    }
}
