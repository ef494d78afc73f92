//! Steers runs to the races of a document.

use crate::Modules;
use crate::deadlocks;
use crate::lines::{self, LineError, LinePair, LineSite, LineTriple, SourceLine};
use crate::names::Names;
use std::collections::BTreeSet;
use std::path::Path;
use verdict_confirm::{
    Aim, Candidate, ConfirmError, EndedKind, Options, Progress, SeenError, confirm, modules,
};
use verdict_findings::{
    Access, AccessKind, Confirmation, Conflict, ConsequenceKind, CoverageNote, ObservedError,
    ProgramFindings, Race, Schema, Variable, Verdict,
};
use verdict_launch::LaunchOptions;
use verdict_protocol::{Bytes, ExecutorConfig};
use verdict_symbolize::Symbolizer;

/// How runs are made, and who hears of them.
pub struct Confirming<'a> {
    /// The program.
    pub config: &'a ExecutorConfig,
    /// How it is launched.
    pub launch: &'a LaunchOptions,
    /// How many runs, and how.
    pub options: &'a Options,
    /// Takes recordings.
    pub folder: &'a Path,
    /// Hears of every run: the race's id, and how far its runs are.
    pub progress: &'a mut dyn FnMut(&str, Progress),
}

/// Races whose sites are occasions to switch while runs are steered to another: each costs a stop every time.
const RACES_MAX: usize = 16;

/// Why a pair of lines could not be confirmed.
#[derive(thiserror::Error, Debug)]
pub enum PairError {
    /// The program could not be run.
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    /// The lines are no sites.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Confirms every race of the document that `wanted` names, and writes into it what came of each. Answers with what all runs cost,
/// as [`Options::cost_max`] counts it.
pub fn confirm_findings(
    findings: &mut ProgramFindings,
    confirming: &mut Confirming<'_>,
    wanted: &dyn Fn(&Race) -> bool,
) -> Result<u64, ConfirmError> {
    findings.schema = Schema::Verdicts1;
    let places = confirming.places()?;
    let known = findings
        .races
        .iter()
        .filter_map(|race| sites(&places, race));
    let others = known.take(RACES_MAX).flatten().flatten().collect();
    let mut candidates = Vec::new();
    for (index, race) in findings.races.iter().enumerate() {
        if !wanted(race) {
            continue;
        }
        let Some([first, second]) = sites(&places, &exact(race)) else {
            continue;
        };
        let candidate = Candidate {
            name: race.id.clone(),
            first,
            second,
            aim: Aim::Race,
            further: Vec::new(),
            bytes: bytes(race),
            plain: race.accesses.iter().all(|access| !access.atomic),
        };
        candidates.push((index, candidate));
    }
    confirming.all(findings, candidates, &places, others)
}

/// Confirms pairs of lines that somebody suspects: each is added to the document as a race, with what came of it.
pub fn confirm_pairs(
    findings: &mut ProgramFindings,
    confirming: &mut Confirming<'_>,
    pairs: &[LinePair],
) -> Result<(), PairError> {
    findings.schema = Schema::Verdicts1;
    let places = confirming.places()?;
    let mut symbolizer = Symbolizer::default();
    let mut candidates = Vec::new();
    for pair in pairs {
        let LinePair([first, second]) = pair;
        let sites = [
            lines::site(&places, &mut symbolizer, first)?,
            lines::site(&places, &mut symbolizer, second)?,
        ];
        let candidate = Candidate {
            name: pair.to_string(),
            first: sites[0].pcs.clone(),
            second: sites[1].pcs.clone(),
            aim: Aim::Race,
            further: Vec::new(),
            bytes: Vec::new(),
            plain: false,
        };
        let both = [&sites[0], &sites[1]];
        let mut race = suspected(pair.to_string(), [first, second], both, &mut symbolizer);
        if both.iter().all(|site| site.only_reads) {
            race.verdict = Some(refuted());
        } else {
            candidates.push((findings.races.len(), candidate));
        }
        findings.races.push(race);
    }
    let pairs = candidates.iter().take(RACES_MAX);
    let others = pairs
        .flat_map(|(_, candidate)| candidate.watched())
        .collect();
    confirming.all(findings, candidates, &places, others)?;
    Ok(())
}

/// Steers to atomicity violations that somebody suspects: each is added to the document as a race of its second and
/// third line, with what came of it.
pub fn confirm_triples(
    findings: &mut ProgramFindings,
    confirming: &mut Confirming<'_>,
    triples: &[LineTriple],
) -> Result<(), PairError> {
    findings.schema = Schema::Verdicts1;
    let places = confirming.places()?;
    let mut symbolizer = Symbolizer::default();
    let mut candidates = Vec::new();
    for triple in triples {
        let LineTriple([first, second, third]) = triple;
        let mut site = |line| lines::site(&places, &mut symbolizer, line);
        let (before, after, between) = (site(first)?, site(second)?, site(third)?);
        let candidate = Candidate {
            name: triple.to_string(),
            first: before.pcs,
            second: after.pcs.clone(),
            aim: Aim::Atomicity,
            further: vec![between.pcs.clone()],
            bytes: Vec::new(),
            plain: false,
        };
        candidates.push((findings.races.len(), candidate));
        let name = triple.to_string();
        let lines = [second, third];
        let mut race = suspected(name, lines, [&after, &between], &mut symbolizer);
        race.why_not_ordered = Some(format!(
            "{first} and {second} of one thread are thought to belong together; {third} of another was steered to come \
             between"
        ));
        findings.races.push(race);
    }
    confirming.all(findings, candidates, &places, BTreeSet::new())?;
    Ok(())
}

/// A race that nobody has seen, as the document has it.
fn suspected(
    id: String,
    lines: [&SourceLine; 2],
    sites: [&LineSite; 2],
    symbolizer: &mut Symbolizer,
) -> Race {
    let mut access = |line: &SourceLine, site: &LineSite| {
        let (module, offset) = &site.place;
        let location = symbolizer.at_file_offset(module, *offset);
        let source = location.source();
        let file = source.map_or(line.file.display().to_string(), |found| found.file.clone());
        Access {
            access: if site.writes {
                AccessKind::Write
            } else {
                AccessKind::Read
            },
            function: location.function().map(|function| function.name.clone()),
            file: Some(file),
            line: Some(line.line),
            module: module.display().to_string(),
            offset: *offset,
            ..Access::default()
        }
    };
    let accesses = [access(lines[0], sites[0]), access(lines[1], sites[1])];
    Race {
        id,
        conflict: conflict([sites[0].writes, sites[1].writes]),
        accesses,
        variable: Variable::default(),
        address: 0,
        instances: 0,
        found_by: vec!["user".to_owned()],
        why_not_ordered: None,
        cluster: None,
        suppressed: None,
        verdict: None,
    }
}

/// The only thing that can be said of all executions: two reads never race, and the code of both lines is known.
fn refuted() -> Verdict {
    Verdict {
        confirmed: Some(false),
        confirmation: Some(Confirmation {
            refuted: Some("neither line writes anything, and calls nothing that could".to_owned()),
            ..Confirmation::default()
        }),
        ..Verdict::default()
    }
}

impl Confirming<'_> {
    /// Steers to each candidate.
    pub(crate) fn runs(
        &mut self,
        candidates: &[Candidate],
        places: &Modules,
        other_sites: BTreeSet<u64>,
    ) -> Result<Vec<verdict_confirm::Confirmation>, ConfirmError> {
        let options = Options {
            switch_points: places.synchronising(),
            freeing: places.freeing(),
            other_sites: other_sites.into_iter().collect(),
            ..self.options.clone()
        };
        let told = &mut |index: usize, made| (self.progress)(&candidates[index].name, made);
        let (_, confirmations) = confirm(
            self.config,
            self.launch,
            candidates,
            &options,
            self.folder,
            told,
        )?;
        Ok(confirmations)
    }

    pub(crate) fn places(&self) -> Result<Modules, ConfirmError> {
        let mapped = modules(self.config, self.launch, self.folder)?;
        Ok(Modules::new(mapped))
    }

    fn all(
        &mut self,
        findings: &mut ProgramFindings,
        candidates: Vec<(usize, Candidate)>,
        places: &Modules,
        other_sites: BTreeSet<u64>,
    ) -> Result<u64, ConfirmError> {
        if candidates.is_empty() {
            return Ok(0);
        }
        let (indices, candidates): (Vec<usize>, Vec<Candidate>) = candidates.into_iter().unzip();
        let confirmations = self.runs(&candidates, places, other_sites)?;
        let mut symbols = Names::default();
        for (index, confirmation) in indices.into_iter().zip(&confirmations) {
            write_down(findings, index, confirmation, &mut symbols);
        }
        Ok(confirmations.iter().map(|one| one.cost).sum())
    }
}

fn write_down(
    findings: &mut ProgramFindings,
    index: usize,
    confirmation: &verdict_confirm::Confirmation,
    symbols: &mut Names,
) {
    let race = &mut findings.races[index];
    if race.address == 0 {
        fill_in(race, confirmation, symbols);
    }
    let verdict = race.verdict.get_or_insert_with(Verdict::default);
    verdict.confirmed = Some(confirmation.hits > 0);
    let stacks = confirmation.faced.iter().flat_map(|faced| faced.iter());
    let stacks = stacks.map(|place| symbols.stack(place)).collect();
    verdict.confirmation = Some(Confirmation {
        runs: u64::from(confirmation.runs),
        hits: u64::from(confirmation.hits),
        seed: confirmation.seed,
        refuted: None,
        stacks,
        errors: confirmation
            .errors
            .iter()
            .map(|error| observed(error, symbols))
            .collect(),
    });
    if let Some(recording) = &confirmation.recording {
        verdict.evidence.push(recording.display().to_string());
    }
    if confirmation.unknown > 0 {
        findings.coverage.push(CoverageNote {
            stage: "confirm".into(),
            what: format!(
                "{} of {} runs for {} were lost or ran for too long",
                confirmation.unknown, confirmation.runs, findings.races[index].id
            ),
            help: None,
        });
    }
}

/// Says of a race that nobody had seen before what its first run showed.
fn fill_in(race: &mut Race, confirmation: &verdict_confirm::Confirmation, symbols: &mut Names) {
    let (Some(facing), Some(faced)) = (&confirmation.facing, &confirmation.faced) else {
        return;
    };
    race.address = facing.address;
    race.variable.name = symbols.variable_if_known(&faced[0].modules, facing.address);
    let (waiting, arrived) = (
        (facing.waiting.0, facing.waiting_writes),
        (facing.arrived.0, facing.arrived_writes),
    );
    let sides = if confirmation.waiting_is_first {
        [waiting, arrived]
    } else {
        [arrived, waiting]
    };
    for (access, (thread, writes)) in race.accesses.iter_mut().zip(sides) {
        access.thread = thread;
        access.access = if writes {
            AccessKind::Write
        } else {
            AccessKind::Read
        };
    }
    race.conflict = conflict(sides.map(|(_, writes)| writes));
}

fn conflict(writes: [bool; 2]) -> Conflict {
    match writes {
        [true, false] => Conflict::Flow,
        [false, _] => Conflict::Anti,
        [true, true] => Conflict::Output,
    }
}

/// The instructions of both sides.
pub(crate) fn sites(places: &Modules, race: &Race) -> Option<[BTreeSet<u64>; 2]> {
    let [first, second] = &race.accesses;
    Some([
        BTreeSet::from([places.pc(first)?]),
        BTreeSet::from([places.pc(second)?]),
    ])
}

/// The race at the instructions that make its accesses, where one is atomic and the other is not. A call of the program is
/// a site for all that happens in it; but a call that makes atomic accesses may make some of both kinds to the same bytes,
/// such as the last owner of a `shared_ptr`, and then two threads in it do not race whenever both are about to make one.
fn exact(race: &Race) -> Race {
    let mut exact = race.clone();
    if race.accesses[0].atomic != race.accesses[1].atomic {
        for access in &mut exact.accesses {
            let own = access.stack.first();
            if let Some(frame) = own.filter(|frame| frame.module == access.module) {
                access.offset = frame.offset;
            }
        }
    }
    exact
}

/// Where the race was seen: the bytes that both access. Of a block that is freed, that is not all of it.
fn bytes(race: &Race) -> Vec<Bytes> {
    let len = race.accesses.iter().map(|access| access.size).min();
    let address = race.address;
    let len = len.unwrap_or(1).max(1);
    if address == 0 {
        return Vec::new();
    }
    vec![Bytes { address, len }]
}

fn observed(error: &SeenError, symbols: &mut Names) -> ObservedError {
    let stack = error.place.as_deref().map(|place| symbols.stack(place));
    let detail = match error.deadlock.as_deref() {
        Some(deadlock) => deadlocks::sentence(&deadlocks::stuck(deadlock, symbols)),
        None => error.ended.detail.clone(),
    };
    ObservedError {
        kind: kind(error.ended.kind),
        detail,
        seed: error.seed,
        runs: u64::from(error.runs),
        stack: stack.unwrap_or_default(),
        evidence: error
            .recording
            .as_ref()
            .map(|path| path.display().to_string()),
    }
}

/// The document's word for how a run ended.
pub(crate) fn kind(kind: EndedKind) -> ConsequenceKind {
    match kind {
        EndedKind::Exited(_) | EndedKind::Unknown => ConsequenceKind::ExitCode,
        EndedKind::Crash(_) => ConsequenceKind::Crash,
        EndedKind::Abort => ConsequenceKind::Abort,
        EndedKind::Assertion => ConsequenceKind::Assertion,
        EndedKind::Exception => ConsequenceKind::Exception,
        EndedKind::MemoryError => ConsequenceKind::MemoryError,
        EndedKind::Property => ConsequenceKind::Property,
        EndedKind::Deadlock => ConsequenceKind::Deadlock,
        EndedKind::InfiniteLoop => ConsequenceKind::InfiniteLoop,
        EndedKind::Hang => ConsequenceKind::Hang,
    }
}
