//! One instance of a race: the primary stands before it, and copies of it try what may come next.

use crate::alternates::{Try, evidence, explored, is_enforced, judge, merge, tries};
use crate::habit::of_segments;
use crate::instances::Tried;
use crate::memory::HeapLooks;
use crate::primary::{PRIMARY_MAX, run_copies};
use crate::quiet::Show;
use crate::state::{Came, came};
use crate::{
    Class, ClassifyError, Instance, Options, OutputDifference, Primary, ReplayOutcome, Verdict,
};
use std::path::{Path, PathBuf};
use verdict_explore::SegmentEnd;
use verdict_launch::{Copied, Explorer, Request};
use verdict_protocol::RunSchedule;

/// What shows most verdicts.
pub(crate) const TURNED: Try = Try::Alternate(None);

/// What becomes of memory that the program frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freed {
    /// The allocator hands it out again, as it does.
    HandedOut,
    /// The allocator does not get it.
    Withheld,
}

/// A file that cannot be removed does no harm.
pub(crate) fn remove(recording: &Path) {
    let _ = std::fs::remove_file(recording);
}

/// The primary, standing before an instance.
pub(crate) struct At<'a> {
    pub(crate) explorer: &'a mut Explorer,
    pub(crate) primary: &'a Primary,
    pub(crate) options: &'a Options,
    pub(crate) instance: &'a Instance,
    pub(crate) tried: &'a Tried,
    /// Who looks at recordings of alternates.
    pub(crate) heap: &'a mut HeapLooks,
    /// The race's index.
    pub(crate) race: usize,
}

impl At<'_> {
    fn request(&self, tried: Try, recording: Option<PathBuf>) -> Request {
        tried.request(self.options, self.primary, self.instance, recording)
    }

    fn run(&mut self, requests: Vec<Request>) -> Result<Vec<Copied>, ClassifyError> {
        run_copies(self.explorer, self.options, requests)
    }

    pub(crate) fn run_one(&mut self, tried: Try) -> Result<Copied, ClassifyError> {
        let request = self.request(tried, None);
        let copied = self.run(vec![request])?.pop();
        Ok(copied.unwrap_or(Copied::TimedOut))
    }

    /// Runs something into a file.
    pub(crate) fn run_recorded(
        &mut self,
        tried: Try,
        freed: Freed,
        file: &Path,
    ) -> Result<Copied, ClassifyError> {
        let mut request = self.request(tried, Some(file.to_owned()));
        if freed == Freed::Withheld {
            request.withholding.clone_from(&self.options.releasing);
        }
        let copied = self.run(vec![request])?.pop();
        Ok(copied.unwrap_or(Copied::TimedOut))
    }

    pub(crate) fn try_each(&mut self, tries: &[Try]) -> Result<Vec<(Try, Copied)>, ClassifyError> {
        self.try_each_recording(tries, None)
    }

    /// The same; the other order, which most verdicts are shown by, goes into a file at once.
    fn try_each_recording(
        &mut self,
        tries: &[Try],
        turned: Option<&Path>,
    ) -> Result<Vec<(Try, Copied)>, ClassifyError> {
        let requests = tries
            .iter()
            .map(|tried| {
                let file = turned.filter(|_| *tried == TURNED);
                self.request(*tried, file.map(Path::to_owned))
            })
            .collect();
        let results = self.run(requests)?;
        Ok(tries.iter().copied().zip(results).collect())
    }

    /// Runs what shows a verdict once more, for the record. Of output that differs it is asked who wrote it, there and in the primary.
    fn record(&mut self, show: &Show, verdict: &mut Verdict) -> Result<(), ClassifyError> {
        let file = Some(show.file.clone());
        let mut request = show.request(show.manner, self.options, self.primary, file);
        let differs = verdict.class == Some(Class::OutputDiffers);
        let output = verdict.output.as_ref().filter(|_| differs);
        request.writer_of = output.and_then(OutputDifference::place);
        let again = request.writer_of.map(|place| Request {
            writer_of: Some(place),
            instructions_max: Some(PRIMARY_MAX),
            ..Request::new(RunSchedule::Same)
        });
        let copies = self.run([request].into_iter().chain(again).collect())?;
        let mut writers = copies.into_iter().map(|copied| match copied {
            Copied::Explored(exploration) => exploration.writer,
            _ => None,
        });
        let (alternate, primary) = (writers.next().flatten(), writers.next().flatten());
        if let Some(output) = &mut verdict.output {
            output.writers = [primary, alternate];
        }
        Ok(())
    }

    /// Answers with what shows the verdict, if that is news.
    pub(crate) fn try_all(
        &mut self,
        verdict: &mut Verdict,
        file: PathBuf,
    ) -> Result<Option<Show>, ClassifyError> {
        let segments = [
            Try::RecordedSegments(None, 0),
            Try::SwappedSegments(None, 0),
        ];
        let orders = self.try_each(&segments)?;
        let compared = match orders.as_slice() {
            [(_, recorded), (_, swapped)] => self.replay(recorded, swapped)?,
            _ => None,
        };
        let habit = compared.as_ref().and_then(|compared| {
            let ends =
                [0, 1].map(|nth: usize| orders.get(nth).and_then(|(_, copied)| ends(copied)));
            of_segments(self.instance, compared, ends, &self.options.locking)
        });
        let mut recorded = file.with_extension("turned.vrec");
        // What leaves the same state behind leads to the same: one such instance of a race is followed to the end.
        let same = compared.as_ref().map(|compared| compared.outcome);
        let known = verdict.class.is_some() && same == Some(ReplayOutcome::NoStateChange);
        let known = known && !self.tried.leads;
        let results = match known || !self.options.consequences {
            true => Vec::new(),
            false => {
                let tries = tries(self.options, self.instance);
                self.try_each_recording(&tries, Some(&recorded))?
            }
        };
        let mut judged = judge(self.primary, self.instance, compared, &results);
        judged.verdict.habit = judged.verdict.habit.max(habit);
        let possible = match judged.verdict.class {
            Some(class) => class != Class::SingleOrdering,
            None => judged.replay != Some(ReplayOutcome::ReplayFailure),
        };
        if self.tried.besides && !possible {
            remove(&recorded);
            verdict.instances.not_tried += 1;
            return Ok(None);
        }
        let is_news = verdict
            .class
            .is_none_or(|class| judged.verdict.class < Some(class));
        let shown_by = judged.shown_by.filter(|_| is_news);
        let turned = results
            .iter()
            .find(|(tried, _)| *tried == TURNED)
            .and_then(|(_, copied)| explored(copied))
            .filter(|run| is_enforced(run))
            .map(|run| run.preemptions);
        let exploration = results
            .into_iter()
            .find_map(|(tried, copied)| match copied {
                Copied::Explored(run) if Some(tried) == shown_by => Some((tried, run)),
                _ => None,
            });
        let instance = self.instance.clone();
        let show = exploration.map(|(tried, run)| Show::new(tried, instance, file, run));
        if let Some(show) = &show {
            let found = &mut judged.verdict;
            let is_recorded = show.tried == TURNED && found.class != Some(Class::OutputDiffers);
            if is_recorded && std::fs::rename(&recorded, &show.file).is_ok() {
                recorded.clone_from(&show.file);
            } else {
                self.record(show, found)?;
            }
            found.evidence = evidence(show.file.clone(), show.preemptions, self.primary, found);
        }
        let worst = Some(Class::SpecViolated);
        if let Some(turned) = turned.filter(|_| verdict.class != worst)
            && judged.verdict.class != worst
        {
            self.look_at_heap(turned, &recorded, &mut judged.verdict)?;
        }
        let mut evidence = judged.verdict.evidence.iter();
        let is_shown = show.as_ref().is_some_and(|show| show.file == recorded);
        if !is_shown && !evidence.any(|shown| shown.path == recorded) {
            remove(&recorded);
        }
        merge(verdict, judged);
        Ok(show)
    }
}

/// Where two segments ended, in the order of the accesses.
fn ends(copied: &Copied) -> Option<[SegmentEnd; 2]> {
    match came(copied) {
        Came::ToTheEnd { ends, .. } => Some(ends),
        _ => None,
    }
}
