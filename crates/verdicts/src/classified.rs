//! Classifies the races of a document.

use crate::confirmed::{kind, sites};
use crate::label::{label, same_for_same_lines};
use crate::memory_errors::tell_memory_error;
use crate::names::Names;
use crate::orders::orders;
use crate::property::{PropertyError, properties};
use crate::{Doubts, Modules};
use std::path::Path;
use verdict_classify::{Class, ClassifyError, Options, Primary, Race, ReplayOutcome, classify};
use verdict_confirm::{ConfirmError, modules};
use verdict_findings as told;
use verdict_findings::{CoverageNote, ProgramFindings, Schema};
use verdict_launch::LaunchOptions;
use verdict_protocol::{CallStack, ExecutorConfig, MappedModule, WaitingThread};

/// Classifies every race of the document that `wanted` names, and writes the verdicts into it. Once all races are, the doubts
/// can be explained.
pub fn classify_findings(
    findings: &mut ProgramFindings,
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    options: &Options,
    folder: &Path,
    wanted: &dyn Fn(&told::Race) -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Doubts, ClassifyError> {
    findings.schema = Schema::Verdicts1;
    let mapped = modules(config, launch, folder).map_err(|error| match error {
        ConfirmError::Launch(error) => ClassifyError::Launch(error),
        other => ClassifyError::Refused {
            why: other.to_string(),
        },
    })?;
    let places = Modules::new(mapped);
    let mut options = options.clone();
    options.switch_points = places.synchronising();
    options.locking = places.locking();
    options.freeing = places.freeing();
    options.releasing = places.releasing();
    let refused = |error: PropertyError| ClassifyError::Property {
        why: error.to_string(),
    };
    options.properties = properties(&places, &options.expressions).map_err(refused)?;
    let mut races = Vec::new();
    let mut indices = Vec::new();
    for (index, race) in findings.races.iter().enumerate() {
        if !wanted(race) {
            continue;
        }
        if let Some([first, second]) = sites(&places, race) {
            races.push(Race {
                id: file_name(&race.id),
                first,
                second,
            });
            indices.push(index);
        }
    }
    let (primary, verdicts) = classify(config, launch, &races, &options, folder, progress)?;
    let mut names = Names::default();
    let mut doubts = Doubts::new(primary.violation().map(|ended| ended.detail.clone()));
    for ((index, asked), verdict) in indices.into_iter().zip(&races).zip(verdicts) {
        let label = label(&findings.races[index], &findings.races, &verdict);
        let race = &mut findings.races[index];
        for what in &verdict.not_covered {
            findings.coverage.push(CoverageNote {
                stage: "classify".into(),
                what: format!("{}: {what}", race.id),
                help: None,
            });
        }
        if let Some(otherwise) = verdict.if_explained() {
            doubts.add(&race.id, class(otherwise), verdict.k);
        }
        let mut known = race.verdict.take().unwrap_or_default();
        fill(&mut known, &verdict, &primary, places.mapped(), &mut names);
        known.label = label;
        let ordered_by = known.ordered_by.as_deref();
        known.orders = orders(race, &asked.first, &verdict, &primary, ordered_by);
        race.verdict = Some(known);
    }
    same_for_same_lines(&mut findings.races);
    Ok(doubts)
}

/// A race's id as part of a file's name.
fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    id.chars().map(plain).take(60).collect()
}

fn fill(
    known: &mut told::Verdict,
    verdict: &verdict_classify::Verdict,
    primary: &Primary,
    mapped: &[MappedModule],
    names: &mut Names,
) {
    known.class = verdict.class.map(class);
    known.k = (verdict.class == Some(Class::KWitnessHarmless)).then_some(verdict.k);
    known.states_differ = verdict.states_differ;
    known.consequence = verdict.consequence.as_ref().map(|ended| {
        let place = verdict.place.as_deref();
        told::Consequence {
            kind: kind(ended.kind),
            detail: ended.detail.clone(),
            thread: None,
            stack: place.map(|place| names.stack(place)).unwrap_or_default(),
            cycle: waits(&in_a_circle(&verdict.threads), mapped, names),
            block: None,
        }
    });
    if let (Some(consequence), Some(memory)) = (&mut known.consequence, &verdict.memory) {
        tell_memory_error(consequence, &memory.error, names);
    }
    known.replay = verdict.replay.map(|outcome| told::Replay {
        outcome: match outcome {
            ReplayOutcome::NoStateChange => told::ReplayOutcome::NoStateChange,
            ReplayOutcome::StateChange => told::ReplayOutcome::StateChange,
            ReplayOutcome::ReplayFailure => told::ReplayOutcome::ReplayFailure,
        },
        instances: told::InstanceCounts {
            no_state_change: verdict.instances.no_state_change,
            state_change: verdict.instances.state_change,
            replay_failure: verdict.instances.replay_failure,
            not_tried: verdict.instances.not_tried,
        },
    });
    known.state_differences = verdict
        .words
        .iter()
        .map(|word| told::StateDifference {
            variable: names.variable(mapped, word.address),
            old: value(word.primary),
            new: value(word.alternate),
        })
        .collect();
    known.output_difference = verdict.output.as_ref().map(|found| told::OutputDifference {
        stream: if found.stream == 1 {
            "stdout"
        } else {
            "stderr"
        }
        .into(),
        position: found.position,
        only_interleaving: found.only_interleaving,
        primary: piece(&found.primary, found.writers[0].as_deref(), names),
        alternate: piece(&found.alternate, found.writers[1].as_deref(), names),
    });
    if verdict.class == Some(Class::SingleOrdering) {
        known.ordered_by =
            spins(verdict, mapped, names).or_else(|| ordered_by(&verdict.threads, mapped, names));
    }
    known.why = Some(why(verdict, primary));
    // What shows the class comes before what only shows that the accesses met.
    let evidence = verdict.evidence.iter();
    known.evidence.splice(
        0..0,
        evidence.map(|evidence| evidence.path.display().to_string()),
    );
}

fn class(class: Class) -> told::Class {
    match class {
        Class::SpecViolated => told::Class::SpecViolated,
        Class::OutputDiffers => told::Class::OutputDiffers,
        Class::KWitnessHarmless => told::Class::KWitnessHarmless,
        Class::SingleOrdering => told::Class::SingleOrdering,
    }
}

fn value(word: Option<u64>) -> String {
    word.map_or_else(|| "unchanged".into(), |word| format!("{word:#x}"))
}

fn piece(bytes: &[u8], writer: Option<&CallStack>, names: &mut Names) -> told::OutputPiece {
    told::OutputPiece {
        text: told::text_of_bytes(bytes),
        stack: writer.map(|writer| names.stack(writer)).unwrap_or_default(),
    }
}

/// Those threads of a deadlock of which each waits for a lock that the next one has, the last one for the first one's; all of
/// them where locks do not say who has them.
fn in_a_circle(threads: &[WaitingThread]) -> Vec<&WaitingThread> {
    let next = |thread: &WaitingThread| {
        let owner = thread.owner?;
        threads.iter().find(|other| other.thread == owner)
    };
    let circle_from = |start: &WaitingThread| {
        let mut circle: Vec<&WaitingThread> = Vec::new();
        let mut at = threads.iter().find(|one| one.thread == start.thread)?;
        while circle.len() < threads.len() {
            circle.push(at);
            at = next(at)?;
            if at.thread == start.thread {
                return Some(circle);
            }
        }
        None
    };
    let circle = threads.iter().find_map(circle_from);
    circle.unwrap_or_else(|| threads.iter().collect())
}

/// Who waits for what, one line each.
fn waits(threads: &[&WaitingThread], mapped: &[MappedModule], names: &mut Names) -> Vec<String> {
    threads
        .iter()
        .filter(|thread| !thread.waits_for.is_empty())
        .map(|thread| {
            let frames = names.stack(&thread.place);
            let place = Names::own_frame(&frames)
                .map(|frame| format!(" at {}", line(frame)))
                .unwrap_or_default();
            let owner = thread
                .owner
                .map(|owner| format!(", which thread {owner} has"))
                .unwrap_or_default();
            let lock = thread
                .futex
                .and_then(|futex| names.variable_if_known(mapped, futex))
                .map(|name| whole_lock(&name));
            let what = match (&lock, thread.owner) {
                (Some(lock), Some(_)) => format!("the lock {lock}"),
                (Some(variable), None) => format!("a wake-up at {variable}"),
                (None, _) => thread.waits_for.clone(),
            };
            format!("thread {} waits for {what}{owner}{place}", thread.thread)
        })
        .collect()
}

/// The lock that a word of it belongs to, by the names that the C library has for its parts.
fn whole_lock(name: &str) -> String {
    let end = name.find(".__data").unwrap_or(name.len());
    name[..end].to_owned()
}

/// In a sentence, the file's name without its folders.
fn line(frame: &told::Frame) -> String {
    let file = frame.file.as_deref().unwrap_or("?");
    let file = file.rsplit('/').next().unwrap_or(file);
    match frame.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_string(),
    }
}

/// Who goes round in a loop until a variable changes.
fn spins(
    verdict: &verdict_classify::Verdict,
    mapped: &[MappedModule],
    names: &mut Names,
) -> Option<String> {
    let looping = verdict.looping.first()?;
    let thread = verdict
        .threads
        .iter()
        .find(|thread| thread.thread == looping.thread)?;
    let frames = names.stack(&thread.place);
    let place = Names::own_frame(&frames).map(line);
    let place = place.map_or(String::new(), |place| format!(" at {place}"));
    let variables: Vec<String> = looping
        .depends_on
        .iter()
        .filter_map(|(address, _)| names.variable_if_known(mapped, *address))
        .collect();
    Some(match variables.first() {
        Some(variable) => format!(
            "thread {} spins{place} until {variable} changes",
            looping.thread
        ),
        None => format!("thread {} spins{place}", looping.thread),
    })
}

/// What the thread that should have come first was doing instead.
fn ordered_by(
    threads: &[WaitingThread],
    mapped: &[MappedModule],
    names: &mut Names,
) -> Option<String> {
    // A lock that somebody has says more than a wait for a thread's end.
    let waiting = threads.iter().filter(|thread| !thread.waits_for.is_empty());
    if let Some(thread) = waiting.min_by_key(|thread| thread.owner.is_none()) {
        // Whoever waits at an address without a name waits for a thread's end, and that orders nothing before it.
        let futex = thread.futex;
        let named = futex.and_then(|futex| names.variable_if_known(mapped, futex));
        let says_something = thread.owner.is_some() || named.is_some();
        return says_something.then(|| waits(&[thread], mapped, names).pop())?;
    }
    let spinning = threads.iter().max_by_key(|thread| thread.instructions)?;
    let frames = names.stack(&spinning.place);
    let frame = Names::own_frame(&frames)?;
    Some(format!(
        "thread {} spins at {}",
        spinning.thread,
        line(frame)
    ))
}

fn why(verdict: &verdict_classify::Verdict, primary: &Primary) -> String {
    match (verdict.class, &verdict.consequence) {
        (None, _) if verdict.replay.is_some() => {
            "the alternates were not followed to the program's end".into()
        }
        (None, _) => {
            "the two accesses did not meet in this execution, so no other order was tried".into()
        }
        (Some(Class::SpecViolated), Some(ended)) if verdict.memory.is_some() => {
            let detail = &ended.detail;
            match (verdict.is_of_recorded(primary), &verdict.either_way) {
                (true, _) => format!(
                    "in the recorded order there is a memory error: {detail}; with the accesses in the other order there is none"
                ),
                (false, Some(_)) => format!(
                    "once the accesses meet, in either order, there is a memory error: {detail}; in the recorded execution there is none"
                ),
                (false, None) => format!(
                    "with the accesses in the other order there is a memory error: {detail}; in the recorded order there is none"
                ),
            }
        }
        (Some(Class::SpecViolated), Some(ended)) if verdict.is_of_recorded(primary) => format!(
            "in the recorded order the program ends with: {}; with the accesses in the other order it does not",
            ended.detail
        ),
        (Some(Class::SpecViolated), Some(ended)) if verdict.either_way.is_some() => format!(
            "once the accesses meet, in either order, the program ends with: {}; in the recorded execution with: {}",
            ended.detail, primary.ended.detail
        ),
        (Some(Class::SpecViolated), Some(ended)) if verdict.otherwise.is_some() => format!(
            "with the accesses in the other order, and another schedule after them, the program ends with: {}; in the recorded order with: {}",
            ended.detail, primary.ended.detail
        ),
        (Some(Class::SpecViolated), Some(ended)) => format!(
            "with the accesses in the other order the program ends with: {}; in the recorded order with: {}",
            ended.detail, primary.ended.detail
        ),
        (Some(Class::SpecViolated), None) => "one order violates what the program asserts".into(),
        (Some(Class::OutputDiffers), _) => "the program's output depends on the order".into(),
        (Some(Class::SingleOrdering), _) => {
            "the other order could not be had: whoever should come first waits for the other".into()
        }
        (Some(Class::KWitnessHarmless), _) if verdict.either_way.is_some() => format!(
            "{}, whichever of the two accesses is first: not because of this race",
            verdict
                .either_way
                .as_ref()
                .map_or("", |ended| &ended.detail)
        ),
        (Some(Class::KWitnessHarmless), _) => format!(
            "{} runs with the other order came to the same output and the same end",
            verdict.k
        ),
    }
}
