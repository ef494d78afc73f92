//! What came of executions: the same ending with the same output is the same outcome.

use std::collections::BTreeMap;

use verdict_launch::Copied;
use verdict_protocol::{Exploration, Outcome, WaitingThread};

/// How an execution ended, as data and in words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ending {
    /// For programs: `exited`, `signalled`...
    pub(super) kind: &'static str,
    /// Its exit code or signal.
    pub(super) number: Option<i32>,
    /// For people.
    pub(super) words: String,
}

/// One execution.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Execution {
    pub(super) seed: u64,
    pub(super) ending: Ending,
    /// Instructions of all threads, from the program's beginning.
    pub(super) instructions: u64,
    pub(super) switches: u64,
    pub(super) switches_hash: u64,
    pub(super) output_bytes: u64,
    pub(super) output_hash: u64,
    /// The end of what it wrote to standard output.
    pub(super) last_line: String,
    /// How often it asked for input that there was none of.
    pub(super) input_missing: u64,
}

/// Executions that came to the same.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Group {
    pub(super) ending: Ending,
    pub(super) output_bytes: u64,
    pub(super) output_hash: u64,
    pub(super) last_line: String,
    pub(super) executions: u64,
    /// The lowest of theirs.
    pub(super) seed: u64,
}

/// All executions, by seed, and what they came to.
pub(super) struct Outcomes {
    executions: Vec<Execution>,
    groups: Vec<Group>,
}

/// What is shown of an output.
const LINE_MAX: usize = 40;

impl Execution {
    pub(super) fn of(seed: u64, copied: &Copied) -> Self {
        let nothing = |kind, words: String| Execution {
            seed,
            ending: Ending {
                kind,
                number: None,
                words,
            },
            instructions: 0,
            switches: 0,
            switches_hash: 0,
            output_bytes: 0,
            output_hash: 0,
            last_line: String::new(),
            input_missing: 0,
        };
        match copied {
            Copied::Explored(exploration) => Execution {
                ending: ending(&exploration.report.outcome),
                instructions: exploration.report.stats.instructions,
                switches: exploration.report.stats.switches,
                switches_hash: exploration.report.stats.switches_hash,
                output_bytes: exploration.output_bytes,
                output_hash: exploration.output_hash,
                last_line: last_line(exploration),
                input_missing: exploration.input_missing,
                ..nothing("", String::new())
            },
            Copied::Lost { how } => nothing("lost", format!("lost: it {how}")),
            Copied::TimedOut => nothing("timed-out", "took too long".to_owned()),
        }
    }
}

impl Outcomes {
    pub(super) fn of(mut executions: Vec<Execution>) -> Self {
        executions.sort_by_key(|execution| execution.seed);
        let mut found: BTreeMap<(Ending, u64, u64), Group> = BTreeMap::new();
        for execution in &executions {
            let key = (
                execution.ending.clone(),
                execution.output_hash,
                execution.output_bytes,
            );
            let group = found.entry(key).or_insert_with(|| Group {
                ending: execution.ending.clone(),
                output_bytes: execution.output_bytes,
                output_hash: execution.output_hash,
                last_line: execution.last_line.clone(),
                executions: 0,
                seed: execution.seed,
            });
            group.executions += 1;
        }
        let mut groups: Vec<Group> = found.into_values().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.executions), group.seed));
        Self { executions, groups }
    }

    /// The most frequent first.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// By seed.
    pub(super) fn executions(&self) -> &[Execution] {
        &self.executions
    }

    pub(super) fn execution(&self, seed: u64) -> Option<&Execution> {
        self.executions
            .iter()
            .find(|execution| execution.seed == seed)
    }
}

fn ending(outcome: &Outcome) -> Ending {
    let (kind, number, words) = match outcome {
        Outcome::Exited { code } => (
            "exited",
            Some(i32::from(*code)),
            format!("ended with code {code}"),
        ),
        Outcome::Signalled { signal, .. } => {
            ("signalled", Some(*signal), format!("signal {signal}"))
        }
        Outcome::Deadlock(deadlock) if deadlock.threads.iter().any(waits_for_data) => (
            "waits-for-input",
            None,
            "waits for input that does not come".to_owned(),
        ),
        Outcome::Deadlock(_) => (
            "deadlock",
            None,
            "all threads wait for each other".to_owned(),
        ),
        Outcome::LimitReached { .. } => ("endless", None, "does not end".to_owned()),
        Outcome::Refused(refusal) => ("refused", None, format!("stopped: {}", refusal.message)),
        Outcome::EngineFault(fault) => (
            "engine-fault",
            None,
            format!("the engine failed: {}", fault.message),
        ),
        Outcome::ReplayStopped { .. }
        | Outcome::Diverged(_)
        | Outcome::NotEnforced { .. }
        | Outcome::Stopped => ("stopped", None, "stopped".to_owned()),
    };
    Ending {
        kind,
        number,
        words,
    }
}

/// True if somebody outside could have let it go on.
fn waits_for_data(thread: &WaitingThread) -> bool {
    thread.waits_for.starts_with("data or room")
}

/// The last line of standard output that is not empty, as far as there is room for it.
fn last_line(exploration: &Exploration) -> String {
    let output = exploration.output.iter().filter(|piece| piece.stream == 1);
    let bytes: Vec<u8> = output.flat_map(|piece| piece.bytes.clone()).collect();
    let line = bytes
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty())
        .unwrap_or_default();
    let text: String = String::from_utf8_lossy(line)
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if text.chars().count() <= LINE_MAX {
        return text;
    }
    let cut: String = text.chars().take(LINE_MAX).collect();
    format!("{cut}...")
}
