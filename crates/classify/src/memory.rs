//! Memory errors that nothing comes of: freed blocks that are still used, accesses behind the end of a block.
//!
//! The recording of an alternate is replayed with every access observed, as detectors do it. What it does wrong with the heap and
//! the recorded execution does not is the race's doing; and so is what the recorded execution does wrong and the alternate does
//! not. Whether it is for the order alone, the recorded order says, with both accesses as close together as possible.
//!
//! Who uses a freed block that somebody else was given since looks like its owner. So where memory is handed out again, the
//! alternate runs once more with freed blocks withheld from the allocator, and is looked at, too. What it does wrong then is the
//! race's doing if the recorded order does not do it, with blocks withheld as well.

use crate::alternates::{Try, evidence, is_enforced};
use crate::at::{At, Freed, TURNED, remove};
use crate::{Class, ClassifyError, Primary, Shown, Verdict};
use std::path::Path;
use verdict_confirm::{Ended, EndedKind};
use verdict_launch::{Copied, LaunchOptions};
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

/// What is said of an error that is seen only while freed memory is not handed out again.
const WITHHELD: &str = "seen with freed memory withheld from the allocator";

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

    /// The first error of an alternate that the primary does not have, or else the first one of the primary that the alternate does
    /// not have.
    fn difference(&mut self, primary: &Primary, alternate: &HeapUse) -> Option<MemoryError> {
        let recorded = &self.recorded(primary).errors;
        let now = &alternate.errors;
        let news = now.iter().find(|error| !has(recorded, error));
        let avoided = recorded.iter().find(|error| !has(now, error));
        let found = news.or(avoided)?;
        Some(MemoryError {
            error: found.clone(),
            in_recorded: news.is_none(),
        })
    }

    fn recorded(&mut self, primary: &Primary) -> &HeapUse {
        if self.recorded.is_none() {
            self.recorded = Some(self.look(&primary.recording));
        }
        self.recorded.get_or_insert_default()
    }

    /// What a recorded execution does with the heap: nothing, where it cannot be repeated.
    fn look(&self, recording: &Path) -> HeapUse {
        let run = replay_of(&self.config, &self.launch, recording).ok();
        run.and_then(|run| heap_use_of(&run).ok())
            .unwrap_or_default()
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
        let used = self.heap.look(recording);
        let found = self.heap.difference(self.primary, &used);
        let late = match &found {
            Some(found) => self.is_in_late(&found.error, Freed::HandedOut, recording)?,
            None => false,
        };
        // What the recorded execution does wrong is the order's doing if keeping the order keeps it.
        if let Some(found) = found.filter(|found| late || !found.in_recorded) {
            let either_way = late && !found.in_recorded;
            self.tell_memory_error(found, either_way, verdict);
            verdict.evidence = evidence(recording.into(), preemptions, self.primary, verdict);
            return Ok(());
        }
        match used.reused {
            0 => Ok(()),
            _ => self.look_at_withheld(recording, verdict),
        }
    }

    /// The same of the other order with freed memory withheld.
    fn look_at_withheld(
        &mut self,
        beside: &Path,
        verdict: &mut Verdict,
    ) -> Result<(), ClassifyError> {
        let file = beside.with_extension("withheld.vrec");
        let preemptions = match self.run_recorded(TURNED, Freed::Withheld, &file)? {
            Copied::Explored(run) if is_enforced(&run) => Some(run.preemptions),
            _ => None,
        };
        let errors = match preemptions {
            Some(_) => self.heap.look(&file).errors,
            None => Vec::new(),
        };
        let recorded = &self.heap.recorded(self.primary).errors;
        let news = errors.into_iter().find(|error| !has(recorded, error));
        if let (Some(mut error), Some(preemptions)) = (news, preemptions)
            && !self.is_in_late(&error, Freed::Withheld, &file)?
        {
            error.detail = format!("{} ({WITHHELD})", error.detail);
            let found = MemoryError {
                error,
                in_recorded: false,
            };
            self.tell_memory_error(found, false, verdict);
            verdict.evidence = evidence(file, preemptions, self.primary, verdict);
        } else {
            remove(&file);
        }
        Ok(())
    }

    /// True if the same goes wrong where the order is kept.
    fn is_in_late(
        &mut self,
        error: &HeapError,
        freed: Freed,
        beside: &Path,
    ) -> Result<bool, ClassifyError> {
        let file = beside.with_extension("late");
        self.run_recorded(Try::Late, freed, &file)?;
        let errors = self.heap.look(&file).errors;
        remove(&file);
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
